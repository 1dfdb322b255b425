"""A semismooth Newton method on the dual, followed down a path of ridges.

The optimum of a `System` is w = clip(Vᵀy + η, 0, B) for the r + 1 numbers that solve

    F(y, η) = ωy − b + Vw = 0   and   Σw = total

(without a total η is 0). F is the gradient of a convex, piecewise quadratic
function, so Newton's method with an exact line search converges from anywhere
and ends exactly once it has found the free weights. From a cold start at
ω = 1e-5 that takes tens to hundreds of steps; from the solution at a larger
ridge it takes a few. So the ridge starts below the largest eigenvalue and falls.

A step costs O(n r²) and stores nothing larger than V.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from diw.matching.arrays import Array, Arrays, largest
from diw.matching.system import System

FALL = 100.0  # by how much the ridge falls from one level of the path to the next
START = 250.0  # how far below (an estimate of) the largest eigenvalue the path begins
PATIENCE = 3  # steps at one level of the path before going on regardless
LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with


@dataclass(frozen=True)
class Solution:
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

    def after(self, iterations: int) -> "Solution":
        """The same, with the iterations of an earlier attempt counted in."""
        return replace(self, iterations=self.iterations + iterations)


def path(system: System) -> list[float]:
    """Falling ridges, the last one the problem's own."""
    level = float(system.reach @ system.reach) / system.size / START
    levels: list[float] = []
    while level > system.ridge * FALL**0.5:
        levels.append(level)
        level /= FALL
    return [*levels, system.ridge]


def newton(
    system: System, y: Array, eta: float, levels: list[float], *, max_iterations: int
) -> Solution:
    """Iterate from (y, η), through all levels; the ratio of the ridges of samples is kept.

    Args:
        system: The problem.
        y: (r,) starting point.
        eta: Starting point of the sum's multiplier.
        levels: Falling ridges, the last one the problem's own.
        max_iterations: Steps in all.
    """
    V, b, xp, bound, total = system.V, system.b, system.xp, system.bound, system.total
    ratio = None if system.extra is None else system.ridge / (system.ridge + system.extra)
    scale = max(largest(b), largest(system.reach))
    place, taken, full, stalled = 0, 0, True, 0
    level, last = levels[0], len(levels) - 1
    before, smallest = None, float("inf")
    u = _image(y, eta, V, ratio)
    w = xp.clip(u, bound)
    free = w == u
    gradient = level * y - b + V @ w
    done, iteration = False, 0
    for iteration in range(max_iterations + 1):
        if place < last:
            if iteration and (full or taken >= PATIENCE):
                place, taken = place + 1, 0
                gradient = gradient + (levels[place] - level) * y
                level = levels[place]
        else:
            size = largest(gradient)
            missing = 0.0 if total is None else abs(float(w.sum()) - total)
            size = max(size, missing)
            # On the same free weights as before a full step has solved the problem; what is
            # left is rounding, and once it stops shrinking it stays.
            if size <= 1e-13 * scale or size >= 0.5 * smallest:
                settled = full and before is not None and xp.same(free, before)
                settled = settled and missing <= 1e-10 * system.size
                stalled = stalled + 1 if settled and size >= 0.5 * smallest else 0
                if size <= 1e-15 * scale or stalled > 1 or (settled and size <= 1e-13 * scale):
                    done = True
                    break
            before, smallest = free, min(size, smallest)
        if iteration == max_iterations:
            break
        s = free if ratio is None else free * ratio
        solve = system.newton_solver(level, s, free)
        dy, deta = _direction(xp, solve, V, s, gradient, w, total)
        du = _image(dy, deta, V, ratio)
        slope = float(gradient @ dy) + (0.0 if total is None else deta * (float(w.sum()) - total))
        y, eta, u, w, gradient, full = _search(
            system, level, (y, eta, u), (dy, deta, du), ratio, slope
        )
        free = w == u
        taken += 1
    return Solution(w, y, eta, gradient, iteration, done)


def _image(y: Array, eta: float, V: Array, ratio: Array | None) -> Array:
    """The weights before clipping: (Vᵀy + η) · ratio."""
    u = y @ V
    if eta:
        u += eta
    return u if ratio is None else u * ratio


def _direction(
    xp: Arrays,
    solve: Callable[[Array], Array],
    V: Array,
    s: Array,
    F: Array,
    w: Array,
    total: float | None,
) -> tuple[Array, float]:
    """Newton's direction in y and η."""
    x = solve(F)
    if total is None:
        return -x, 0.0
    missing = float(w.sum()) - total
    h = V @ xp.floats(s)
    g = solve(h)
    curvature = float(((1.0 - g @ V) * s).sum())
    if not curvature > 0:  # no weight is free, so the sum moves only after a jump of unknown length
        if abs(missing) <= 1e-10 * len(w):
            return -x, 0.0
        return 0.0 * x, -1.0 if missing > 0 else 1.0
    deta = -(missing - float(h @ x)) / curvature
    return -(x + g * deta), deta


def _search(
    system: System,
    level: float,
    at: tuple[Array, float, Array],
    along: tuple[Array, float, Array],
    ratio: Array | None,
    first: float,
) -> tuple[Array, float, Array, Array, Array, bool]:
    """Step to where the dual function is lowest along a direction: its slope is increasing.

    Returns the new (y, η, u, w, F) and whether it was the full step.
    """
    (y, eta, u), (dy, deta, du) = at, along
    V, b, bound, xp, total = system.V, system.b, system.bound, system.xp, system.total
    t, low, high, at_low, at_high = 1.0, 0.0, 0.0, first, 0.0
    ahead, eta_ahead = y + dy, eta + deta
    image = u + du
    w = xp.clip(image, bound)
    F = level * ahead - b + V @ w
    slope = float(F @ dy) + (0.0 if total is None else deta * (float(w.sum()) - total))
    if abs(slope) <= LINE_SEARCH * abs(first) or first >= 0:  # no descent left but in rounding
        return ahead, eta_ahead, image, w, F, True
    constant = level * float(y @ dy) - float(b @ dy) - (0.0 if total is None else deta * total)
    growth = level * float(dy @ dy)
    plain = du if ratio is None else du / ratio
    for _ in range(60):
        if slope < 0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        if high == 0.0:
            t *= 2.0
        else:
            share = at_low / (at_low - at_high)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
        w = xp.clip(u + t * du, bound)
        slope = constant + t * growth + float(plain @ w)
        if abs(slope) <= LINE_SEARCH * abs(first):
            break
    ahead, eta_ahead = y + t * dy, eta + t * deta
    image = _image(ahead, eta_ahead, V, ratio)
    w = xp.clip(image, bound)
    return ahead, eta_ahead, image, w, level * ahead - b + V @ w, False
