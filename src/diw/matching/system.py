"""`System`: the matching problem on a factor, and the linear algebra both solvers share.

With K ≈ VᵀV (V of shape (r, n)) and k = Vᵀb the problem is

    minimise ½‖Vw − b‖² + ½ Σ d_i w_i²   over   0 ≤ w ≤ B  (and Σw = total, where one is given),

where d is the ridge ω, or ω plus what a capped factor leaves out of K's diagonal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from diw.errors import MatchingError
from diw.matching.arrays import Array, Arrays, gram

CG_STEPS = 100


@dataclass(frozen=True)
class System:
    """One problem; all arrays are of the kind of `xp`, in float64."""

    xp: Arrays
    V: Array
    """(r, n) factor of the kernel matrix."""
    b: Array
    """(r,) with k = Vᵀb."""
    ridge: float
    """ω > 0."""
    bound: float
    """B > 0."""
    total: float | None = None
    """The sum the weights must have, or None."""
    extra: Array | None = None
    """(n,) added to the ridge sample by sample, or None."""
    K: Array | None = None
    """(n, n) VᵀV itself, where the factor is square."""
    nearly_diagonal: bool = False
    """Whether K is so close to the identity that conjugate gradients need a few steps."""

    @property
    def size(self) -> int:
        """How many samples: n."""
        return self.V.shape[1]

    @cached_property
    def ratio(self) -> Array | None:
        """(n,) ω over each sample's ridge, None where all are 1."""
        return None if self.extra is None else self.ridge / (self.ridge + self.extra)

    def image(self, y: Array, eta: float) -> Array:
        """(n,) the weights of a dual point before clipping: (Vᵀy + η) · ratio."""
        u = y @ self.V
        if eta:
            u += eta
        return u if self.ratio is None else u * self.ratio

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

    def solver(self, d: Array) -> Callable[[Array], Array]:
        """A function that solves (VᵀV + diag(d)) x = right, for d > 0."""
        V, xp = self.V, self.xp
        if self.K is not None:
            K = self.K
            return _positive(xp, lambda jitter: _plus(xp, K + 0.0, d + jitter))
        inverse = 1.0 / d
        solve = _positive(xp, lambda jitter: _plus(xp, gram(V, inverse), 1.0 + jitter))

        def woodbury(right: Array) -> Array:
            x = right * inverse
            return x - (solve(V @ x) @ V) * inverse

        return woodbury

    def newton_solver(self, s: Array, free: Array) -> Callable[[Array], Array]:
        """A function that solves (ωI + V diag(s) Vᵀ) x = right; `s` is zero where not free."""
        V, xp, ridge = self.V, self.xp, self.ridge
        if self.K is None or self.extra is not None:
            return _positive(xp, lambda jitter: _plus(xp, gram(V, s), ridge + jitter))
        # With the square factor: by Woodbury, through the free part of K.
        if self.nearly_diagonal:
            inner = self._conjugate_gradients(s)
            return lambda right: (right - V @ inner(right @ V)) / ridge
        rows = xp.places(free)
        if not len(rows):
            return lambda right: right / ridge
        part, K = V[:, rows], self.K
        solve = _positive(xp, lambda jitter: _plus(xp, xp.submatrix(K, rows), ridge + jitter))
        return lambda right: (right - part @ solve(right @ part)) / ridge

    def _conjugate_gradients(self, mask: Array) -> Callable[[Array], Array]:
        """Solve (ωI + K) on the free samples, zero elsewhere; K is close to the identity."""
        K, ridge = self.K, self.ridge

        def solve(right: Array) -> Array:
            residual = right * mask
            x, p = 0.0 * residual, residual
            size = float(residual @ residual)
            target = 1e-30 * size
            for _ in range(CG_STEPS):
                if size <= target:
                    break
                q = (K @ p) * mask + ridge * p
                step = size / float(p @ q)
                x, residual = x + step * p, residual - step * q
                before, size = size, float(residual @ residual)
                p = residual + (size / before) * p
            return x

        return solve


def _plus(xp: Arrays, matrix: Array, value: Array | float) -> Array:
    """A fresh matrix with `value` added to its diagonal."""
    xp.add_to_diagonal(matrix, value)
    return matrix


def _positive(xp: Arrays, matrix: Callable[[float], Array]) -> Callable[[Array], Array]:
    """Solve with `matrix(0.0)`, which is positive definite, if need be up to rounding."""
    solve, jitter = xp.solver(matrix(0.0)), 1e-15
    while solve is None:
        if jitter > 1e-6:
            raise MatchingError("kernel mean matching: a linear system is singular; raise ridge")
        trace = float(matrix(0.0).trace())
        solve, jitter = xp.solver(matrix(jitter * trace)), 100 * jitter
    return solve
