"""Kernel mean matching: `kmm` for one problem, `kmm_batch` for many, `KMM` as an estimator.

Each call goes the same way: check (problem.py), choose the form of the kernel matrix
(gram.py), solve (newton.py and interior_point.py on a factor, active_set.py or batched.py on
the matrix; stopped.py, cvxopt.py or pgd.py where asked), certify (match.py). The other
estimators solve problems of their own (penalised.py, ratios.py, logistic.py,
isotonic.py).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self

import numpy as np

from diw.matching.active_set import active_set
from diw.matching.backend import Values
from diw.matching.batched import solve_batched
from diw.matching.cvxopt import solve_by_cvxopt
from diw.matching.gram import Factor, Gram, dense, gram_of
from diw.matching.interior_point import interior_point
from diw.matching.isotonic import isotonic
from diw.matching.logistic import logistic
from diw.matching.match import Match, Solution, certify, settled
from diw.matching.newton import DualPoint, System, newton
from diw.matching.options import Options, with_keywords
from diw.matching.penalised import penalised
from diw.matching.pgd import projected_gradient
from diw.matching.problem import Problem, make_problem
from diw.matching.ratios import kliep, ulsif
from diw.matching.stopped import stopped

NEWTON_RANK = 40  # up to this rank Newton's method alone is mostly fastest
NEWTON_STEPS = 30  # if it has not ended by then, it will not soon
SAMPLE = 20_000  # samples of the thinned problem that a very large one starts from
ONE_THREAD_ROWS = 200_000  # up to this size a second BLAS thread gains a fifth at most


@with_keywords(Options)
def kmm(z_train: Values, z_trusted: Values, options: Options) -> Match:
    """Weights under which the kernel mean of the training values matches that of the trusted ones.

    Fang et al. 2020, Eq. (10), after Huang et al. 2007. Minimises
    ½wᵀ(K+ωI)w − kᵀw with K_ij = k(z_i, z_j) and
    k_i = (n/m) Σ_j k(z_i, z_j^trusted), over 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        options: As keywords: the fields of `diw.matching.Options`, explained there and in
            docs/matching.md.

    Returns:
        A `Match`; its weights have the kind, device and precision of `z_train`
        (half precisions become float32, whole numbers float64).

    Raises:
        ValueError: An argument cannot work; the message names it.
        MatchingError: The problem was not solved to `tol`; the message has the residuals.
    """
    return _match_all([(z_train, z_trusted)], options)[0]


@with_keywords(Options)
def kmm_batch(
    z_train: Sequence[Values], z_trusted: Sequence[Values], options: Options
) -> list[Match]:
    """Match each training set to the trusted set at the same place; sizes may differ.

    Fang et al. 2020, Sec. 2: with hidden-layer outputs each class is matched alone. The
    options are those of `kmm` and hold for every problem; `gamma` and `slack`
    given as rules are evaluated for each problem by itself. Small problems are solved side
    by side, which takes a fraction of the time of one after the other.

    Args:
        z_train: Training values, one (n_c,) or (n_c, d) array or tensor per problem.
        z_trusted: As many arrays of trusted values.
        options: As keywords, see `kmm`.

    Raises:
        ValueError: The two sequences differ in length, or an argument of `kmm` cannot work.
    """
    if len(z_train) != len(z_trusted):
        raise ValueError(
            f"z_trusted: {len(z_trusted)} sets do not match the {len(z_train)} of z_train"
        )
    return _match_all(list(zip(z_train, z_trusted, strict=True)), options)


@dataclass(kw_only=True, repr=False, eq=False)
class KMM(Options):
    """Weights for training samples so that they look like the trusted ones.

    The parameters are those of `diw.kmm`. The class keeps scikit-learn's
    conventions (`get_params`, `set_params`, `clone`, trailing underscores)
    without importing it.

    Attributes:
        weights_: (n,) the weights of the training samples.
        feature_names_in_: The columns' names, where `X_train` is a DataFrame with names.
        match_: The whole `Match`, with status, residuals and error bound.
        gamma_: The kernel's γ that was used.
        n_features_in_: Columns of `X_train`.

    Examples:
        >>> import numpy as np
        >>> X_train, X_trusted = np.arange(8.0).reshape(4, 2), np.ones((3, 2))
        >>> KMM(bound=10).fit(X_train, X_trusted).weights_.shape
        (4,)
    """

    def __post_init__(self) -> None:
        """Leave the checks to `fit`, as scikit-learn's conventions ask."""

    def fit(self, X_train: Values, X_trusted: Values) -> Self:
        """Match the training samples to the trusted ones.

        Args:
            X_train: (n,) or (n, d) training samples; a DataFrame's columns go by name.
            X_trusted: (m,) or (m, d) trusted samples.
        """
        names, X_trusted = _by_name(X_train, X_trusted)
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.match_: Match = kmm(X_train, X_trusted, **self.get_params())
        self.weights_: Values = self.match_.weights
        self.gamma_: float = self.match_.gamma
        shape = np.shape(X_train)
        self.n_features_in_: int = shape[1] if len(shape) > 1 else 1
        return self

    def fit_weights(self, X_train: Values, X_trusted: Values) -> Values:
        """`fit`, then return the weights, for use as another estimator's `sample_weight`."""
        return self.fit(X_train, X_trusted).weights_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there for scikit-learn and changes nothing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name.

        Raises:
            ValueError: There is no such parameter.
        """
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                kind = type(self).__name__
                raise ValueError(f"{name}: is not a parameter of {kind}; choose from {known}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks: fitted with two tables of numbers, no labels, finite."""
        from sklearn.utils import (  # pyright: ignore[reportMissingTypeStubs]
            InputTags,
            Tags,
            TargetTags,
        )

        return Tags(None, TargetTags(required=False), input_tags=InputTags(one_d_array=True))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "match_")

    def __repr__(self) -> str:
        values = ((f, getattr(self, f.name)) for f in fields(self))
        changed = [f"{field.name}={value!r}" for field, value in values if value != field.default]
        return f"{type(self).__name__}({', '.join(changed)})"


_OTHERS: dict[str, Callable[[Problem, Options, Values], tuple[Match, bool]]] = {
    "el": penalised,
    "entropy": penalised,
    "chi2": penalised,
    "ulsif": ulsif,
    "kliep": kliep,
    "logistic": logistic,
    "isotonic": isotonic,
}


def _by_name(X_train: Any, X_trusted: Any) -> tuple[list[str] | None, Any]:
    """The names of the training columns, and the trusted columns in their order.

    Raises:
        ValueError: Both have names, and they are not the same.
    """
    names = _names(X_train)
    theirs = None if names is None else _names(X_trusted)
    if names is None or theirs is None or names == theirs:
        return names, X_trusted
    if sorted(names) != sorted(theirs):
        lacking = [name for name in names if name not in theirs]
        word, which = ("lacks", lacking) if lacking else ("also has", set(theirs) - set(names))
        raise ValueError(f"X_trusted: {word} the column {next(iter(which))!r}")
    return names, X_trusted[names]


def _names(X: Any) -> list[str] | None:
    """The columns' names of a DataFrame, if all are text."""
    names: list[Any] = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _match_all(pairs: Sequence[tuple[Values, Values]], options: Options) -> list[Match]:
    """Match each (z_train, z_trusted) by itself; small problems are solved side by side."""
    problems: list[Problem] = []
    with _blas_threads(pairs):
        for z_train, z_trusted in pairs:  # no comprehension: its frame would hide who is warned
            problems.append(make_problem(z_train, z_trusted, options))
        outcomes = _outcomes(pairs, problems, options)
    matches: list[Match] = []
    for match, solved in outcomes:
        matches.append(settled(match, solved, options, stacklevel=4))
    return matches


def _blas_threads(pairs: Sequence[tuple[Values, Values]]) -> AbstractContextManager[Any]:
    """One BLAS thread for small problems, whatever there is for large ones.

    A match is thousands of small BLAS calls. Several threads gain little on them, and where the
    processor has other work each call waits for the slowest thread: with two threads on two busy
    cores 2,500 × 10 values took 30 s instead of 1 s.
    """
    shapes = [tuple(getattr(z, "shape", ())) for pair in pairs for z in pair]
    small = all(shape[:1] <= (ONE_THREAD_ROWS,) for shape in shapes)
    return _blas().limit(limits=1) if small else nullcontext()


@cache
def _blas() -> Any:
    """The BLAS libraries of this process; finding them takes 8 ms, a limit 24 µs."""
    import scipy.linalg  # noqa: F401  # pyright: ignore -- so that its BLAS is found, too
    from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

    controller: Any = ThreadpoolController()
    return controller.select(user_api="blas")


def _outcomes(
    pairs: Sequence[tuple[Values, Values]], problems: Sequence[Problem], options: Options
) -> list[tuple[Match, bool]]:
    """What the asked solver finds for each problem, and whether that solves it."""
    if options.solver in _OTHERS:
        solve = _OTHERS[options.solver]
        return [
            solve(problem, options, z_train)
            for (z_train, _), problem in zip(pairs, problems, strict=True)
        ]
    outcomes: list[tuple[Match, bool]] = []
    for (z_train, _), problem, gram, found in zip(
        pairs, problems, *_solutions(problems, options), strict=True
    ):
        solution = found or _solve(problem, gram, options)
        outcomes.append(certify(problem, gram, solution, z_train, options))
    return outcomes


def _solutions(
    problems: Sequence[Problem], options: Options
) -> tuple[list[Gram], list[Solution | None]]:
    """The kernel matrices of the problems, and the solutions of those solved side by side."""
    if options.solver == "cvxopt":
        grams: list[Gram] = [dense(problem) for problem in problems]
    else:
        grams = [gram_of(problem, options.rank) for problem in problems]
    if options.solver == "diw" and len(problems) > 1:
        return grams, solve_batched(problems, grams)
    return grams, [None] * len(problems)


def _solve(problem: Problem, gram: Gram, options: Options) -> Solution:
    """One problem by the solver that suits its form, by measurement (docs/matching.md)."""
    if options.solver == "stopped":
        return stopped(problem, gram, options.max_iterations)
    if options.solver == "pgd":
        return projected_gradient(problem, gram, options)
    if isinstance(gram, Factor):
        return _solve_factored(problem, gram, options.max_iterations)
    if options.solver == "cvxopt":
        return solve_by_cvxopt(problem, gram)
    return active_set(problem, gram, options.max_iterations)


def _solve_factored(problem: Problem, gram: Factor, max_iterations: int) -> Solution:
    """Solve without the band first; if the sum leaves it, with the sum at the band's nearer end."""
    extra = gram.left if gram.capped else None
    system = System(problem.xp, gram.V, gram.b, problem.ridge, problem.bound, extra=extra)
    point, iterations = solve_system(system, max_iterations)
    total = float(point.w.sum())
    if not problem.low <= total <= problem.high:  # the nearer end binds, by convexity
        end = problem.low if total < problem.low else problem.high
        point, more = solve_system(replace(system, total=end), max_iterations)
        iterations += more
    return Solution(point.w, point.F @ gram.V, -point.eta * problem.ridge, iterations)


def solve_system(system: System, max_iterations: int) -> tuple[DualPoint, int]:
    """Newton's method; where its path is long, after an interior point."""
    start, spent, large = system.point(system.b * 0.0, 0.0), 0, system.size > 4 * SAMPLE
    if large:  # begin at the solution of a thinned problem
        thinned, _ = solve_system(system.thinned(system.size // SAMPLE), max_iterations)
        start = system.point(thinned.y, thinned.eta)
    if large or len(system.V) <= NEWTON_RANK:
        patience = 2 * NEWTON_STEPS if large else NEWTON_STEPS  # a good start: 30 to 35 steps
        found, spent, done = newton(system, start, min(patience, max_iterations))
        if done:
            return found, spent
    start, iterations = interior_point(system, max_iterations)
    found, last, _ = newton(system, start, max_iterations)
    return found, spent + iterations + last
