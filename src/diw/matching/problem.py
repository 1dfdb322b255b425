"""What is asked: the options of a match, and the problem that they and the values make.

Options and values are checked here, once; everything after relies on it.
"""

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, get_args

import numpy as np

from diw.matching.backend import (
    NUMPY,
    Array,
    Backend,
    BackendName,
    Values,
    backend_for,
    is_tensor,
    magnitude,
)
from diw.matching.width import FEATURE_RULE, LOSS_RULE, is_distance, parse_rule, width

Solver = Literal["diw", "stopped", "cvxopt"]
OnFailure = Literal["raise", "warn"]

CENTRED_ROWS = 512  # beyond this many rows, distances from differences would be slow
LARGEST_GAMMA = 1e300  # a larger γ makes K the identity just the same, and never meets ∞ · 0

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
    paper's results ask; "cvxopt" is the authors' solver itself (extra `released`)."""

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            parse_rule(self.gamma)
        elif self.gamma is not None:
            _positive("gamma", self.gamma)
        _positive("bound", self.bound)
        if self.slack is not None:
            _number("slack", self.slack)
            if not 0 <= self.slack < math.inf:
                raise ValueError(f"slack: must be finite and not negative, not {self.slack}")
        _positive("ridge", self.ridge)
        _choice("solver", self.solver, Solver)


@dataclass(kw_only=True)
class Options(MatchOptions):
    """How a match is computed, besides what it is."""

    tol: float = 1e-8
    """The largest relative residual that counts as solved."""
    rank: int | None = None
    """The largest rank of the kernel's factor. None is no limit up to 8,192 samples; beyond, 100
    for (n, d) values and up to 512 for (n,). A limit that cuts the kernel short makes the status
    "approximate"."""
    max_iterations: int = 200
    """Steps of a solver before it gives up."""
    on_failure: OnFailure = "raise"
    """What to do when `tol` is not reached: raise `MatchingError`, or warn and return the feasible
    weights found."""
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


def _number(name: str, value: Any) -> None:
    if not hasattr(value, "__float__") or isinstance(value, bool):
        raise ValueError(f"{name}: must be a number, not {value!r}")


def _positive(name: str, value: Any) -> None:
    _number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: must be positive and finite, not {value}")


def _whole(name: str, value: Any) -> None:
    """Check for an integer of any type, at least one."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise ValueError(f"{name}: must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name}: must be at least 1, not {value}")


def _choice(name: str, value: Any, kind: Any) -> None:
    *first, last = get_args(kind)
    if value not in (*first, last):
        among = ", ".join(repr(choice) for choice in first)
        raise ValueError(f"{name}: must be {among} or {last!r}, not {value!r}")


@dataclass(frozen=True)
class Problem:
    """minimise ½wᵀ(K+ωI)w − kᵀw over 0 ≤ w ≤ B, low ≤ Σw ≤ high."""

    xp: Backend
    z: Array
    """(n + m,) or (n + m, d) training, then trusted values; centred, scaled to magnitude one."""
    n: int
    gamma: float
    """γ for the scaled values."""
    given_gamma: float
    """γ for the values as they were given."""
    ridge: float
    bound: float
    slack: float

    @property
    def low(self) -> float:
        """The smallest sum allowed."""
        return self.n * (1.0 - self.slack)

    @property
    def high(self) -> float:
        """The largest sum allowed."""
        return self.n * (1.0 + self.slack)


def make_problem(z_train: Values, z_trusted: Values, options: Options) -> Problem:
    """Check the values of `kmm` and bring them to a common scale that neither over- nor underflows.

    Raises:
        ValueError: The values cannot work; the message names the argument.
    """
    xp = backend_for(z_train, options.backend)
    train, trusted = _values(xp, "z_train", z_train), _values(xp, "z_trusted", z_trusted)
    if train.shape[1:] != trusted.shape[1:]:
        raise ValueError(
            f"z_trusted: rows of shape {tuple(trusted.shape[1:])} do not match "
            f"z_train's {tuple(train.shape[1:])}"
        )
    n = len(train)
    slack, bound = options.slack, options.bound
    if slack is None:
        slack = (math.sqrt(n) - 1.0) / math.sqrt(n)
    if bound < 1 - slack:
        raise ValueError(
            f"bound: {bound:g} is below 1 - slack = {1 - slack:g}, so no weights reach that mean"
        )
    z, unit = _scaled(xp, train, trusted)
    scaled, given = _gamma(options.gamma, z[:n], unit)
    return Problem(xp, z, n, scaled, given, float(options.ridge), float(bound), float(slack))


def _values(xp: Backend, name: str, z: Values) -> Array:
    """Values in float64, of shape (n,) or (n, d) with at least one entry."""
    if np.ma.is_masked(z):
        raise ValueError(f"{name}: has masked values; drop or fill them")
    if z.is_complex() if is_tensor(z) else np.iscomplexobj(z):
        raise ValueError(f"{name}: has complex numbers; give real ones")
    try:
        if is_tensor(z):
            z = z.detach()
            z = z.cpu().double().numpy() if xp is NUMPY else z
        values = xp.array(z)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name}: is not a dense array of numbers") from None
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"{name}: needs shape (n,) or (n, d) with at least one value, not {tuple(values.shape)}"
        )
    return values


def _scaled(xp: Backend, train: Array, trusted: Array) -> tuple[Array, float]:
    """All values, divided by a power of two: exact, and no square overflows or vanishes.

    Many rows are centred first: far from the origin `squared_distances` loses digits and
    computes more distances from differences, which is slow. The centre is
    a median, so that an outlier does not round the rest away.
    """
    n = len(train)
    z = xp.empty(n + len(trusted), *train.shape[1:])
    z[:n] = train
    z[n:] = trusted
    if z.ndim == 2 and len(z) > CENTRED_ROWS:
        z -= xp.median(z[:: len(z) // CENTRED_ROWS])
    size = magnitude(z)
    if not size < math.inf:
        name = "z_trusted" if magnitude(train) < math.inf else "z_train"
        raise ValueError(f"{name}: holds NaN or infinite values")
    if size == 0:
        return z, 1.0
    unit = 2.0 ** min(math.frexp(size)[1], 1023)
    z /= unit
    return z, unit


def _gamma(gamma: float | str | None, z: Array, unit: float) -> tuple[float, float]:
    """γ for the scaled values and for the given ones."""
    if gamma is None:
        gamma = LOSS_RULE if z.ndim == 1 else FEATURE_RULE
    if not isinstance(gamma, str):
        return min(float(gamma) * unit * unit, LARGEST_GAMMA), float(gamma)
    value = width(z, gamma)
    if is_distance(gamma):
        return min(value * unit * unit * unit, LARGEST_GAMMA), value * unit
    return min(value, LARGEST_GAMMA), min(value / unit / unit, sys.float_info.max)
