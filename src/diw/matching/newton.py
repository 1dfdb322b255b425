"""A semismooth Newton method on the dual.

The optimum of a `System` is w = clip(Vᵀy + η, 0, B) for the r + 1 numbers that solve

    F(y, η) = ωy − b + Vw = 0   and   Σw = total

(without a total η is 0). F is the gradient of a convex, piecewise quadratic
function, so Newton's method with an exact line search converges from anywhere,
and ends exactly once it has found the free weights. From y = 0, where all weights
are free and the first step solves the problem without bounds, that takes three
to fifteen steps at small ranks, each of cost O(n r²) and memory O(n).
"""

from collections.abc import Callable
from dataclasses import dataclass

from diw.matching.backend import Array, largest
from diw.matching.system import System

LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with
ROUNDING = 1e-13  # a residual that another step may, but need not, reduce


@dataclass(frozen=True)
class Dual:
    """Where the iteration ended."""

    weights: Array
    """(n,) clip(Vᵀy + η, 0, B)."""
    y: Array
    """(r,) the dual point."""
    eta: float
    """−λ/ω, where λ is the multiplier of the sum."""
    residual: Array
    """(r,) F(y, η): the optimality conditions hold up to VᵀF."""
    iterations: int
    done: bool
    """Whether the free weights settled."""


@dataclass(slots=True)
class _Point:
    """A dual point with what follows from it."""

    y: Array
    eta: float
    u: Array
    """(n,) the weights before clipping."""
    w: Array
    F: Array
    excess: float
    """Σw − total."""


def newton(system: System, y: Array, eta: float, *, max_iterations: int) -> Dual:
    """Iterate from (y, η) until the free weights settle.

    Args:
        system: The problem.
        y: (r,) starting point.
        eta: Starting point of the sum's multiplier.
        max_iterations: Steps.
    """
    scale = max(largest(system.b), 1.0)
    point = _point(system, y, eta, system.image(y, eta))
    before, smallest, full, done, iteration = point.u, float("inf"), False, False, 0
    for iteration in range(max_iterations + 1):
        free = point.w == point.u
        size = max(largest(point.F), abs(point.excess))
        if size <= ROUNDING * scale or (full and size >= 0.5 * smallest):
            # A full step that leaves every weight at the bound it was at has solved the
            # problem; what is left is rounding. With many samples some never settle.
            if size <= 0.1 * ROUNDING * scale or (full and _same_piece(system, point.u, before)):
                done = abs(point.excess) <= 1e-10 * system.size
            if done:
                break
        smallest = min(size, smallest)
        if iteration == max_iterations:
            break
        dy, deta = _direction(system, point, free)
        before = point.u
        point, full = _step(system, point, dy, deta)
    return Dual(point.w, point.y, point.eta, point.F, iteration, done)


def _same_piece(system: System, u: Array, before: Array) -> bool:
    """Whether the same weights are free, at 0 and at B."""
    same, bound = system.xp.same, system.bound
    return same(u > 0, before > 0) and same(u < bound, before < bound)


def _point(system: System, y: Array, eta: float, u: Array) -> _Point:
    w = system.xp.clip(u, system.bound)
    excess = 0.0 if system.total is None else float(w.sum()) - system.total
    return _Point(y, eta, u, w, system.ridge * y - system.b + system.V @ w, excess)


def _direction(system: System, point: _Point, free: Array) -> tuple[Array, float]:
    """Newton's direction in y and η."""
    s = system.xp.floats(free)
    if system.ratio is not None:
        s *= system.ratio
    solve: Callable[[Array], Array] = system.newton_solver(s)
    x = solve(point.F)
    if system.total is None:
        return -x, 0.0
    h = system.V @ s
    g = solve(h)
    curvature = float((1.0 - g @ system.V) @ s)
    if not curvature > 0:  # no weight is free, so the sum moves only after a jump of unknown length
        if abs(point.excess) <= 1e-10 * system.size:
            return -x, 0.0
        return 0.0 * x, -1.0 if point.excess > 0 else 1.0
    deta = (float(h @ x) - point.excess) / curvature
    return -(x + g * deta), deta


def _step(system: System, point: _Point, dy: Array, deta: float) -> tuple[_Point, bool]:
    """Go where the dual function is lowest along a direction; also whether that was all of it.

    Its slope is an increasing, piecewise linear function of the step length.
    """
    du = system.image(dy, deta)
    first = float(point.F @ dy) + deta * point.excess
    ahead = _point(system, point.y + dy, point.eta + deta, point.u + du)
    slope = float(ahead.F @ dy) + deta * ahead.excess
    enough = LINE_SEARCH * abs(first)
    if abs(slope) <= enough or first >= 0:  # no descent is left but in rounding
        return ahead, True
    plain = du if system.ratio is None else du / system.ratio
    constant = float((system.ridge * point.y - system.b) @ dy) - deta * (system.total or 0.0)
    growth = system.ridge * float(dy @ dy)
    t, low, high, at_low, at_high = 1.0, 0.0, 0.0, first, 0.0
    for _ in range(60):
        if slope < 0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        share = at_low / (at_low - at_high) if high else 0.0
        t = low + (high - low) * min(max(share, 0.1), 0.9) if high else 2.0 * t
        w = system.xp.clip(point.u + t * du, system.bound)
        slope = constant + t * growth + float(plain @ w)
        if abs(slope) <= enough:
            break
    y, eta = point.y + t * dy, point.eta + t * deta
    return _point(system, y, eta, system.image(y, eta)), False
