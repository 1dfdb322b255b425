"""`System`: the matching problem on a factor, and the linear algebra both solvers share.

With K ≈ VᵀV (V of shape (r, n)) and k = Vᵀb the problem is

    minimise ½‖Vw − b‖² + ½ Σ d_i w_i²   over   0 ≤ w ≤ B  (and Σw = total, where one is given),

where d is the ridge ω, or ω plus what a capped factor leaves out of K's diagonal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from diw.matching.backend import Array, Arrays, gram
from diw.matching.positive import plus_diagonal, positive


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
        """A function that solves (VᵀV + diag(d)) x = right, for d > 0, by Woodbury's identity."""
        V, xp = self.V, self.xp
        inverse = 1.0 / d
        solve = positive(xp, lambda jitter: plus_diagonal(xp, gram(V, inverse), 1.0 + jitter))

        def woodbury(right: Array) -> Array:
            x = right * inverse
            return x - (solve(V @ x) @ V) * inverse

        return woodbury

    def newton_solver(self, s: Array) -> Callable[[Array], Array]:
        """A function that solves (ωI + V diag(s) Vᵀ) x = right."""
        V, xp, ridge = self.V, self.xp, self.ridge
        return positive(xp, lambda jitter: plus_diagonal(xp, gram(V, s), ridge + jitter))
