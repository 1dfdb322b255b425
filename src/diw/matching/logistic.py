"""The ratio by classification: tell trusted from training values, and take the odds.

Where p(z) is the probability that a value z among all n + m is a trusted one, the ratio of the
densities is r(z) = (n/m) · p(z)/(1 − p(z)). Its logarithm is modelled as b + aᵀφ(z) by logistic
regression with the penalty (λ/2)‖a‖² (Qin 1998; Bickel, Brückner & Scheffer 2009; see
regression.py). Three families of φ, from simple to rich:

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
from dataclasses import dataclass, replace

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, Values, like, positive_solver, to_numpy
from diw.matching.features import Features, Standardised, Written, parts
from diw.matching.kernel import gaussian
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem
from diw.matching.ratios import spread_out
from diw.matching.regression import Expansion, Fit, fit
from diw.seeding import numpy_generator

CENTRES = 30
CANDIDATES = 200  # among which the centres are
NARROWER = 4.0  # the second γ that is tried, in units of the median rule's
FEW_COLUMNS = 10  # up to which squares and products are tried: 65 features
MANY_COLUMNS = 200  # beyond which as many leading directions stand for the columns
CHOOSING = 1000  # training values, and trusted ones, at most, that choose λ and the family
FACTOR, REACH = math.sqrt(10.0), 3
"""The step of λ in its search, and how many steps lead from one fit to the next."""
MARGIN = 0.5  # standard errors by which a smaller λ must be likelier
SMALLEST, LARGEST = 1e-3, 1e4  # of λ
DOUBT = 2.5  # standard deviations of the score test beyond which richer families are tried
LIGHT = 0.3  # the λ of that test
ROUGHLY = 1e-3  # the residual that is enough to choose by
OFF = 100.0  # spreads from 0 beyond which a column is squared only once it is standardised
FLAT = 1e-13  # a column whose spread is this small beside its values is constant


@dataclass(frozen=True)
class Kind:
    """Features φ of one kind."""

    size: int
    fill: Callable[[FloatArray, FloatArray], None]
    """Writes those of values (N, d) into an array (size, N)."""


@dataclass(frozen=True)
class Family:
    """Features of one or several kinds."""

    kinds: tuple[Kind, ...]
    factor: float = 0.0
    """γ in units of the problem's; 0 without a kernel."""
    standard: tuple[FloatArray, FloatArray] | None = None
    """Where the columns, standardised, are the features: their centre and scale, (d,) each."""

    def features(self, values: FloatArray) -> FloatArray:
        """All of them, after a row of ones: (1 + p, N)."""
        X = np.empty((1 + sum(kind.size for kind in self.kinds), len(values)))
        X[0] = 1.0
        for part in parts(len(values)):
            end = 1
            for kind in self.kinds:
                start, end = end, end + kind.size
                kind.fill(values[part], X[start:end, part])
        return X

    def of_many(self, values: FloatArray) -> Features:
        """The same, without a copy of the values where none is needed."""
        if self.standard is None:
            return Written(self.features(values))
        return Standardised(values.T, *self.standard)


def families(z: FloatArray, gamma: float, fixed: bool) -> list[Family]:
    """From simple to rich, for values like `z` (N, d); with a `fixed` γ only its kernels."""
    each = np.full(len(z), 1.0 / len(z))
    centre = each @ z  # takes less time than z.mean(0)
    squares = z - centre
    squares *= squares
    spread = np.sqrt(each @ squares)
    varies = spread > FLAT * np.abs(centre)
    size = int(varies.sum())

    def fill_standard(values: FloatArray, out: FloatArray) -> None:
        columns = values.T if varies.all() else values.T[varies]
        np.subtract(columns, centre[varies, None], out=out)
        out *= 1.0 / spread[varies, None]

    def standard(values: FloatArray) -> FloatArray:
        out = np.empty((size, len(values)))
        fill_standard(values, out)
        return out

    def fill_products(values: FloatArray, out: FloatArray) -> None:
        columns, done = standard(values), 0
        for i in range(size):
            done += size - i
            np.multiply(columns[i:], columns[i], out=out[done - size + i : done])

    linear = Kind(size, fill_standard)
    if size > MANY_COLUMNS:
        turn = leading(standard(z).T, MANY_COLUMNS).T
        linear = Kind(MANY_COLUMNS, lambda values, out: np.copyto(out, turn @ standard(values)))
    products = Kind(size * (size + 1) // 2, fill_products)
    polynomial = (linear, products) if 0 < size <= FEW_COLUMNS else (linear,)
    simple = [Family(polynomial[: 1 + k]) for k in range(len(polynomial))]
    near = varies & (np.abs(centre) <= OFF * spread)
    if near.all() and size <= MANY_COLUMNS:
        simple[0] = replace(simple[0], standard=(centre, 1.0 / spread))
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


def kernels(centres: FloatArray, gamma: float) -> Kind:
    """L⁻¹k(c, z) with LLᵀ = k(c, c): the kernel's space, as far as the centres span it."""

    def fill(values: FloatArray, out: FloatArray) -> None:
        own = to_numpy(gaussian(NUMPY.array(centres), NUMPY.array(centres), gamma))
        L = np.linalg.cholesky(own + 1e-8 * len(own) * np.eye(len(own)))
        across = to_numpy(gaussian(NUMPY.array(centres), NUMPY.array(values), gamma))
        np.matmul(np.linalg.inv(L), across, out=out)

    return Kind(len(centres), fill)


def logistic(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """The ratio at the training values, λ and the family by the likelihood left out."""
    z, n = to_numpy(problem.z), problem.n
    z = z[:, None] if z.ndim == 1 else z
    m = len(z) - n
    y = np.repeat([0.0, 1.0], [n, m])
    rows = _some(n, m) if max(n, m) > CHOOSING else slice(None)
    chosen, some_y = z[rows], y[rows]
    offered = families(chosen, problem.gamma, options.gamma is not None)
    if options.features == "linear":
        offered = offered[:1]
    family, some, rough, spent = _choose(offered, chosen, some_y, options.penalty)
    X, model = (Written(some), rough.model) if len(chosen) == len(z) else (family.of_many(z), None)
    start = rough.a.copy()
    start[0] += math.log(m / n) - math.log(some_y.sum() / (1.0 - some_y).sum())
    found = fit(X, y, rough.penalty, start, 0.1 * options.tol, options.max_iterations, model)
    solved = found.residual <= options.tol
    steps = spent + found.steps
    log_ratio = found.log_odds[:n] - math.log(m / n)
    w = np.minimum(np.exp(np.minimum(log_ratio, math.log(problem.bound))), problem.bound)
    match = Match(
        weights=like(z_train, NUMPY.array(w), problem.bound),
        status="optimal" if solved else f"not solved to tol={options.tol:g} in {steps} iterations",
        iterations=steps,
        gamma=problem.given_gamma * family.factor,
        rank=len(some) - 1,
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
    generator = numpy_generator(0, "values that choose a family")

    def among(size: int) -> np.ndarray:
        return np.sort(generator.choice(size, min(size, CHOOSING), replace=False, shuffle=False))

    return np.concatenate([among(n), n + among(m)])


def _choose(
    among: list[Family], z: FloatArray, y: FloatArray, penalty: float | None
) -> tuple[Family, FloatArray, Fit, int]:
    """The simplest family that the best does not surpass by more than one standard error.

    Returns:
        The family, its features of z, its fit, and the Newton steps of all.
    """
    features = [among[0].features(z)]
    if len(among) == 1 and penalty is not None:
        found = fit(Written(features[0]), y, penalty, _start(features[0], y), ROUGHLY, 100)
        return among[0], features[0], found, found.steps
    tried = [_best_penalty(features[0], y, penalty)]
    pure = [family for family in among[1:] if family.factor != 1.0]  # narrow kernels see for wide
    more = [kind for family in pure for kind in family.kinds if kind not in among[0].kinds]
    kinds = [Family((kind,)).features(z)[1:] for kind in more]
    if kinds and max(doubts(features[0], y, tried[0][0], kinds)) > DOUBT:
        features += [family.features(z) for family in among[1:]]
        tried += [_best_penalty(X, y, penalty) for X in features[1:]]
    best = max((scores for _, scores, _ in tried), key=lambda scores: float(scores.mean()))
    steps = sum(spent for *_, spent in tried)
    for family, X, (found, scores, _) in zip(among, features, tried, strict=False):
        if _lead(best, scores) <= 1.0:
            return family, X, found, steps
    raise AssertionError("the best leads itself by nothing")


def _lead(scores: FloatArray, others: FloatArray) -> float:
    """How much larger the mean of these scores (N,) is than of others, in standard errors."""
    lead = scores - others
    return float(lead.mean()) / max(float(lead.std()) / math.sqrt(len(lead)), FLAT)


def doubts(X: FloatArray, y: FloatArray, found: Fit, kinds: list[FloatArray]) -> list[float]:
    """How much each kind of features (·, N) would add to a fit, by a score test (Rao 1948).

    The gradient s along new features, freed of the old ones, has mean 0 and covariance V where
    the model holds. sᵀ(V + λI)⁻¹s is twice what one Newton step along them promises to gain.
    The kinds are overwritten: new memory takes longer than the test.

    Returns:
        For each how far that is above its mean, in standard deviations.
    """
    root, missing = np.sqrt(found.p * (1.0 - found.p)), y - found.p
    old, slope = X * root, X @ missing
    solve = positive_solver(NUMPY, lambda: NUMPY.array(old @ old.T))
    above: list[float] = []
    for kind in kinds:
        gradient, new = kind @ missing, np.multiply(kind, root, out=kind)
        shared = old @ new.T
        across = to_numpy(solve(NUMPY.array(shared.copy())))
        above.append(_doubt(gradient - slope @ across, new @ new.T - shared.T @ across))
    return above


def _doubt(s: FloatArray, V: FloatArray) -> float:
    """sᵀ(V + λI)⁻¹s: with A = (V + λI)⁻¹V, its mean is tr A and its variance 2 tr A²."""
    one, solve = np.eye(len(s)), positive_solver(NUMPY, lambda: NUMPY.array(V.copy()), LIGHT)
    inverse = to_numpy(solve(NUMPY.array(one)))
    A, gain = one - LIGHT * inverse, float(s @ inverse @ s)
    return (gain - float(A.trace())) / math.sqrt(2.0 * float((A * A.T).sum()) + FLAT)


def _start(X: FloatArray, y: FloatArray) -> FloatArray:
    """(p,) the coefficients of a constant ratio."""
    start = np.zeros(len(X))
    start[0] = math.log(y.sum() / (1.0 - y).sum())
    return start


def _best_penalty(
    X: FloatArray, y: FloatArray, penalty: float | None
) -> tuple[Fit, FloatArray, int]:
    """Up the likelihood left out, in steps of `FACTOR`: the fit, its scores, all Newton steps.

    The more features, the larger the λ that they need, so the search begins at their number.
    It goes down only on evidence, since large weights do more harm than small ones.
    """
    first = max(1.0, len(X) - 1.0) if penalty is None else float(penalty)
    found = fit(Written(X), y, first, _start(X, y), ROUGHLY, 100)
    around, steps = Expansion(X, y, found), found.steps
    scores, model = around.near(first)[1], around.hessian(first)
    factors = (1.0 / FACTOR, FACTOR) if penalty is None else ()
    while factors:
        moved, best, a = 0, found.penalty, found.a
        for factor in factors:
            while moved < REACH and SMALLEST <= best * factor <= LARGEST:
                there, theirs = around.near(best * factor)
                if _lead(theirs, scores) <= (MARGIN if factor < 1 else 0.0):
                    break
                moved, best, a, scores = moved + 1, best * factor, there, theirs
            if moved:
                factors = (factor,)  # never back
                break
        if moved:
            model = around.hessian(best)
            found = fit(Written(X), y, best, a, ROUGHLY, 100, model)
            steps += found.steps
        if moved < REACH:
            break
        around = Expansion(X, y, found)
        scores, model = around.near(best)[1], around.hessian(best)
    return replace(found, model=model), scores, steps
