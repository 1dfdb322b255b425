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
"""

from dataclasses import dataclass
from functools import cached_property

from diw.matching.backend import Array, Backend, Solve, magnitude, positive_solver, weighted_gram

LINE_SEARCH = 0.1  # the slope a step may leave, relative to the slope it began with
ROUNDING = 1e-13  # a residual that another step may, but need not, reduce


@dataclass(frozen=True)
class System:
    """One problem on a factor; all arrays are of the kind of `xp`, in float64."""

    xp: Backend
    V: Array
    """(r, n) factor of the kernel matrix."""
    b: Array
    """(r,) with k = Vᵀb."""
    ridge: float
    """ω > 0."""
    bound: float
    """B > 0."""
    total: float | None = None
    """The sum that the weights must have, or None."""
    extra: Array | None = None
    """(n,) added to the ridge sample by sample, or None."""

    @property
    def size(self) -> int:
        """The number of samples, n."""
        return self.V.shape[1]

    @cached_property
    def ratio(self) -> Array | None:
        """(n,) ω/d, None where all are 1."""
        return None if self.extra is None else self.ridge / (self.ridge + self.extra)

    def image(self, y: Array, eta: float) -> Array:
        """(n,) the weights of a dual point before clipping: (Vᵀy + η)·ω/d."""
        u = y @ self.V
        if eta:
            u += eta
        return u if self.ratio is None else u * self.ratio

    def point(self, y: Array, eta: float, u: Array | None = None) -> "DualPoint":
        """A dual point with what follows from it; `u` for a caller that has it."""
        u = self.image(y, eta) if u is None else u
        w = self.xp.clip(u, self.bound)
        excess = 0.0 if self.total is None else float(w.sum()) - self.total
        return DualPoint(y, eta, u, w, self.ridge * y - self.b + self.V @ w, excess)

    def thinned(self, stride: int) -> "System":
        """Every `stride`-th sample, scaled so that the dual solution stays close."""
        index = slice(None, None, stride)
        V = self.V[:, index] + 0.0
        share = V.shape[1] / self.size
        return System(
            self.xp,
            V,
            self.b * share,
            self.ridge * share,
            self.bound,
            None if self.total is None else self.total * share,
            None if self.extra is None else self.extra[index] * share,
        )

    def woodbury(self, d: Array) -> Solve:
        """A solver for (VᵀV + diag(d)) x = right, for d > 0, by Woodbury's identity."""
        V, inverse = self.V, 1.0 / d
        solve = positive_solver(self.xp, lambda: weighted_gram(V, inverse), 1.0)

        def apply(right: Array) -> Array:
            x = right * inverse
            return x - (solve(V @ x) @ V) * inverse

        return apply


@dataclass(slots=True)
class DualPoint:
    """A dual point with what follows from it."""

    y: Array
    """(r,)"""
    eta: float
    """−λ/ω, where λ is the multiplier of the sum."""
    u: Array
    """(n,) the weights before clipping."""
    w: Array
    """(n,) the weights."""
    F: Array
    """(r,) the optimality conditions hold up to VᵀF."""
    excess: float
    """Σw − total."""


def newton(system: System, point: DualPoint, max_iterations: int) -> tuple[DualPoint, int, bool]:
    """Iterate until the free weights settle.

    Returns:
        The last point, the number of steps, and whether the free weights settled.
    """
    scale = max(magnitude(system.b), 1.0)
    before, smallest, full, done, iteration = point.u, float("inf"), False, False, 0
    for iteration in range(max_iterations + 1):
        free = system.xp.equal(point.w, point.u)
        size = max(magnitude(point.F), abs(point.excess))
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
    return point, iteration, done


def _same_piece(system: System, u: Array, before: Array) -> bool:
    """Whether the same weights are free, at 0 and at B."""
    same, bound = system.xp.same, system.bound
    return same(u > 0, before > 0) and same(u < bound, before < bound)


def _direction(system: System, point: DualPoint, free: Array) -> tuple[Array, float]:
    """Newton's direction in y and η: solves with ωI + V diag(s) Vᵀ, s = ω/d of the free weights."""
    s = system.xp.floats(free)
    if system.ratio is not None:
        s *= system.ratio
    solve = positive_solver(system.xp, lambda: weighted_gram(system.V, s), system.ridge)
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


def _step(system: System, point: DualPoint, dy: Array, deta: float) -> tuple[DualPoint, bool]:
    """Minimise the dual function along a direction; also return whether the step was a full one.

    The slope along the direction is an increasing, piecewise linear function of the step length.
    """
    du = system.image(dy, deta)
    first = float(point.F @ dy) + deta * point.excess
    ahead = system.point(point.y + dy, point.eta + deta, point.u + du)
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
    return system.point(point.y + t * dy, point.eta + t * deta), False
