"""Methods that look at nothing: the baselines that every other method must beat."""

from dataclasses import dataclass
from typing import ClassVar

from diw.methods.base import Method
from diw.step.batch import Weights
from diw.step.step import Step


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
    costs_like: ClassVar[str] = "uniform"

    def weigh(self, step: Step) -> Weights:
        """max(0, ξ) with ξ standard normal, (n,)."""
        return Weights(step.normal("random weights").clamp(min=0).to(step.ones()))


@dataclass(kw_only=True)
class Clean(Method):
    """Trains on the trusted samples alone; the training data do not count.

    An epoch is one pass over the trusted set.
    """

    name: ClassVar[str] = "clean"
    trains_on: ClassVar[str] = "trusted"
    costs_like: ClassVar[str] = "uniform"

    def weigh(self, step: Step) -> Weights:
        """Nothing for the training batch, ones (m,) for the trusted one."""
        return Weights(train=None, trusted=step.ones(step.trusted))
