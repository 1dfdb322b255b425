"""The dense problem: the kernel matrix, a point, and the gradient there.

    minimise ½wᵀ(K+ωI)w − (k−λ)ᵀw   over   0 ≤ w ≤ B,

for a multiplier λ of the sum that moves where the band binds. Two methods work on it: exchanges
(exchange.py) come near the optimum in few factorisations, and descent (active_set.py) always ends.
"""

from dataclasses import dataclass

from diw.matching.backend import (
    Array,
    Backend,
    Solve,
    conjugate_gradients,
    positive_solver,
)

CG_STEPS = 100
NEARLY_DIAGONAL = 0.5
ROUNDING = 1e-14  # relative to the gradient's terms: a smaller multiplier is rounding


@dataclass
class Iterate:
    """The weights of the moment and the gradient there; the steps change it in place."""

    w: Array
    g: Array
    """(n,) (K + ωI)w − k + λ."""
    multiplier: float
    """λ, of the sum."""
    iterations: int = 0


@dataclass(frozen=True)
class Box:
    """The problem itself."""

    xp: Backend
    K: Array
    k: Array
    ridge: float
    bound: float
    row_sum: float
    """The largest sum of a row's entries off the diagonal of K."""

    @property
    def nearly_diagonal(self) -> bool:
        """Whether conjugate gradients take few steps, whatever the rows: every λ(K) is above ½."""
        return self.row_sum < NEARLY_DIAGONAL

    def gradient(self, w: Array, multiplier: float) -> Array:
        """(n,) (K + ωI)w − k + λ."""
        return self.K @ w + self.ridge * w - self.k + multiplier

    def violations(self, point: Iterate) -> Array:
        """(n,) by how much each active bound's multiplier has the wrong sign; 0 of free weights."""
        floats = self.xp.floats
        return point.g * (floats(point.w >= self.bound) - floats(point.w <= 0))

    def free(self, w: Array) -> Array:
        """(n,) mask of the free weights: those at neither bound."""
        return (w > 0) & (w < self.bound)

    def part(self, rows: Array) -> Array:
        """The given rows and columns of K + ωI."""
        return self.xp.add_to_diagonal(self.xp.submatrix(self.K, rows), self.ridge)

    def solver(self, H: Array) -> Solve:
        """A solver for a part of K + ωI."""
        if self.nearly_diagonal:
            return lambda right: conjugate_gradients(H.__matmul__, right, 1.0, 1e-16, CG_STEPS)[0]
        return positive_solver(self.xp, lambda: H + 0.0)

    def residual(self, point: Iterate) -> Array:
        """(n,) the gradient that no multiplier of a bound balances."""
        floor = self.xp.floor
        held_low, held_high = point.w <= 0, point.w >= self.bound
        g = point.g - floor(point.g, 0.0) * held_low
        return g + floor(-g, 0.0) * held_high
