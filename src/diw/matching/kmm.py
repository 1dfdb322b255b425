"""Kernel mean matching: `kmm` for one problem, `kmm_batch` for many.

Each call goes the same way: check (problem.py), choose the form of the kernel matrix
(gram.py), solve (newton.py on a factor, dense.py on the matrix; interior.py where asked),
certify (match.py).
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from diw.alerts import warn
from diw.matching.dense import active_set, solve_batched
from diw.matching.deprecated import OLD_OPTIONS, OLD_SOLVERS, match_by_old_name
from diw.matching.gram import Factor, FloatArray, Gram, dense, gram_of
from diw.matching.interior import solve_by_cvxopt, stopped
from diw.matching.match import Match, Solution, Values, certify, settle
from diw.matching.newton import System, solve_system
from diw.matching.problem import Problem, make_problem, parse_rule

Solver = Literal["exact", "stopped", "cvxopt"]
OnFailure = Literal["raise", "warn"]

ONE_THREAD_ROWS = 200_000  # up to this size a second BLAS thread gains a fifth at most


@dataclass(kw_only=True)
class MatchOptions:
    """What a match is: its kernel, its constraints, and who solves it."""

    solvers: ClassVar[tuple[str, ...]] = ("exact", "stopped", "cvxopt")

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
    solver: str = field(default="exact", metadata={"written": {"exact": "diw"}})
    """"exact" solves the match exactly; "stopped" ends early, where the authors' solver ends, as
    the paper's results ask; "cvxopt" is the authors' solver itself (extra `released`)."""

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_positive("bound", self.bound)
        if self.slack is not None and not 0 <= _number("slack", self.slack) < math.inf:
            raise ValueError(f"slack: must be finite and not negative, not {self.slack}")
        check_positive("ridge", self.ridge)
        if str(self.solver) == "diw":  # the word of specs
            self.solver = "exact"
        check_choice("solver", self.solver, self.solvers)


@dataclass(kw_only=True)
class Options(MatchOptions):
    """How a match is computed, besides what it is."""

    rank: int | None = None
    """The largest rank of the kernel's factor. None is no limit up to 8,192 samples; beyond, 512,
    and for (n, d) values of more than 16,000 samples fewer, at least 100. A limit that cuts the
    kernel short makes the status "approximate"."""
    tol: float = 1e-8
    """The largest relative residual that counts as solved; "exact" alone has one."""
    max_iterations: int = 200
    """Steps of a solver before it gives up."""
    on_failure: OnFailure = "raise"
    """What to do when a match is not solved: raise `MatchingError`, or warn and return the feasible
    weights found."""

    def __post_init__(self) -> None:
        if str(self.solver) == "diw":
            warn(
                "solver='diw' is deprecated and goes with diw 1.0: use solver='exact'",
                DeprecationWarning,
            )
        super().__post_init__()
        check_positive("tol", self.tol)
        if self.rank is not None:
            check_whole("rank", self.rank)
        check_whole("max_iterations", self.max_iterations)
        check_choice("on_failure", self.on_failure, ("raise", "warn"))
        unused = {"stopped": ("tol",), "cvxopt": ("tol", "rank", "max_iterations")}
        for option in fields(self):
            if option.name in unused.get(self.solver, ()):
                check_unused(option.name, getattr(self, option.name), option.default, self.solver)


def kmm(
    z_train: Values,
    z_trusted: Values,
    *,
    gamma: float | str | None = None,
    bound: float = 50.0,
    slack: float | None = None,
    ridge: float = 1e-5,
    solver: Solver = "exact",
    rank: int | None = None,
    tol: float = 1e-8,
    max_iterations: int = 200,
    on_failure: OnFailure = "raise",
    **old: Any,
) -> Match:
    """Weights under which the kernel mean of the training values matches that of the trusted ones.

    Fang et al. 2020, Eq. (10), after Huang et al. 2007. Minimises
    ½wᵀ(K+ωI)w − kᵀw with K_ij = k(z_i, z_j) and
    k_i = (n/m) Σ_j k(z_i, z_j^trusted), over 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        gamma: Width of the kernel exp(−γ‖z−z'‖²): a number, a rule ("quantile:0.01", "median",
            "scale"), or None: "quantile:0.01" for one number per sample, else "median".
        bound: B, the largest weight.
        slack: ε, how far the mean weight may be from one; None is (√n−1)/√n.
        ridge: ω, added to the kernel's diagonal.
        solver: "exact"; "stopped" ends early, where the authors' solver ends; "cvxopt" is theirs.
        rank: The largest rank of the kernel's factor; None is no limit up to 8,192 samples,
            beyond 512 and at least 100. A cut makes the status "approximate".
        tol: The largest relative residual that counts as solved.
        max_iterations: Steps of a solver before it gives up.
        on_failure: "raise" `MatchingError`, or "warn" and return the feasible weights found.
        old: Options of version 0.2, which warn.

    Returns:
        A `Match`; its weights have the kind, device and precision of `z_train`
        (half precisions become float32, whole numbers float64).

    Raises:
        ValueError: An argument cannot work; the message names it.
        MatchingError: The problem was not solved to `tol`; the message has the residuals.
    """
    options: dict[str, Any] = {
        "gamma": gamma, "bound": bound, "slack": slack, "ridge": ridge, "solver": solver,
        "rank": rank, "tol": tol, "max_iterations": max_iterations, "on_failure": on_failure,
    }  # fmt: skip
    return _matches([(z_train, z_trusted)], options | old)[0]


def kmm_batch(
    z_train: Sequence[Values], z_trusted: Sequence[Values], **options: Any
) -> list[Match]:
    """Match each training set to the trusted set at the same place; sizes may differ.

    Fang et al. 2020, Sec. 2: with hidden-layer outputs each class is matched alone. `gamma` and
    `slack` given as rules are evaluated for each problem by itself. Small problems are solved side
    by side, which takes a fraction of the time of one after the other.

    Args:
        z_train: Training values, one (n_c,) or (n_c, d) array or tensor per problem.
        z_trusted: As many arrays of trusted values.
        options: The keywords of `kmm`, which hold for every problem.

    Raises:
        ValueError: The two sequences differ in length, or an argument of `kmm` cannot work.
    """
    if len(z_train) != len(z_trusted):
        raise ValueError(
            f"z_trusted: {len(z_trusted)} sets do not match the {len(z_train)} of z_train"
        )
    return _matches(list(zip(z_train, z_trusted, strict=True)), options)


def _matches(pairs: Sequence[tuple[Values, Values]], options: Mapping[str, Any]) -> list[Match]:
    if options.keys() & OLD_OPTIONS or str(options.get("solver")) in OLD_SOLVERS:
        return match_by_old_name(pairs, options)
    return [solved.match for solved in solve(pairs, Options(**options))]


@dataclass(frozen=True)
class Solved:
    """A problem with its solution, and the match that was made of it."""

    problem: Problem
    gram: Gram
    solution: Solution
    match: Match


def solve(pairs: Sequence[tuple[Values, Values]], options: Options) -> list[Solved]:
    """Match each (z_train, z_trusted) by itself; small problems are solved side by side."""
    outcomes: list[tuple[Solved, bool]] = []
    with blas_threads(*(z for pair in pairs for z in pair)):
        problems = [
            make_problem(
                as_values("z_train", pair[0]),
                as_values("z_trusted", pair[1]),
                gamma=options.gamma,
                ridge=options.ridge,
                bound=options.bound,
                slack=options.slack,
            )
            for pair in pairs
        ]
        if options.bound < 1:
            most = f"{options.bound:g}"
            warn(f"bound: {most} is below one, so the mean weight can be at most {most}")
        grams = [_gram(problem, options) for problem in problems]
        several = options.solver == "exact" and len(problems) > 1
        found = solve_batched(problems, grams) if several else [None] * len(problems)
        for (z, _), problem, gram, early in zip(pairs, problems, grams, found, strict=True):
            solution = early or _solve(problem, gram, options)
            match, solved = certify(problem, gram, solution, z, options.tol)
            outcomes.append((Solved(problem, gram, solution, match), solved))
    for each, solved in outcomes:
        settle(solved, f"kernel mean matching: {each.match.explanation()}", options.on_failure)
    return [each for each, _ in outcomes]


def as_values(name: str, z: Values) -> FloatArray:
    """Values in float64, of shape (n,) or (n, d) with at least one entry."""
    tensor = hasattr(z, "detach")  # asked without importing torch
    if np.ma.is_masked(z):
        raise ValueError(f"{name}: has masked values; drop or fill them")
    if z.is_complex() if tensor else np.iscomplexobj(z):
        raise ValueError(f"{name}: has complex numbers; give real ones")
    if tensor and z.is_meta:
        raise ValueError(f"{name}: is a meta tensor, which has no values")
    if getattr(getattr(z, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(f"{name}: holds dates or durations; give numbers")
    try:
        if tensor:
            z = z.detach().cpu().double().numpy()
        values = np.asarray(z, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name}: is not a dense array of numbers") from None
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"{name}: needs shape (n,) or (n, d) with at least one value, not {tuple(values.shape)}"
        )
    return values


def blas_threads(*values: Values) -> AbstractContextManager[Any]:
    """One BLAS thread for small problems, whatever there is for large ones.

    A match is thousands of small BLAS calls. Several threads gain little on them, and where the
    processor has other work each call waits for the slowest thread: with two threads on two busy
    cores 2,500 × 10 values took 30 s instead of 1 s.
    """
    shapes = [tuple(getattr(z, "shape", ())) for z in values]
    small = all(shape[:1] <= (ONE_THREAD_ROWS,) for shape in shapes)
    return _blas().limit(limits=1) if small else nullcontext()


@cache
def _blas() -> Any:
    """The BLAS libraries of this process; finding them takes 8 ms, a limit 24 µs."""
    import scipy.linalg  # noqa: F401  # pyright: ignore -- so that its BLAS is found, too
    from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

    controller: Any = ThreadpoolController()
    return controller.select(user_api="blas")


def _gram(problem: Problem, options: Options) -> Gram:
    if options.solver == "cvxopt":
        return dense(problem.z, problem.n, problem.gamma)
    return gram_of(problem.z, problem.n, problem.gamma, problem.ridge, options.rank)


def _solve(problem: Problem, gram: Gram, options: Options) -> Solution:
    """One problem by the solver that suits its form, by measurement (docs/matching.md)."""
    if options.solver == "stopped":
        return stopped(problem, gram, options.max_iterations)
    if isinstance(gram, Factor):
        return _solve_factored(problem, gram, options.max_iterations)
    if options.solver == "cvxopt":
        return solve_by_cvxopt(problem, gram)
    return active_set(problem, gram, options.max_iterations)


def _solve_factored(problem: Problem, gram: Factor, max_iterations: int) -> Solution:
    """Solve without the band first; if the sum leaves it, with the sum at the band's nearer end."""
    extra = gram.left if gram.capped else None
    system = System(gram.V, gram.b, problem.ridge, problem.bound, extra=extra)
    point, iterations = solve_system(system, max_iterations)
    total = float(point.w.sum())
    if not problem.low <= total <= problem.high:  # the nearer end binds, by convexity
        end = problem.low if total < problem.low else problem.high
        above = end < total
        point, more = solve_system(replace(system, total=end, above=above), max_iterations)
        iterations += more
    return Solution(point.w, point.F @ gram.V, -point.eta * problem.ridge, iterations)


def _number(name: str, value: Any) -> float:
    """The value of one number of any type."""
    try:
        if isinstance(value, (bool, str)) or getattr(value, "ndim", 0):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last from meta tensors
        shown = " ".join(repr(value).split())
        raise ValueError(f"{name}: must be a number, not {shown[:60]}") from None


def check_gamma(gamma: Any) -> None:
    """A width, a rule, or None."""
    if isinstance(gamma, str):
        parse_rule(gamma)
    elif gamma is not None:
        check_positive("gamma", gamma)


def check_positive(name: str, value: Any) -> None:
    """A finite number above zero."""
    if not 0 < _number(name, value) < math.inf:
        raise ValueError(f"{name}: must be positive and finite, not {value}")


def check_whole(name: str, value: Any) -> None:
    """An integer of any type, at least one."""
    number = _number(name, value)
    if not hasattr(value, "__index__") or not number == int(value):
        raise ValueError(f"{name}: must be a whole number, not {value!r}")
    if number < 1:
        raise ValueError(f"{name}: must be at least 1, not {value}")


def check_choice(name: str, value: Any, among: Sequence[str]) -> None:
    """One of several words."""
    *first, last = among
    if not isinstance(value, str) or value not in among:
        shown, given = ", ".join(repr(word) for word in first), " ".join(repr(value).split())
        choice = f"{shown} or {last!r}" if first else repr(last)
        raise ValueError(f"{name}: must be {choice}, not {given[:60]}")


def check_unused(name: str, value: Any, default: Any, solver: str) -> None:
    """An option that a solver does not read is the default."""
    if value is not default and value != default:
        raise ValueError(f"{name}: solver={solver!r} does not use it; leave it out")
