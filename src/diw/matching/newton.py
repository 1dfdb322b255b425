"""The problem on a factor, and a semismooth Newton method on its dual.

With K ≈ VᵀV (V of shape (r, n)) and k = Vᵀb the problem is

    minimise ½‖Vw − b‖² + ½ Σ d_i w_i²   over   0 ≤ w ≤ B  (and Σw = total, where one is given),

where d is the ridge ω, or ω plus what a capped factor leaves out of K's diagonal. Its
optimum is w = clip((Vᵀy + η)·ω/d, 0, B) for the r + 1 numbers that solve

    F(y, η) = ωy − b + Vw = 0   and   Σw = total

(without a total η is 0). F is the gradient of a convex, piecewise quadratic
function, so Newton's method with an exact line search converges from anywhere,
and ends exactly once it has found the free weights. From y = 0, where all weights
are free and the first step solves the problem without bounds, that takes three
to fifteen steps at small ranks, each of cost O(n r²) and memory O(n).

Where Newton's path is long, an interior point (interior.py) comes first, and Newton's method takes
the last steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from diw.matching.gram import (
    Factor,
    FloatArray,
    Solve,
    clip,
    magnitude,
    positive_solver,
    weighted_gram,
)
from diw.matching.interior import Program, interior

LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with
ROUNDING = 1e-13  # a residual that another step may, but need not, reduce
NEWTON_RANK = 40  # up to this rank Newton's method alone is mostly fastest
NEWTON_STEPS = 30  # if it has not ended by then, it will not soon
SAMPLE = 20_000  # samples of the thinned problem that a very large one starts from


@dataclass(slots=True)
class Point:
    """A dual point with what follows from it."""

    y: FloatArray
    """(r,)"""
    eta: float
    """−λ/ω, where λ is the multiplier of the sum."""
    F: FloatArray
    """(r,) the optimality conditions hold up to VᵀF."""
    excess: float
    """Σw − total."""


P = TypeVar("P", bound=Point)


@dataclass(frozen=True)
class Hessian:
    """ωI + V diag(s) Vᵀ, where s is ω/d of the free weights, and its border along the sum."""

    gram: Callable[[], FloatArray]
    """(r, r) V diag(s) Vᵀ."""
    border: Callable[[], FloatArray]
    """(r,) Vs."""
    schur: Callable[[FloatArray], float]
    """Σs − gᵀVs, for g (r,)."""


class Dual(Protocol[P]):
    """The problem as Newton's method sees it: sums over the samples, wherever these are."""

    b: FloatArray
    ridge: float
    total: float | None

    @property
    def size(self) -> int:
        """The number of samples, n."""
        ...

    @property
    def rounding(self) -> float:
        """A relative residual that another step may, but need not, reduce."""
        ...

    def point(self, y: FloatArray, eta: float) -> P:
        """A dual point."""
        ...

    def moved(self, point: P, dy: FloatArray, deta: float) -> P:
        """The dual point one step further."""
        ...

    def hessian(self, point: P) -> Hessian:
        """The second derivative there."""
        ...

    def same_piece(self, point: P, before: P) -> bool:
        """Whether the same weights are free, at 0 and at B."""
        ...

    def slope(self, point: P, dy: FloatArray, deta: float) -> Callable[[float], float]:
        """The slope of the dual function along a direction, by the length of the step."""
        ...


@dataclass(slots=True)
class DualPoint(Point):
    """A dual point of a problem in memory."""

    u: FloatArray
    """(n,) the weights before clipping."""
    w: FloatArray
    """(n,) the weights."""


@dataclass(frozen=True)
class Link:
    """Weights as another increasing function of u = Vᵀy + η."""

    weights: Solve
    """w(u), cut at 0 and B."""
    slopes: Solve
    """w'(u) as a function of w, 0 where a weight is cut."""


@dataclass(frozen=True)
class System(Dual[DualPoint]):
    """One problem on a factor, in memory."""

    V: FloatArray
    """(r, n) factor of the kernel matrix."""
    b: FloatArray
    """(r,) with k = Vᵀb."""
    ridge: float
    """ω > 0."""
    bound: float
    """B > 0."""
    total: float | None = None
    """The sum that the weights must have, or None."""
    extra: FloatArray | None = None
    """(n,) added to the ridge sample by sample, or None."""
    above: bool = False
    """Whether the sum would be more than the total without it."""
    link: "Link | None" = None
    """How the weights follow from u; None cuts it at 0 and B."""
    accuracy: float = ROUNDING
    """A relative residual that is small enough."""

    @property
    def size(self) -> int:
        """The number of samples, n."""
        return self.V.shape[1]

    @property
    def rounding(self) -> float:
        """A relative residual that is small enough."""
        return self.accuracy

    @cached_property
    def ratio(self) -> FloatArray | None:
        """(n,) ω/d, None where all are 1."""
        return None if self.extra is None else self.ridge / (self.ridge + self.extra)

    def image(self, y: FloatArray, eta: float) -> FloatArray:
        """(n,) the weights of a dual point before clipping: (Vᵀy + η)·ω/d."""
        u = y @ self.V
        if eta:
            u += eta
        return u if self.ratio is None else u * self.ratio

    def weights(self, u: FloatArray) -> FloatArray:
        """(n,) w(u)."""
        return clip(u, self.bound) if self.link is None else self.link.weights(u)

    def point(self, y: FloatArray, eta: float, u: FloatArray | None = None) -> DualPoint:
        """A dual point with what follows from it; `u` for a caller that has it."""
        u = self.image(y, eta) if u is None else u
        w = self.weights(u)
        excess = 0.0 if self.total is None else float(w.sum()) - self.total
        return DualPoint(y, eta, self.ridge * y - self.b + self.V @ w, excess, u, w)

    def moved(self, point: DualPoint, dy: FloatArray, deta: float) -> DualPoint:
        """The dual point one step further."""
        return self.point(point.y + dy, point.eta + deta, point.u + self.image(dy, deta))

    def hessian(self, point: DualPoint) -> Hessian:
        """The second derivative at a dual point."""
        V, w = self.V, point.w
        s = (w == point.u).astype(np.float64) if self.link is None else self.link.slopes(w)
        if self.ratio is not None:
            s *= self.ratio
        return Hessian(
            lambda: weighted_gram(V, s), lambda: V @ s, lambda g: float((1.0 - g @ V) @ s)
        )

    def same_piece(self, point: DualPoint, before: DualPoint) -> bool:
        """Whether the same weights are free, at 0 and at B; a link's pieces are not asked."""
        if self.link is not None:
            return magnitude(point.F) <= self.accuracy * magnitude(self.b)
        now, then, bound = point.u, before.u, self.bound
        return np.array_equal(now > 0, then > 0) and np.array_equal(now < bound, then < bound)

    def slope(self, point: DualPoint, dy: FloatArray, deta: float) -> Callable[[float], float]:
        """The slope of the dual function along a direction, by the length of the step."""
        du = self.image(dy, deta)
        plain = du if self.ratio is None else du / self.ratio
        constant = float((self.ridge * point.y - self.b) @ dy) - deta * (self.total or 0.0)
        growth = self.ridge * float(dy @ dy)
        return lambda t: constant + t * growth + float(plain @ self.weights(point.u + t * du))

    @property
    def program(self) -> Program:
        """The same for an interior point, where the total binds from one side."""
        left = np.zeros(self.size) if self.extra is None else self.extra
        factor = Factor(self.V, self.b, left, 0.0, self.extra is not None)
        end = {} if self.total is None else {"high" if self.above else "low": self.total}
        return Program.of(factor, self.ridge, self.bound, **end)

    def thinned(self, stride: int) -> "System":
        """Every `stride`-th sample, scaled so that the dual solution stays close."""
        index = slice(None, None, stride)
        V = self.V[:, index] + 0.0
        share = V.shape[1] / self.size
        return System(
            V,
            self.b * share,
            self.ridge * share,
            self.bound,
            None if self.total is None else self.total * share,
            None if self.extra is None else self.extra[index] * share,
            self.above,
        )


def newton(system: Dual[P], point: P, max_iterations: int) -> tuple[P, int, bool]:
    """Iterate until the free weights settle.

    Returns:
        The last point, the number of steps, and whether the free weights settled.
    """
    scale, rounding = max(magnitude(system.b), 1.0), system.rounding
    before, smallest, full, done, iteration = point, float("inf"), False, False, 0
    for iteration in range(max_iterations + 1):
        size = max(magnitude(point.F), abs(point.excess))
        if size <= rounding * scale or (full and size >= 0.5 * smallest):
            # A full step that leaves every weight at the bound it was at has solved the
            # problem; what is left is rounding. With many samples some never settle.
            if size <= 0.1 * rounding * scale or (full and system.same_piece(point, before)):
                done = abs(point.excess) <= 1e-10 * system.size
            if done:
                break
        smallest = min(size, smallest)
        if iteration == max_iterations:
            break
        dy, deta = _direction(system, point)
        before = point
        point, full = _step(system, point, dy, deta)
    return point, iteration, done


def _direction(system: Dual[P], point: P) -> tuple[FloatArray, float]:
    """Newton's direction in y and η."""
    hessian = system.hessian(point)
    solve = positive_solver(hessian.gram, system.ridge)
    x = solve(point.F)
    if system.total is None:
        return -x, 0.0
    h = hessian.border()
    g = solve(h)
    curvature = hessian.schur(g)
    if not curvature > 0:  # no weight is free, so the sum moves only after a jump of unknown length
        if abs(point.excess) <= 1e-10 * system.size:
            return -x, 0.0
        return 0.0 * x, -1.0 if point.excess > 0 else 1.0
    deta = (float(h @ x) - point.excess) / curvature
    return -(x + g * deta), deta


def _step(system: Dual[P], point: P, dy: FloatArray, deta: float) -> tuple[P, bool]:
    """Minimise the dual function along a direction; also return whether the step was a full one.

    The slope along the direction is an increasing, piecewise linear function of the step length.
    """
    first = float(point.F @ dy) + deta * point.excess
    ahead = system.moved(point, dy, deta)
    slope = float(ahead.F @ dy) + deta * ahead.excess
    enough = LINE_SEARCH * abs(first)
    if abs(slope) <= enough or first >= 0:  # no descent is left but in rounding
        return ahead, True
    slope_at = system.slope(point, dy, deta)
    t, low, high, at_low, at_high = 1.0, 0.0, 0.0, first, 0.0
    for _ in range(60):
        if slope < 0:
            low, at_low = t, slope
        else:
            high, at_high = t, slope
        share = at_low / (at_low - at_high) if high else 0.0
        t = low + (high - low) * min(max(share, 0.1), 0.9) if high else 2.0 * t
        slope = slope_at(t)
        if abs(slope) <= enough:
            break
    return system.point(point.y + t * dy, point.eta + t * deta), False


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
    near = interior(system.program, max_iterations)
    start = system.point((system.b - system.V @ near.w) / system.ridge, near.shift / -system.ridge)
    found, last, _ = newton(system, start, max_iterations)
    return found, spent + near.iterations + last
