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
    def reach(self) -> Array:
        """(r,) V·1, the image of equal weights."""
        return self.V.sum(1)

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

    def newton_solver(self, level: float, s: Array, free: Array) -> Callable[[Array], Array]:
        """A function that solves (level·I + V diag(s) Vᵀ) x = right; `s` is zero where not free."""
        V, xp = self.V, self.xp
        if self.K is None or self.extra is not None:
            return _positive(xp, lambda jitter: _plus(xp, gram(V, s), level + jitter))
        # With the square factor: by Woodbury, through the free part of K.
        if self.nearly_diagonal:
            inner = self._conjugate_gradients(level, xp.floats(free))
            return lambda right: (right - V @ inner(right @ V)) / level
        rows = xp.places(free)
        if not len(rows):
            return lambda right: right / level
        part, K = V[:, rows], xp.submatrix(self.K, rows)
        solve = _positive(xp, lambda jitter: _plus(xp, K + 0.0, level + jitter))
        return lambda right: (right - part @ solve(right @ part)) / level

    def _conjugate_gradients(self, level: float, mask: Array) -> Callable[[Array], Array]:
        """Solve (level·I + K) on the free samples, zero elsewhere; K is close to the identity."""
        K = self.K

        def solve(right: Array) -> Array:
            residual = right * mask
            x, p = 0.0 * residual, residual
            size = float(residual @ residual)
            target = 1e-30 * size
            for _ in range(CG_STEPS):
                if size <= target:
                    break
                q = (K @ p) * mask + level * p
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
    built = matrix(0.0)
    solve = xp.solver(built)
    jitter = 0.0
    while solve is None and jitter < 1e-6:  # relative to the mean of the diagonal
        jitter = max(jitter * 100, 1e-15)
        built = matrix(0.0)
        solve = xp.solver(matrix(jitter * float(built.trace())))
    if solve is None:
        raise MatchingError("kernel mean matching: a linear system is singular; raise the ridge")
    return solve
