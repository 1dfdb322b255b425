"""The nine methods of the paper: Fang et al. 2020, supplement, methods (1) to (9)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from diw.matching import Match
from diw.methods.base import Need, Task
from diw.methods.baselines import LookedUp
from diw.methods.by_class import (
    Side,
    class_labels,
    count,
    match_by_class,
    prior_ratios,
    share_at_bound,
)
from diw.methods.matched import (
    ByClass,
    EachBatch,
    Frozen,
    HiddenOutputs,
    LossValues,
    Matching,
    PretrainedStart,
    RawInputs,
    Trained,
)
from diw.step.batch import Batch, Criterion, Outputs, one_per_sample
from diw.step.look import outputs_in_pieces
from diw.step.rows import Rows, in_pieces


@dataclass(kw_only=True)
class Once(LookedUp, Matching):
    """When: one match of the whole training set to the whole trusted set, before training."""

    needs: ClassVar[frozenset[Need]] = frozenset({"train"})

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """The matched weights, (n,), through the solver that takes sets of any size."""
        train, trusted = task.train, task.trusted
        assert train is not None  # it is needed
        network = self.estimator(task)

        def ours(rows: Tensor) -> Tensor:
            return self._values(network, train, task.criterion, rows)

        def theirs(rows: Tensor) -> Tensor:
            return self._values(network, trusted, task.criterion_of(trusted=True), rows)

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
                self.transform(batch, _with_losses(outputs, batch, criterion)).cpu()
                for batch, outputs in outputs_in_pieces(network, rows, index, tap=tap)
            ]
        )

    def _solve_one_by_one(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """Hold the values of one class at a time: whole data sets may be large."""
        return [match for pair in problems for match in self.solve([pair])]


@dataclass(kw_only=True)
class Iw(ByClass, RawInputs, Once):
    """Matches the raw inputs of each class, once: importance weighting as before deep learning."""

    name: ClassVar[str] = "iw"


@dataclass(kw_only=True)
class SiwF(ByClass, HiddenOutputs, Frozen, Once):
    """Matches the hidden outputs of a pretrained network, each class alone, once."""

    name: ClassVar[str] = "siw-f"


@dataclass(kw_only=True)
class SiwL(LossValues, Frozen, Once):
    """Matches the loss values of a pretrained network, once."""

    name: ClassVar[str] = "siw-l"


@dataclass(kw_only=True)
class Diw1F(ByClass, HiddenOutputs, Frozen, EachBatch):
    """Matches the hidden outputs of a frozen, pretrained network, each class alone."""

    name: ClassVar[str] = "diw1-f"
    costs_like: ClassVar[str] = "diw2-f"


@dataclass(kw_only=True)
class Diw1L(LossValues, Frozen, EachBatch):
    """Matches the loss values of a frozen, pretrained network."""

    name: ClassVar[str] = "diw1-l"
    costs_like: ClassVar[str] = "diw"


@dataclass(kw_only=True)
class Diw2F(ByClass, HiddenOutputs, Trained, EachBatch):
    """Matches the hidden outputs of the network being trained itself, each class alone."""

    name: ClassVar[str] = "diw2-f"


@dataclass(kw_only=True)
class Diw(LossValues, Trained, EachBatch):
    """Matches the loss values of the network being trained itself; what the paper calls DIW."""

    name: ClassVar[str] = "diw"
    aliases: ClassVar[tuple[str, ...]] = ("diw2-l",)


@dataclass(kw_only=True)
class Diw3F(ByClass, HiddenOutputs, PretrainedStart, EachBatch):
    """Matches the hidden outputs of the network being trained, pretrained a little, by class."""

    name: ClassVar[str] = "diw3-f"
    costs_like: ClassVar[str] = "diw2-f"


@dataclass(kw_only=True)
class Diw3L(LossValues, PretrainedStart, EachBatch):
    """Matches the loss values of the network being trained, pretrained a little."""

    name: ClassVar[str] = "diw3-l"
    costs_like: ClassVar[str] = "diw"


def _with_losses(outputs: Outputs, batch: Batch, criterion: Criterion) -> Outputs:
    if batch.targets is None:
        return outputs
    losses = one_per_sample(criterion(outputs.values, batch.targets), len(batch))
    return replace(outputs, maybe_losses=losses)
