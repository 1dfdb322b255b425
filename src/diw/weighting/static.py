"""Static importance weighting: weights estimated once, for the whole training set, then fixed."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.step.batch import Weights
from diw.step.step import Step
from diw.weighting.base import State, Task, Weighting
from diw.weighting.by_class import Side, match_by_class, share_at_bound
from diw.weighting.classes import ClassCounts, class_labels
from diw.weighting.matching import Matching, OnFeatures, OnInputs, OnLosses
from diw.weighting.survey import Survey, whole_train


@dataclass(kw_only=True)
class Static(Weighting):
    """Looks weights up that were found before the first step."""

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
class StaticMatching(Static, Matching):
    """One match of the whole training set to the whole trusted set; by class where π needs it."""

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """The matched weights, (n,), through the solver that takes sets of any size."""
        samples = whole_train(task, self)
        survey = Survey(
            self.transform, self.estimator(task), self.losses, getattr(self, "layer", None)
        )

        def ours(rows: Tensor) -> Tensor:
            return survey(samples, task.criterion, rows)

        def theirs(rows: Tensor) -> Tensor:
            return survey(task.trusted, task.trusted_criterion, rows)

        if not self.transform.by_class:
            n, m = torch.arange(len(samples)), torch.arange(len(task.trusted))
            match = self.solve([(ours(n), theirs(m))])[0]
            weights = match.weights.double()
            return weights, {"share_bound": share_at_bound(weights, self.bound)}
        train = Side(class_labels(samples.targets, "train"), ours)
        trusted = Side(class_labels(task.trusted.targets, "trusted"), theirs)
        ratios = ClassCounts(train.labels, trusted.labels).ratios()
        weights, facts = match_by_class(train, trusted, ratios, self.solve, bound=self.bound)
        return weights, {name: facts[name] for name in ("share_bound", "share_unmatched")}

    @abstractmethod
    def estimator(self, task: Task) -> nn.Module | None:
        """The network that makes the representation, or None."""


@dataclass(kw_only=True)
class IW(OnInputs, StaticMatching):
    """Matches the raw inputs of each class, once: importance weighting as before deep learning.

    Fang et al. 2020, supplement, method (1).
    """

    name: ClassVar[str] = "iw"

    def estimator(self, task: Task) -> nn.Module | None:
        """None: inputs are matched as they are."""
        return None


@dataclass(kw_only=True)
class StaticPretrained(StaticMatching):
    """The representation comes from a network that was pretrained without weights."""

    pretraining: int = 20
    """Epochs of the pretraining, on top of the training epochs (the paper: 20, on CIFAR 50)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretraining < 1:
            raise UsageError(
                f"{self.name}.pretraining: must be at least 1, and is {self.pretraining}"
            )

    def estimator(self, task: Task) -> nn.Module | None:
        """A network trained without weights."""
        return task.pretrain(self.pretraining)


@dataclass(kw_only=True)
class SIWF(OnFeatures, StaticPretrained):
    """Matches the hidden outputs of a pretrained network, each class alone, once.

    Fang et al. 2020, supplement, method (2): another network is then trained with
    these fixed weights.
    """

    name: ClassVar[str] = "siw-f"


@dataclass(kw_only=True)
class SIWL(OnLosses, StaticPretrained):
    """Matches the loss values of a pretrained network, once.

    Fang et al. 2020, supplement, method (3): another network is then trained with
    these fixed weights.
    """

    name: ClassVar[str] = "siw-l"
