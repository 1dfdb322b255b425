"""The baselines that every other method must beat; none of them learns anything of a label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from diw.methods.base import Method, Need, State, Task
from diw.step.batch import Weights
from diw.step.step import Step


@dataclass(kw_only=True)
class Clean(Method):
    """Trains on the trusted samples alone; the training data do not count.

    An epoch is one pass over the trusted set.
    """

    name: ClassVar[str] = "clean"
    trains_on: ClassVar = "trusted"
    is_control: ClassVar[bool] = True
    costs_like: ClassVar[str] = "uniform"

    def weigh(self, step: Step) -> Weights:
        """Ones for the trusted batch, nothing for the training batch."""
        return Weights(None, trusted=step.ones(step.trusted))


@dataclass(kw_only=True)
class Uniform(Method):
    """All weights are one: plain training on the training data as they are."""

    name: ClassVar[str] = "uniform"

    def weigh(self, step: Step) -> Weights:
        """Ones, (n,)."""
        return Weights(step.ones())


@dataclass(kw_only=True)
class Random(Method):
    """Rectified Gaussian weights, max(0, N(0, 1)), drawn anew in every epoch.

    Fang et al. 2020, Section 5: the control that shows how much of a gain is mere
    randomness.
    """

    name: ClassVar[str] = "random"
    is_control: ClassVar[bool] = True
    costs_like: ClassVar[str] = "uniform"

    def weigh(self, step: Step) -> Weights:
        """max(0, ξ) with ξ standard normal, (n,)."""
        return Weights(step.normal("random weights").clamp(min=0).to(step.ones()))


@dataclass(kw_only=True)
class LookedUp(Method):
    """Weights that were found before the first step, for the whole training set."""

    needs: ClassVar[frozenset[Need]] = frozenset({"index"})
    costs_like: ClassVar[str] = "uniform"

    _weights: Tensor = field(default_factory=lambda: torch.empty(0), init=False, repr=False)
    _facts: dict[str, float] = field(default_factory=dict[str, float], init=False, repr=False)

    def prepare(self, task: Task) -> State | None:
        """Weigh the whole training set."""
        self._weights, self._facts = self.weigh_all(task)
        return None

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """A weight for each training sample, (n,), and facts to report with every step."""
        raise NotImplementedError

    def weigh(self, step: Step) -> Weights:
        """The samples' weights by their index, (n,)."""
        assert step.train.index is not None  # it is needed
        weights = self._weights[step.train.index.cpu()]
        return Weights(weights.to(step.ones()), metrics=self._facts)

    def state_dict(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": self._weights, "facts": self._facts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the weights."""
        self._weights, self._facts = state["weights"].cpu(), dict(state["facts"])


@dataclass(kw_only=True)
class Truth(LookedUp):
    """The true weights p_te(x, y)/p_tr(x, y), which only a simulated shift knows.

    Fang et al. 2020, supplement: 1−μ+μ/ρ for a majority and μ+ρ−μρ for a minority class;
    under label noise zero for a flipped label. What no method can know.
    """

    name: ClassVar[str] = "truth"
    is_control: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({"true_weights"})

    def weigh_all(self, task: Task) -> tuple[Tensor, dict[str, float]]:
        """What the simulated shift knows, (n,)."""
        assert task.true_weights is not None  # they are needed
        return task.true_weights.double().cpu(), {}
