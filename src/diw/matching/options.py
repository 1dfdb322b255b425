"""The options that `kmm`, `kmm_batch` and `KMM` share, checked."""

import math
from dataclasses import dataclass
from typing import Any, Literal

BOUND = 50.0

OnFailure = Literal["raise", "warn"]
Solver = Literal["diw", "cvxopt"]
Backend = Literal["auto", "numpy", "torch"]


@dataclass(frozen=True)
class Options:
    """See `diw.kmm` for each."""

    gamma: float | str | None
    bound: float
    slack: float | None
    ridge: float
    tol: float
    rank: int | None
    max_iterations: int
    on_failure: OnFailure
    solver: Solver
    backend: Backend

    def __post_init__(self) -> None:
        _positive("bound", self.bound)
        _positive("ridge", self.ridge)
        _positive("tol", self.tol)
        if self.gamma is not None and not isinstance(self.gamma, str):
            _positive("gamma", self.gamma)
        if self.slack is not None:
            _number("slack", self.slack)
            if not 0 <= self.slack < math.inf:
                raise ValueError(f"slack: must be finite and not negative, not {self.slack}")
        if self.rank is not None:
            _whole("rank", self.rank)
        _whole("max_iterations", self.max_iterations)
        _choice("on_failure", self.on_failure, ("raise", "warn"))
        _choice("solver", self.solver, ("diw", "cvxopt"))
        _choice("backend", self.backend, ("auto", "numpy", "torch"))


def _number(name: str, value: Any) -> None:
    if not hasattr(value, "__float__") or isinstance(value, bool):
        raise ValueError(f"{name}: must be a number, not {value!r}")


def _positive(name: str, value: Any) -> None:
    _number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: must be positive and finite, not {value}")


def _whole(name: str, value: Any) -> None:
    """A whole number of at least one, of whatever kind."""
    if not hasattr(value, "__index__") or isinstance(value, bool):
        raise ValueError(f"{name}: must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name}: must be at least 1, not {value}")


def _choice(name: str, value: Any, among: tuple[str, ...]) -> None:
    if value not in among:
        *first, last = (repr(name) for name in among)
        raise ValueError(f"{name}: must be {', '.join(first)} or {last}, not {value!r}")
