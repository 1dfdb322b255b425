"""Weights that match up to a penalty: empirical likelihood, entropy and least squares.

With MMD(w) = ‖(1/n) Σ w_i φ(z_i) − (1/m) Σ φ(z'_j)‖, the distance of the kernel means,

    minimise  ½ MMD²(w) + (ν/n) Σ p(w_i)   over  0 ≤ w ≤ B,

    "el":       p(w) = w − 1 − log w        (empirical likelihood)
    "entropy":  p(w) = w log w − w + 1
    "chi2":     p(w) = ½(w − 1)²           (kernel mean matching with a ridge that draws to one)

All keep weights near one where the data do not say otherwise, and the first two keep them
positive. On a factor K ≈ VᵀV with c the trusted mean (r,), the optimum is a function of
y = c − Vw/n alone: p'(w_i) = v_iᵀy/ν, so that w_i is an increasing function of u_i = v_iᵀy/ν,
cut at B (and at 0), and y solves

    F(y) = y − c + (1/n) V w(Vᵀy/ν) = 0,

r equations, the gradient of a convex function: Newton's method with a line search.

ν is given, or follows from the discrepancy principle: the largest ν at which MMD² is at most
(1 − ‖c‖²)/m, what the trusted mean is expected to be off by itself. MMD² grows with ν.

A value may stand for several samples (its mass): sums over samples become sums over masses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, Values, like, positive_solver, to_numpy
from diw.matching.gram import Factor, pivoted_cholesky
from diw.matching.kernel import EPSILON
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem

FEW = 512  # values whose factor may have full rank
RANK = 256  # of more: 512 rows change the error to the true ratio by less than its spread
LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with
SMALLEST, LARGEST = 1e-8, 1e6  # of ν, where the discrepancy principle looks
ROUGHLY = 1e-2  # relative, of F where ν is still to change
TOGETHER = 12  # steps for y and ν together, which mostly takes five
ACCURACY = 1e-6  # relative, of the MMD² that the discrepancy principle asks for


@dataclass(frozen=True)
class Penalty:
    """p by what Newton's method needs of it."""

    value: Callable[[FloatArray], FloatArray]
    """p(w)."""
    weights: Callable[[FloatArray, float], FloatArray]
    """w(u), the inverse of p', cut at B."""
    slope: Callable[[FloatArray], FloatArray]
    """w'(u) as a function of w."""
    curvature: Callable[[float], float]
    """The smallest p'' on (0, B]."""


def _cut(
    weights: Callable[[FloatArray], FloatArray], u: FloatArray, most: float, bound: float
) -> FloatArray:
    """w(u) up to `most`, from there on exactly B: that tells which weights no longer move."""
    return np.where(u < most, np.minimum(weights(np.minimum(u, most)), bound), bound)


PENALTIES = {
    "el": Penalty(
        value=lambda w: w - 1.0 - np.log(w),
        weights=lambda u, bound: _cut(lambda v: 1.0 / (1.0 - v), u, 1.0 - 1.0 / bound, bound),
        slope=lambda w: w * w,
        curvature=lambda bound: 1.0 / (bound * bound),
    ),
    "entropy": Penalty(
        value=lambda w: w * np.log(np.maximum(w, 1e-300)) - w + 1.0,
        weights=lambda u, bound: _cut(np.exp, u, math.log(bound), bound),
        slope=lambda w: w,
        curvature=lambda bound: 1.0 / bound,
    ),
    "chi2": Penalty(
        value=lambda w: 0.5 * (w - 1.0) ** 2,
        weights=lambda u, bound: np.clip(1.0 + u, 0.0, bound),
        slope=lambda w: (w > 0).astype(np.float64),
        curvature=lambda bound: 1.0,
    ),
}


@dataclass(frozen=True)
class Masses:
    """How many samples each value stands for."""

    train: FloatArray
    """(n,)"""
    trusted: FloatArray
    """(m,)"""


@dataclass(frozen=True)
class _Dual:
    """The problem on a factor."""

    penalty: Penalty
    V: FloatArray
    """(r, n)"""
    c: FloatArray
    """(r,) the trusted mean."""
    share: FloatArray
    """(n,) the mass of each training value, divided by their sum."""
    bound: float

    def at(self, y: FloatArray, nu: float) -> "_Point":
        """The point y with what follows from it."""
        w = self.penalty.weights((y @ self.V) / nu, self.bound)
        return _Point(y, nu, w, y - self.c + self.V @ (self.share * w))

    def jacobian(self, point: "_Point") -> Callable[[FloatArray], FloatArray]:
        """A solver for F' = I + (1/ν) V diag(share·w') Vᵀ."""
        scaled = self.V * np.sqrt(self.share * self.slopes(point) / point.nu)
        solve = positive_solver(NUMPY, lambda: NUMPY.array(scaled @ scaled.T), 1.0)
        return lambda right: to_numpy(solve(NUMPY.array(right)))

    def pull(self, point: "_Point") -> FloatArray:
        """(r,) −dF / d log ν."""
        u = (point.y @ self.V) / point.nu
        return self.V @ (self.share * self.slopes(point) * u)

    @property
    def scale(self) -> float:
        """What F is small beside."""
        return max(float(np.abs(self.c).max(initial=0.0)), 1e-100)

    def slopes(self, point: "_Point") -> FloatArray:
        """(n,) w'(u), 0 where a weight is at B."""
        return self.penalty.slope(point.w) * (point.w < self.bound)


@dataclass(frozen=True)
class _Point:
    y: FloatArray
    nu: float
    w: FloatArray
    F: FloatArray

    @property
    def mmd(self) -> float:
        """MMD² of the weights."""
        residual = self.y - self.F
        return float(residual @ residual)


def penalised(
    problem: Problem, options: Options, z_train: Values, masses: Masses | None = None
) -> tuple[Match, bool]:
    """The match of `options.solver`, one of `PENALTIES`, and whether it counts as solved."""
    n, m = problem.n, len(problem.z) - problem.n
    if masses is None:
        masses = Masses(np.ones(n), np.ones(m))
    factor, c = _factor(problem, masses.trusted, options.rank)
    penalty, V = PENALTIES[options.solver], to_numpy(factor.V)
    share = masses.train / masses.train.sum()
    dual = _Dual(penalty, V, c, share, problem.bound)
    steps, status = 0, "optimal"
    if options.penalty is not None:
        point, steps = _newton(dual, dual.at(0.0 * c, float(options.penalty)), options)
    else:
        wanted = max(1.0 - float(c @ c), 0.0) / float(masses.trusted.sum())
        point, steps, reached = _by_discrepancy(dual, wanted, options)
        if not reached:
            status = f"optimal at the smallest penalty, {SMALLEST:g}: the discrepancy is not met"
    dual_residual = float(np.abs(point.F).max(initial=0.0)) / dual.scale
    solved = dual_residual <= options.tol
    if not solved:
        status = f"not solved to tol={options.tol:g} in {steps} iterations"
    elif factor.capped:
        status = f"approximate, {status}" if status != "optimal" else "approximate"
    return _match(problem, factor, dual, point, status, steps, dual_residual, z_train), solved


def _factor(problem: Problem, mass: FloatArray, rank: int | None) -> tuple[Factor, FloatArray]:
    """The factor and the trusted mean c (r,).

    A penalty needs the kernel far less accurately than an exact match, so that the rank is capped
    earlier: beyond `RANK` the status is "approximate". Few values are never cut.
    """
    size = len(problem.z)
    rows = min(rank or (RANK if size > FEW else size), size)
    factor = pivoted_cholesky(problem, rows, mass=problem.xp.array(mass))
    return factor, to_numpy(factor.b) / problem.n


def _newton(
    dual: _Dual, point: _Point, options: Options, accuracy: float = 1e-11
) -> tuple[_Point, int]:
    """Newton's method from a point, for its ν; the last point and the number of steps."""
    small = max(min(0.01 * options.tol, 1e-11), accuracy) * dual.scale
    for step in range(options.max_iterations):
        if np.abs(point.F).max(initial=0.0) <= small:
            return point, step
        direction = -dual.jacobian(point)(point.F)
        new = _along(dual, point, direction)
        if new is point:
            return point, step + 1
        point = new
    return point, options.max_iterations


def _along(dual: _Dual, point: _Point, direction: FloatArray) -> _Point:
    """A point on the line at which the slope of the convex function is almost zero.

    The slope grows along the line; it is bracketed, and the bracket shrinks by secants and halves.
    """
    first = float(point.F @ direction)
    t, low, high, at_low, at_high, best = 1.0, 0.0, 0.0, first, 0.0, point
    for _ in range(60):
        new = dual.at(point.y + t * direction, point.nu)
        slope = float(new.F @ direction)
        if abs(slope) <= LINE_SEARCH * abs(first):
            return new
        if slope < 0:
            low, at_low, best = t, slope, new
        else:
            high, at_high = t, slope
        share = at_low / (at_low - at_high) if high else 0.0
        t = low + (high - low) * min(max(share, 0.1), 0.9) if high else 2.0 * t
    return best


def _by_discrepancy(dual: _Dual, wanted: float, options: Options) -> tuple[_Point, int, bool]:
    """The largest ν with MMD² ≤ wanted: Newton's method on log MMD² over log ν, with a bracket."""
    uniform = dual.at(0.0 * dual.c, LARGEST)
    if uniform.mmd <= wanted:  # equal weights will do
        return *_newton(dual, uniform, options), True
    point, steps = _newton(dual, dual.at(0.0 * dual.c, 1e-2), options, ROUGHLY)
    point, more = _jointly(dual, point, wanted * (1.0 - 0.5 * ACCURACY))
    point, rest = _newton(dual, point, options)
    steps += more + rest
    low, high = math.log(SMALLEST), math.log(LARGEST)  # MMD² is at most, or at least, as wanted
    for _ in range(100):
        ratio = math.log(max(point.mmd, 1e-300) / max(wanted, 1e-300))
        here = math.log(point.nu)
        if -ACCURACY <= ratio <= 0 or high - low <= 1e-9:
            break
        if ratio > 0:
            high = here
        else:
            low = here
        grows, dy = _derivatives(dual, point)
        aim = here - (ratio + 0.5 * ACCURACY) / grows if grows > 1e-12 else math.inf
        if not low < aim < high:
            aim = 0.5 * (low + high)
        nu = math.exp(aim)
        ahead = dual.at(point.y + (aim - here) * dy, nu)  # to first order
        same = dual.at(point.y * (nu / point.nu), nu)  # the same weights
        point, more = _newton(dual, min(ahead, same, key=lambda p: float(p.F @ p.F)), options)
        steps += more
    return point, steps, point.mmd <= wanted * (1 + 1e-3)


def _jointly(dual: _Dual, start: _Point, wanted: float) -> tuple[_Point, int]:
    """Newton's method for y and log ν together: F(y) = 0 and log ‖y‖² = log wanted.

    From near by it takes half of the steps of solving for each ν in turn. Where it leads away,
    the start is returned.
    """
    point, step = start, 0
    for step in range(TOGETHER):
        square = float(point.y @ point.y)
        missing = math.log(max(square, 1e-300) / max(wanted, 1e-300))
        solved = np.abs(point.F).max(initial=0.0) <= 1e-11 * dual.scale
        if solved and abs(missing) <= 0.25 * ACCURACY:
            return point, step
        solve = dual.jacobian(point)
        to_zero, dy = -solve(point.F), solve(dual.pull(point))
        grows = float(point.y @ dy)
        if not grows > 1e-12 * square:
            break
        t = -(0.5 * missing * square + float(point.y @ to_zero)) / grows
        t = min(max(t, -2.0), 2.0)
        point = dual.at(point.y + to_zero + t * dy, point.nu * math.exp(t))
        away = not float(point.F @ point.F) <= 9.0 * wanted
        if away or not SMALLEST < point.nu < LARGEST:
            break
    return start, step + 1


def _derivatives(dual: _Dual, point: _Point) -> tuple[float, FloatArray]:
    """D log MMD² / d log ν, and dy / d log ν, at a solution."""
    dy = dual.jacobian(point)(dual.pull(point))
    return 2.0 * float(point.y @ dy) / max(point.mmd, 1e-300), dy


def _match(
    problem: Problem,
    factor: Factor,
    dual: _Dual,
    point: _Point,
    status: str,
    steps: int,
    dual_residual: float,
    z_train: Values,
) -> Match:
    """The result with its error bound.

    n times the gradient of the objective at w is VᵀF, up to what the factor leaves out; the
    objective times n is ν·min p''-strongly convex.
    """
    n, w, left = problem.n, point.w, to_numpy(factor.left)
    trace = float(left.sum())
    left_out = math.sqrt(trace) * (
        float(np.sqrt(left) @ (dual.share * w)) * n + factor.left_trusted
    )
    each = problem.rounding + factor.rank * EPSILON  # of an entry of K
    sums = 8 * EPSILON * max(1.0, float(np.abs(dual.c).max(initial=0.0)))
    rounded = math.sqrt(n) * (each * (float(dual.share @ w) + 1.0) + sums)
    delta = float(np.linalg.norm(point.F @ dual.V)) + left_out / n + rounded
    penalty = float(dual.share @ dual.penalty.value(w))
    return Match(
        weights=like(z_train, NUMPY.array(w), problem.bound),
        status=status,
        iterations=steps,
        gamma=problem.given_gamma,
        rank=factor.rank,
        objective=0.5 * point.mmd + point.nu * penalty,
        primal_residual=max(0.0, float(w.max()) - problem.bound),
        dual_residual=dual_residual,
        complementarity=0.0,
        trace_error=trace / n,
        error_bound=delta / (point.nu * dual.penalty.curvature(problem.bound)),
        penalty=point.nu,
    )
