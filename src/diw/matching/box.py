"""`Box`: the dense problem without its band, and the linear algebra of its free weights."""

from collections.abc import Callable
from dataclasses import dataclass

from diw.matching.backend import Array, Arrays
from diw.matching.positive import plus_diagonal, positive

CG_STEPS = 100


@dataclass
class Point:
    """Weights, the gradient there, and what the steps have found on the way."""

    w: Array
    g: Array
    """(n,) (K + ωI)w − k + λ."""
    multiplier: float
    """λ, of the sum."""
    iterations: int = 0


@dataclass(frozen=True)
class Box:
    """minimise ½wᵀ(K+ωI)w − (k−λ)ᵀw over 0 ≤ w ≤ B, for a λ that moves."""

    xp: Arrays
    K: Array
    k: Array
    ridge: float
    bound: float
    nearly_diagonal: bool
    """Whether the rest of every row of K is so small that conjugate gradients take few steps."""

    def gradient(self, w: Array, multiplier: float) -> Array:
        """(n,) (K + ωI)w − k + λ."""
        return self.K @ w + self.ridge * w - self.k + multiplier

    def pulls(self, point: Point) -> Array:
        """(n,) how hard the gradient pulls each weight off the bound it is at; 0 of free ones."""
        floats = self.xp.floats
        return point.g * (floats(point.w >= self.bound) - floats(point.w <= 0))

    def free(self, w: Array) -> Array:
        """(n,) which weights are at neither bound."""
        return (w > 0) & (w < self.bound)

    def part(self, rows: Array) -> Array:
        """(K + ωI) of some weights."""
        H = self.xp.submatrix(self.K, rows)
        self.xp.add_to_diagonal(H, self.ridge)
        return H

    def solver(self, H: Array) -> Callable[[Array], Array]:
        """A function that solves with a free part of K + ωI."""
        xp = self.xp
        if self.nearly_diagonal:
            return lambda right: conjugate_gradients(H, right)
        return positive(xp, lambda jitter: plus_diagonal(xp, H + 0.0, jitter))

    def residual(self, point: Point) -> Array:
        """(n,) what is left of the gradient where the bounds do not hold it."""
        floor = self.xp.floor
        held_low, held_high = point.w <= 0, point.w >= self.bound
        g = point.g - floor(point.g, 0.0) * held_low
        return g + floor(-g, 0.0) * held_high


def conjugate_gradients(H: Array, right: Array) -> Array:
    """Solve with a matrix close to the identity."""
    x, p, residual = 0.0 * right, right, right
    size = float(right @ right)
    target = 1e-32 * size
    for _ in range(CG_STEPS):
        if size <= target:
            break
        q = H @ p
        step = size / float(p @ q)
        x, residual = x + step * p, residual - step * q
        before, size = size, float(residual @ residual)
        p = residual + (size / before) * p
    return x
