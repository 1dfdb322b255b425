"""The solver: a semismooth Newton method on the dual, followed down a path of ridges.

With K ≈ VᵀV (V of shape (r, n)) and k = Vᵀb the matching problem is

    minimise ½‖Vw − b‖² + ½ω‖w‖²   over   0 ≤ w ≤ B,

and its optimum is w = clip(Vᵀy, 0, B) for the r numbers y that solve

    F(y) = ωy − b + V clip(Vᵀy, 0, B) = 0.

F is the gradient of a strongly convex, piecewise quadratic function, so Newton's
method with an exact line search converges from anywhere, and ends exactly once
it has found the free weights. From a cold start at ω = 1e-5 that can take
hundreds of steps; from the solution at a ten times larger ridge it takes one or
two. So the ridge starts near the largest eigenvalue and falls tenfold at a time.

A step costs O(n r²) and stores nothing larger than V.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from diw.kernels import Floats

LEVEL_FACTOR = 10.0
LEVEL_STEPS = 2
LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with


@dataclass(frozen=True)
class Solution:
    """Where the iteration ended."""

    weights: Floats
    """(n,) clip(Vᵀy, 0, B)."""
    multiplier: float
    """Of the sum constraint, 0 without one."""
    residual: Floats
    """(r,) F(y): the optimality conditions hold up to VᵀF."""
    iterations: int


def solve(
    V: Floats,
    b: Floats,
    ridge: float,
    bound: float,
    *,
    total: float | None = None,
    max_iterations: int = 200,
) -> Solution:
    """Solve the problem above, with Σw = `total` where one is given.

    Args:
        V: (r, n) factor of the kernel matrix, K ≈ VᵀV.
        b: (r,) with k = Vᵀb.
        ridge: ω > 0.
        bound: B > 0.
        total: The sum the weights must have, or None.
        max_iterations: Newton steps in all.
    """
    if total is not None:  # one more row, whose unknown is −λ/ω and carries no ridge
        V = np.concatenate([V, np.ones((1, V.shape[1]))])  # pyright: ignore[reportConstantRedefinition]
        b = np.append(b, total)
    r, n = V.shape
    y = np.zeros(r)
    u = np.zeros(n)
    w = u
    scale = float(np.abs(b).max(initial=0.0))
    level = max(ridge, float(np.square(V @ np.ones(n)).sum()) / n / 25)
    steps = 0
    best, previous = np.inf, None
    gradient = -b
    iteration = 0
    for iteration in range(max_iterations + 1):
        gradient = level * y - b + V @ w
        if total is not None:
            gradient[-1] -= level * y[-1]
        size = float(np.abs(gradient).max(initial=0.0))
        free = w == u
        if level == ridge:
            settled = previous is not None and np.array_equal(free, previous)
            if size <= 1e-15 * scale or (settled and size >= 0.5 * best):
                break
            best = min(best, size)
            previous = free
        elif steps >= LEVEL_STEPS or size <= 1e-3 * level * float(np.abs(y).max(initial=0.0)):
            lower = max(ridge, level / LEVEL_FACTOR)
            gradient += (lower - level) * y
            if total is not None:
                gradient[-1] -= (lower - level) * y[-1]
            level, steps = lower, 0
        if iteration == max_iterations:
            break
        dy = _direction(V, free, level, gradient, total is not None)
        step = _line_search(y, dy, u, dy @ V, b, level, bound, gradient, total is not None)
        y = y + step * dy
        u = y @ V
        w = np.minimum(np.maximum(u, 0.0), bound)
        steps += 1
    multiplier = -ridge * float(y[-1]) if total is not None else 0.0
    return Solution(w, multiplier, gradient, iteration)


def _direction(V: Floats, free: Floats, level: float, F: Floats, summed: bool) -> Floats:
    """Newton's direction −(level·I + V_free V_freeᵀ)⁻¹F."""
    r = len(V)
    H = (V * free) @ V.T
    H.flat[:: r + 1] += level
    if summed:
        H[-1, -1] += (1.0 - level) if not free.any() else -level
    _, dy, failed = lapack.dposv(H, F)  # pyright: ignore[reportAttributeAccessIssue]
    if failed:
        H.flat[:: r + 1] += 1e-14 * float(np.trace(H))
        dy = np.linalg.solve(H, F)
    return np.negative(dy, dtype=np.float64)


def _line_search(
    y: Floats,
    dy: Floats,
    u: Floats,
    du: Floats,
    b: Floats,
    level: float,
    bound: float,
    F: Floats,
    summed: bool,
) -> float:
    """Where the dual function along dy is lowest: the root of its increasing slope."""
    if summed:
        constant = level * float(y[:-1] @ dy[:-1]) - float(b @ dy)
        growth = level * float(dy[:-1] @ dy[:-1])
    else:
        constant = level * float(y @ dy) - float(b @ dy)
        growth = level * float(dy @ dy)

    def slope(t: float) -> float:
        w = np.minimum(np.maximum(u + t * du, 0.0), bound)
        return constant + t * growth + float(du @ w)

    first = float(F @ dy)
    low, at_low, high, at_high = 0.0, first, 0.0, 0.0
    t, now = 1.0, slope(1.0)
    for _ in range(60):
        if abs(now) <= LINE_SEARCH * abs(first):
            break
        if now < 0:
            low, at_low = t, now
        else:
            high, at_high = t, now
        if high == 0.0:
            t *= 2.0
        else:
            share = at_low / (at_low - at_high)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
        now = slope(t)
    return t
