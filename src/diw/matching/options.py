"""The options of a match, checked once; everything after relies on it."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_args

from diw.matching.backend import BackendName
from diw.matching.width import parse_rule

Solver = Literal[
    "diw", "stopped", "cvxopt", "el", "entropy", "chi2", "ulsif", "kliep", "logistic", "pgd",
    "isotonic",
]  # fmt: skip
Features = Literal["any", "linear"]
OnFailure = Literal["raise", "warn"]

P = ParamSpec("P")
Z = TypeVar("Z", contravariant=True)
R = TypeVar("R", covariant=True)


@dataclass(kw_only=True)
class MatchOptions:
    """What a match is: its kernel, its constraints, and who solves it."""

    gamma: float | str | None = None
    """Width of the kernel exp(−γ‖z−z'‖²): a number, a rule such as "quantile:0.01" or "median", or
    None for the rule that suits the values: "quantile:0.01" for one number per sample, such as
    losses (the paper's for label noise), "median" for features and inputs."""
    bound: float = 50.0
    """B, the largest weight the match may give (the paper: 50, 10 or 100)."""
    slack: float | None = None
    """ε, how far the mean weight may be from one; None is (√n−1)/√n."""
    ridge: float = 1e-5
    """ω, added to the kernel's diagonal."""
    solver: Solver = "diw"
    """"diw" solves the match exactly; "stopped" ends early, where the authors' solver ends, as the
    paper's results ask; "cvxopt" is the authors' solver itself (extra `released`). The others are
    other estimators of the same ratio (docs/estimators.md)."""
    penalty: float | None = field(default=None, metadata={"later": True})
    """ν of "el", "entropy" and "chi2", where None is the discrepancy principle; λ of "ulsif" and
    "logistic", where None is chosen by leaving one out. The other solvers have none."""

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            parse_rule(self.gamma)
        elif self.gamma is not None:
            _positive("gamma", self.gamma)
        _positive("bound", self.bound)
        if self.slack is not None and not 0 <= _number("slack", self.slack) < math.inf:
            raise ValueError(f"slack: must be finite and not negative, not {self.slack}")
        _positive("ridge", self.ridge)
        _choice("solver", self.solver, Solver)
        if self.penalty is not None:
            _positive("penalty", self.penalty)


@dataclass(kw_only=True)
class Options(MatchOptions):
    """How a match is computed, besides what it is."""

    tol: float = 1e-8
    """The largest relative residual that counts as solved."""
    rank: int | None = None
    """The largest rank of the kernel's factor. None is no limit up to 8,192 samples; beyond, 512,
    and for (n, d) values of more than 16,000 samples fewer, at least 100. A limit that cuts the
    kernel short makes the status "approximate"."""
    max_iterations: int = 200
    """Steps of a solver before it gives up."""
    on_failure: OnFailure = "raise"
    """What to do when `tol` is not reached: raise `MatchingError`, or warn and return the feasible
    weights found."""
    steps: int = 1
    """Projected gradient steps of "pgd"."""
    rate: float = 1.0
    """Learning rate of "pgd"; up to 2 the objective never grows."""
    features: Features = "any"
    """What "logistic" may fit: "any" of its families, or "linear" for the columns alone."""
    backend: BackendName = "auto"
    """Where to compute: "auto" is NumPy for arrays and CPU tensors, and torch on the tensor's own
    device otherwise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive("tol", self.tol)
        if self.rank is not None:
            _whole("rank", self.rank)
        _whole("max_iterations", self.max_iterations)
        _choice("on_failure", self.on_failure, OnFailure)
        _whole("steps", self.steps)
        _positive("rate", self.rate)
        _choice("features", self.features, Features)
        if self.features == "linear" and self.solver != "logistic":
            raise ValueError(f"features: belongs to solver='logistic', not {self.solver!r}")
        if self.features == "linear" and self.gamma is not None:
            raise ValueError("gamma: asks for kernels, which features='linear' leaves out")
        _choice("backend", self.backend, BackendName)


class _WithKeywords(Protocol[Z, P, R]):
    def __call__(self, z_train: Z, z_trusted: Z, *args: P.args, **kwargs: P.kwargs) -> R: ...


def with_keywords(
    options: Callable[P, Options],
) -> Callable[[Callable[[Z, Z, Options], R]], _WithKeywords[Z, P, R]]:
    """Let callers pass the fields of `options` as keywords.

    A function of (z_train, z_trusted, options) becomes one of (z_train, z_trusted, *, gamma=…, …),
    for `help`, `inspect.signature` and type checkers alike.
    """

    def decorate(function: Callable[[Z, Z, Options], R]) -> _WithKeywords[Z, P, R]:
        @wraps(function)
        def call(z_train: Z, z_trusted: Z, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(z_train, z_trusted, options(*args, **kwargs))

        own = inspect.signature(function)
        keywords = inspect.signature(options).parameters.values()
        parameters = [*list(own.parameters.values())[:2], *keywords]
        vars(call)["__signature__"] = own.replace(parameters=parameters)
        return call

    return decorate


def _number(name: str, value: Any) -> float:
    """The value of one number of any type."""
    try:
        if isinstance(value, (bool, str)) or getattr(value, "ndim", 0):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last from meta tensors
        shown = " ".join(repr(value).split())
        raise ValueError(f"{name}: must be a number, not {shown[:60]}") from None


def _positive(name: str, value: Any) -> None:
    if not 0 < _number(name, value) < math.inf:
        raise ValueError(f"{name}: must be positive and finite, not {value}")


def _whole(name: str, value: Any) -> None:
    """Check for an integer of any type, at least one."""
    number = _number(name, value)
    if not hasattr(value, "__index__") or not number == int(value):
        raise ValueError(f"{name}: must be a whole number, not {value!r}")
    if number < 1:
        raise ValueError(f"{name}: must be at least 1, not {value}")


def _choice(name: str, value: Any, kind: Any) -> None:
    *first, last = get_args(kind)
    if not isinstance(value, str) or value not in (*first, last):
        among = ", ".join(repr(choice) for choice in first)
        shown = " ".join(repr(value).split())
        raise ValueError(f"{name}: must be {among} or {last!r}, not {shown[:60]}")
