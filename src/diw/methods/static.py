"""Static importance weighting: weights estimated once, for the whole training set, then fixed."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.matching import Match
from diw.methods.base import Method, State, Task
from diw.methods.by_class import (
    Side,
    class_labels,
    count,
    match_by_class,
    prior_ratios,
    share_at_bound,
)
from diw.methods.matching import Matching
from diw.step.batch import Batch, Criterion, Outputs, Weights, one_per_sample
from diw.step.probe import outputs_in_pieces
from diw.step.rows import Rows, in_pieces
from diw.step.step import Step


@dataclass(kw_only=True)
class Static(Method):
    """Looks up weights that were found before the first step."""

    costs_like: ClassVar[str] = "uniform"

    _weights: Tensor = field(default_factory=lambda: torch.empty(0), init=False, repr=False)
    _facts: dict[str, float] = field(default_factory=dict[str, float], init=False, repr=False)

    def prepare(self, task: Task) -> State | None:
        """Weigh the whole training set."""
        self._weights, self._facts = self.weigh_all(task)
        return None

    @abstractmethod
    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """A weight for each training sample, (n,), and facts to report with every step."""

    def weigh(self, step: Step) -> Weights:
        """The samples' weights by their index, (n,)."""
        index = step.train.index
        if index is None:
            raise UsageError(
                f"batch: {self.name} looks up each sample's weight; yield (inputs, targets, index)"
            )
        return Weights(self._weights[index.cpu()].to(step.ones()), diagnostics=self._facts)

    def state_dict(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": self._weights, "facts": self._facts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the weights."""
        self._weights, self._facts = state["weights"].cpu(), dict(state["facts"])


@dataclass(kw_only=True)
class Truth(Static):
    """The true weights p_te(x, y)/p_tr(x, y), which only a simulated shift knows.

    Fang et al. 2020, supplement: 1−μ+μ/ρ for a majority and μ+ρ−μρ for a minority class;
    under label noise zero for a flipped label. What no method can know.
    """

    name: ClassVar[str] = "truth"

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """What the simulated shift knows, (n,)."""
        if task.true_weights is None:
            raise UsageError(
                "truth: the true weights are unknown for these data; simulate a shift, "
                "give Objective(…, true_weights=…), or leave the method out"
            )
        return task.true_weights.double().cpu(), {}


@dataclass(kw_only=True)
class Once(Static, Matching):
    """When: one match of the whole training set to the whole trusted set, before training."""

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """The matched weights, (n,), through the solver that takes sets of any size."""
        train, trusted = task.train, task.trusted
        if train is None:
            raise UsageError(
                f"train: {self.name} weighs the whole training set beforehand; "
                "give Objective(…, train=…)"
            )
        network = self.estimator(task)

        def ours(rows: Tensor) -> Tensor:
            return self._values(network, train, task.criterion, rows)

        def theirs(rows: Tensor) -> Tensor:
            return self._values(network, trusted, task.trusted_criterion, rows)

        if not self.by_class:
            z_train, z_trusted = ours(torch.arange(len(train))), theirs(torch.arange(len(trusted)))
            weights = self.solve([(z_train, z_trusted)])[0].weights.double()
            return weights, {"share_bound": share_at_bound(weights, self.bound)}
        y_train = class_labels(train.targets, "train")
        y_trusted = class_labels(trusted.targets, "trusted")
        weights, facts = match_by_class(
            Side(y_train, ours),
            Side(y_trusted, theirs),
            prior_ratios(count(y_train), count(y_trusted)),
            self._solve_one_by_one,
            bound=self.bound,
            scale=self.scaled_by_class,
        )
        return weights, {name: facts[name] for name in ("share_bound", "share_unmatched")}

    def _values(
        self, network: nn.Module | None, rows: Rows, criterion: Criterion, index: Tensor
    ) -> Tensor:
        """Z of the rows `index` (b,): (b,) or (b, d), on the CPU."""
        if network is None:
            nothing = Outputs(None, None)
            return torch.cat([self.transform(b, nothing).cpu() for b in in_pieces(rows, index)])
        tap = self.tap(network)
        return torch.cat(
            [
                self.transform(batch, self._with_losses(outputs, batch, criterion)).cpu()
                for batch, outputs in outputs_in_pieces(network, rows, index, tap=tap)
            ]
        )

    def _with_losses(self, outputs: Outputs, batch: Batch, criterion: Criterion) -> Outputs:
        if batch.targets is None:
            return outputs
        losses = one_per_sample(self.losses(outputs.values, batch, criterion), len(batch))
        return replace(outputs, maybe_losses=losses)

    def _solve_one_by_one(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """Hold the values of one class at a time: whole data sets may be large."""
        return [match for pair in problems for match in self.solve([pair])]
