"""Shared parts of the methods that match: the fields of the match, and what is matched."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from torch import Tensor

from diw.errors import RunError, UsageError
from diw.matching import Match, kmm_batch
from diw.matching.kernel import parse_rule
from diw.step.transforms import HiddenOutput, LossValue, RawInput, Transform, WholeOutput
from diw.weighting.base import Weighting

FEATURES = ("hidden", "output")
SOLVERS = ("diw", "cvxopt")


@dataclass(kw_only=True)
class Matching(Weighting):
    """Weights by kernel mean matching, whatever is matched and when.

    Fang et al. 2020, Eq. (10).
    """

    gamma: float | str | None = None
    """Width of the kernel exp(−γ‖z−z'‖²): a number, a rule such as "quantile:0.01" or "median", or
    None for the transformation's own rule: "quantile:0.01" for losses (the paper's for label
    noise), "median" for features and inputs."""
    bound: float = 50.0
    """B, the largest weight the match may give (the paper: 50, 10 or 100)."""
    slack: float | None = None
    """ε, how far the mean weight may be from one; None is (√n−1)/√n."""
    ridge: float = 1e-5
    """ω, added to the kernel's diagonal."""
    solver: str = "diw"
    """"diw" solves the match exactly; "cvxopt" as the authors' released example does."""

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            try:
                parse_rule(self.gamma)
            except ValueError as error:
                raise UsageError(f"{self.name}.{error}") from None
        elif self.gamma is not None and not 0 < self.gamma < inf:
            raise UsageError(f"{self.name}.gamma: must be positive, and is {self.gamma}")
        if not 0 < self.ridge < inf:
            raise UsageError(f"{self.name}.ridge: must be positive, and is {self.ridge}")
        if not 1 <= self.bound < inf:
            raise UsageError(
                f"{self.name}.bound: must be at least 1, the mean weight, and is {self.bound}"
            )
        if self.solver not in SOLVERS:
            raise UsageError(
                f"{self.name}.solver: choose {' or '.join(SOLVERS)}, not {self.solver!r}"
            )
        if self.slack is not None and not 0 <= self.slack < inf:
            raise UsageError(f"{self.name}.slack: must not be negative, and is {self.slack}")

    @property
    @abstractmethod
    def transform(self) -> Transform:
        """π: what of a sample is matched."""

    @property
    def taps(self) -> bool:
        """Whether `Step` must catch what enters a hidden layer."""
        return self.transform.taps

    def solve(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """Match each pair (z_train, z_trusted) by itself, taking one after the other.

        A match that misses its tolerance is used all the same, with a warning:
        its weights are feasible, and a training of hours should not end there.
        """
        return [match for pair in problems for match in self.solve_together([pair])]

    def solve_together(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """The same of many small problems, in one call."""
        pairs = [(self._finite(ours), self._finite(theirs)) for ours, theirs in problems]
        return kmm_batch(
            [ours for ours, _ in pairs],
            [theirs for _, theirs in pairs],
            gamma=self.gamma,
            bound=self.bound,
            slack=self.slack,
            ridge=self.ridge,
            solver="cvxopt" if self.solver == "cvxopt" else "diw",
            on_failure="warn",
        )

    def _finite(self, z: Tensor) -> Tensor:
        if not z.isfinite().all():
            raise RunError(
                f"{self.name}: the network's values are NaN or infinite; lower the learning rate"
            )
        return z


@dataclass(kw_only=True)
class OnLosses(Matching):
    """-L: matches loss values, one number a sample, all classes together."""

    @property
    def transform(self) -> Transform:
        """π(x, y) = ℓ(f(x), y)."""
        return LossValue()


@dataclass(kw_only=True)
class OnFeatures(Matching):
    """-F: matches a representation of the inputs, each class alone."""

    features: str = "hidden"
    """"hidden": what enters `layer`; "output": the network's whole output, the logits."""
    layer: str | None = None
    """The layer whose input is the representation, such as "encoder.fc2"; None is the last
    `nn.Linear`."""
    partition: bool = True
    """Match each class alone, times p_trusted(y)/p_train(y). False matches all classes together
    and asks no labels of the trusted samples: right under covariate shift only."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features not in FEATURES:
            raise UsageError(
                f"{self.name}.features: choose {' or '.join(FEATURES)}, not {self.features!r}"
            )

    @property
    def transform(self) -> Transform:
        """π(x) = h(x), what enters the layer, or f(x), the logits."""
        kind = HiddenOutput if self.features == "hidden" else WholeOutput
        return kind(by_class=self.partition)


@dataclass(kw_only=True)
class OnInputs(Matching):
    """Matches the raw inputs, each class alone."""

    partition: bool = True
    """Match each class alone, times p_trusted(y)/p_train(y). False matches all classes together
    and asks no labels of the trusted samples: right under covariate shift only."""

    @property
    def transform(self) -> Transform:
        """π(x) = x."""
        return RawInput(by_class=self.partition)
