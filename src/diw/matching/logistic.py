"""The ratio by classification: tell trusted from training values, and take the odds.

Where p(z) is the probability that a value z among all n + m is a trusted one, the ratio of the
densities is r(z) = (n/m) · p(z)/(1 − p(z)). Its logarithm is modelled as b + aᵀφ(z), and

    minimise  Σ log(1 + exp(b + aᵀφ(z_i))) − Σ_trusted (b + aᵀφ(z'_j)) + (λ/2)‖a‖²

by Newton's method: logistic regression (Qin 1998; Bickel, Brückner & Scheffer 2009). Three families
of φ, from simple to rich:

    linear      the columns, standardised: exact where a normal distribution moves
    quadratic   besides their squares and products: exact between any two normal distributions
    kernels     Gaussian kernels at `CENTRES` values, whitened, so that ‖a‖ is the norm of the
                function in the kernel's space: bounded, for heavy tails and odd shapes

λ has the largest likelihood of values left out. So has the family, but a simpler one is kept
unless a richer one is better by more than one standard error, and the others are only tried where
a score test of the linear fit, which takes no other fit, says that there may be more to find.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, Values, like, positive_solver, to_numpy
from diw.matching.kernel import gaussian
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem
from diw.matching.ratios import spread_out
from diw.seeding import numpy_generator

CENTRES = 30
CANDIDATES = 200  # among which the centres are
NARROWER = 4.0  # the second γ that is tried, in units of the median rule's
FEW_COLUMNS = 10  # up to which squares and products are tried: 65 features
MANY_COLUMNS = 200  # beyond which as many leading directions stand for the columns
CHOOSING = 1000  # training values, and trusted ones, at most, that choose λ and the family
FIRST, FACTOR = 10.0, math.sqrt(10.0)
"""The least λ that a search begins at, and its step."""
SMALLEST, LARGEST = 1e-3, 1e4  # of λ
DOUBT = 2.5  # standard deviations of the score test beyond which richer families are tried
LIGHT = 0.3  # the λ of that test
ROUGHLY = 1e-3  # the residual that is enough to choose by
FLAT = 1e-13  # a column whose spread is this small beside its values is constant


@dataclass(frozen=True)
class Fit:
    """The optimum for features X (N, p), whose first column is one, and for one λ."""

    penalty: float
    a: FloatArray
    """(p,) the intercept and the coefficients."""
    log_odds: FloatArray
    """(N,) Xa."""
    p: FloatArray
    """(N,) the probabilities of being a trusted value."""
    objective: float
    """The penalised likelihood, negative, a value."""
    residual: float
    """The largest entry of the gradient, a trusted value."""
    steps: int


def fit(
    X: FloatArray, y: FloatArray, penalty: float, start: FloatArray, tolerance: float, steps: int
) -> Fit:
    """Newton's method with step halving for Σ log(1 + exp(Xa)) − yᵀXa + (λ/2) Σ_{l>0} a_l²."""
    ridge = np.full(X.shape[1], penalty)
    ridge[0] = 0.0
    trusted, taken, last = float(y.sum()), 0, math.inf

    def value(a: FloatArray, log_odds: FloatArray) -> tuple[float, FloatArray]:
        p, likelihood = probability(log_odds, y)
        return float(0.5 * ridge @ (a * a) - likelihood.sum()), p

    a, log_odds = start, X @ start
    objective, p = value(a, log_odds)
    rounding = 1e-15 * (len(y) + abs(objective))
    while True:
        gradient = (p - y) @ X + ridge * a
        residual = float(np.abs(gradient).max()) / trusted
        if residual <= tolerance or taken == steps or 1e-8 >= residual > 0.5 * last:
            break  # the last: rounding hides what is left to gain
        direction = -solver(X, p, ridge)(gradient)
        slope, along, t = float(gradient @ direction), X @ direction, 1.0
        new, p_there = value(a + direction, log_odds + along)
        while new > objective + 1e-4 * t * slope + rounding and t > 1e-9:
            t *= 0.5
            new, p_there = value(a + t * direction, log_odds + t * along)
        a, log_odds = a + t * direction, log_odds + t * along
        objective, p, taken, last = new, p_there, taken + 1, residual
    return Fit(penalty, a, log_odds, p, objective / len(y), residual, taken)


def probability(log_odds: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1/(1 + exp(−x)) and the log-likelihood of y at log-odds x, without overflow."""
    t = np.tanh(0.5 * log_odds)
    return 0.5 + 0.5 * t, np.log(0.5 + 0.5 * np.abs(t)) + y * log_odds - np.maximum(log_odds, 0.0)


def solver(X: FloatArray, p: FloatArray, ridge: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A solver for the Hessian Xᵀ diag(p(1 − p)) X + diag(ridge)."""
    scaled = X * np.sqrt(p * (1.0 - p))[:, None]
    solve = positive_solver(NUMPY, lambda: NUMPY.array(scaled.T @ scaled + np.diag(ridge)))
    return lambda right: to_numpy(solve(NUMPY.array(right)))


def left_out(X: FloatArray, y: FloatArray, found: Fit) -> FloatArray:
    """(N,) the log-likelihood of each value under the model fitted without it, to first order.

    One Newton step from the fit to all leads there: without value i its log-odds change by
    h(p − y)/(1 − p(1 − p)h), where h = xᵀH⁻¹x and H is the Hessian (Pregibon 1981).
    """
    p, size = found.p, X.shape[1]
    ridge = np.full(size, found.penalty)
    ridge[0] = 0.0
    h = np.einsum("ij,ij->i", X @ solver(X, p, ridge)(np.eye(size)), X)
    return probability(found.log_odds + h * (p - y) / (1.0 - p * (1.0 - p) * h), y)[1]


Features = Callable[[FloatArray], FloatArray]
"""A map φ of values (·, d) to features (·, p)."""


@dataclass(frozen=True)
class Family:
    """Features of one or several kinds."""

    kinds: tuple[Features, ...]
    factor: float = 0.0
    """γ in units of the problem's; 0 without a kernel."""

    def features(self, values: FloatArray) -> FloatArray:
        """All of them, after a column of ones."""
        return np.hstack([np.ones((len(values), 1)), *(kind(values) for kind in self.kinds)])


def families(z: FloatArray, gamma: float, fixed: bool) -> list[Family]:
    """From simple to rich, for values like `z` (N, d); with a `fixed` γ only its kernels."""
    centre, spread = z.mean(0), z.std(0)
    varies = spread > FLAT * np.abs(z).max(0)
    left, right = np.triu_indices(int(varies.sum()))

    def standard(values: FloatArray) -> FloatArray:
        scaled = (values - centre) / np.where(varies, spread, 1.0)
        return scaled if varies.all() else scaled[:, varies]

    turn = leading(standard(z), MANY_COLUMNS) if varies.sum() > MANY_COLUMNS else None

    def linear(values: FloatArray) -> FloatArray:
        return standard(values) if turn is None else standard(values) @ turn

    def products(values: FloatArray) -> FloatArray:
        columns = standard(values)
        return columns[:, left] * columns[:, right]

    polynomial = (linear, products) if 0 < varies.sum() <= FEW_COLUMNS else (linear,)
    simple = [Family(polynomial[: 1 + k]) for k in range(len(polynomial))]
    if gamma == 0 or not varies.any():
        return simple
    centres = z[spread_out(z, CENTRES, CANDIDATES)]
    wide, narrow = kernels(centres, gamma), kernels(centres, NARROWER * gamma)
    if fixed:
        return [Family((wide,), 1.0)]
    rich = [Family((wide,), 1.0), Family((wide, *polynomial), 1.0), Family((narrow,), NARROWER)]
    return simple + rich


def leading(z: FloatArray, count: int) -> FloatArray:
    """(d, count) orthonormal directions along which centred values (N, d) vary most.

    A block of random ones, turned there by three power steps (Halko, Martinsson & Tropp 2011). Only
    what they span matters: ‖a‖ is the same in any basis of it.
    """
    basis = numpy_generator(0, "leading directions").normal(size=(z.shape[1], count))
    for _ in range(3):
        basis = np.linalg.qr(z.T @ (z @ basis))[0]
    return basis


def kernels(centres: FloatArray, gamma: float) -> Features:
    """L⁻¹k(c, z) with LLᵀ = k(c, c): the kernel's space, as far as the centres span it."""
    size = len(centres)
    own = to_numpy(gaussian(NUMPY.array(centres), NUMPY.array(centres), gamma))
    whiten = np.linalg.inv(np.linalg.cholesky(own + 1e-8 * size * np.eye(size))).T

    def features(values: FloatArray) -> FloatArray:
        across = to_numpy(gaussian(NUMPY.array(values), NUMPY.array(centres), gamma))
        return across @ whiten

    return features


def logistic(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """The ratio at the training values, λ and the family by the likelihood left out."""
    z, n = to_numpy(problem.z), problem.n
    z = z[:, None] if z.ndim == 1 else z
    m = len(z) - n
    y = np.repeat([0.0, 1.0], [n, m])
    rows = _some(n, m) if max(n, m) > CHOOSING else slice(None)
    fixed = options.gamma is not None
    offered = families(z[rows], problem.gamma, fixed)
    family, rough, spent = _choose(offered, z[rows], y[rows], options.penalty)
    X = family.features(z)
    start = rough.a.copy()
    start[0] += math.log(m / n) - math.log(y[rows].sum() / (1.0 - y[rows]).sum())
    found = fit(X, y, rough.penalty, start, min(0.01 * options.tol, 1e-11), options.max_iterations)
    solved = found.residual <= options.tol
    steps = spent + found.steps
    log_ratio = found.log_odds[:n] - math.log(m / n)
    w = np.minimum(np.exp(np.minimum(log_ratio, math.log(problem.bound))), problem.bound)
    match = Match(
        weights=like(z_train, NUMPY.array(w), problem.bound),
        status="optimal" if solved else f"not solved to tol={options.tol:g} in {steps} iterations",
        iterations=steps,
        gamma=problem.given_gamma * family.factor,
        rank=X.shape[1] - 1,
        objective=found.objective,
        primal_residual=0.0,
        dual_residual=found.residual,
        complementarity=0.0,
        trace_error=0.0,
        error_bound=math.inf,
        penalty=found.penalty,
    )
    return match, solved


def _some(n: int, m: int) -> np.ndarray:
    """The places of up to `CHOOSING` values of either kind."""
    parts = [(0, n), (n, m)]
    generator = numpy_generator(0, "values that choose a family")
    chosen = [first + np.sort(generator.permutation(size)[:CHOOSING]) for first, size in parts]
    return np.concatenate(chosen)


def _choose(
    among: list[Family], z: FloatArray, y: FloatArray, penalty: float | None
) -> tuple[Family, Fit, int]:
    """The simplest family that the best does not surpass by more than one standard error.

    Returns:
        The family, its fit, and the Newton steps of all.
    """
    X = among[0].features(z)
    tried = [_best_penalty(X, y, penalty)]
    pure = [family for family in among[1:] if family.factor != 1.0]  # narrow kernels see for wide
    kinds = [kind(z) for family in pure for kind in family.kinds if kind not in among[0].kinds]
    if kinds and max(doubts(X, y, tried[0][0], kinds)) > DOUBT:
        tried += [_best_penalty(family.features(z), y, penalty) for family in among[1:]]
    best = max((scores for _, scores, _ in tried), key=lambda scores: float(scores.mean()))
    steps = sum(spent for *_, spent in tried)
    for family, (found, scores, _) in zip(among, tried, strict=False):
        lead = best - scores
        if lead.mean() <= lead.std() / math.sqrt(len(lead)):
            return family, found, steps
    raise AssertionError("the best leads itself by nothing")


def doubts(X: FloatArray, y: FloatArray, found: Fit, kinds: list[FloatArray]) -> list[float]:
    """How much each kind of features (N, ·) would add to a fit, by a score test (Rao 1948).

    The gradient s along new features, freed of the old ones, has mean 0 and covariance V where
    the model holds. sᵀ(V + λI)⁻¹s is twice what one Newton step along them promises to gain.

    Returns:
        For each how far that is above its mean, in standard deviations.
    """
    both = np.hstack([X, *kinds])
    gradient = (y - found.p) @ both
    both *= np.sqrt(found.p * (1.0 - found.p))[:, None]
    H, old = both.T @ both, X.shape[1]
    solve = positive_solver(NUMPY, lambda: NUMPY.array(H[:old, :old].copy()))
    across = to_numpy(solve(NUMPY.array(H[:old, old:].copy())))
    s, V = gradient[old:] - gradient[:old] @ across, H[old:, old:] - H[old:, :old] @ across
    ends = np.cumsum([kind.shape[1] for kind in kinds])[:-1]
    return [_doubt(s[part], V[np.ix_(part, part)]) for part in np.split(np.arange(len(s)), ends)]


def _doubt(s: FloatArray, V: FloatArray) -> float:
    """sᵀ(V + λI)⁻¹s: with A = (V + λI)⁻¹V, its mean is tr A and its variance 2 tr A²."""
    solved = np.linalg.solve(V + LIGHT * np.eye(len(s)), np.column_stack([V, s]))
    A, gain = solved[:, :-1], float(s @ solved[:, -1])
    return (gain - float(A.trace())) / math.sqrt(2.0 * float((A * A.T).sum()) + FLAT)


def _best_penalty(
    X: FloatArray, y: FloatArray, penalty: float | None
) -> tuple[Fit, FloatArray, int]:
    """Up the likelihood left out, in steps of `FACTOR`: the fit, its scores, all Newton steps.

    The more features, the larger the λ that they need, so the search begins at their number.
    """
    start = np.zeros(X.shape[1])
    start[0] = math.log(y.sum() / (1.0 - y).sum())
    first = max(FIRST, X.shape[1] - 1.0) if penalty is None else float(penalty)
    found = fit(X, y, first, start, ROUGHLY, 100)
    scores, steps = left_out(X, y, found), found.steps
    for factor in (1.0 / FACTOR, FACTOR) if penalty is None else ():
        moved = False
        while SMALLEST <= found.penalty * factor <= LARGEST:
            new = fit(X, y, found.penalty * factor, found.a, ROUGHLY, 100)
            theirs, steps = left_out(X, y, new), steps + new.steps
            if theirs.mean() <= scores.mean():
                break
            found, scores, moved = new, theirs, True
        if moved:
            break
    return found, scores, steps
