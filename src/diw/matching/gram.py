"""The kernel matrix in the form that suits a problem: a low-rank factor, or the matrix itself.

The kernel matrix of losses has a handful of eigenvalues above the ridge, so its
factor K ≈ VᵀV has a handful of rows. Pivoted Cholesky finds it one row at a time, never
forms K, and knows its own error: K − VᵀV is positive semidefinite, and its
diagonal is kept. Training and trusted values are factored together, so that k
comes from the same factor without n × m kernel evaluations. At a rank cap the factor is
cut, and says what it leaves out.

Small problems, and those whose kernel has full rank, use the matrix.
"""

import math
from dataclasses import dataclass

from diw.matching.backend import Array
from diw.matching.kernel import BLOCK, gaussian
from diw.matching.problem import Problem

DIRECT_ROWS = 64  # up to this size the kernel matrix is faster than finding its rank
LOW_RANK = 512  # beyond this rank, and an eighth of n, the kernel matrix is faster
DENSE_ROWS = 8192  # up to this size an n × n matrix is worth its memory

RANK_CAP = 100  # and up to `LOW_RANK`, where n r² is at most
WORK = 1 << 32
LOSS_RANK_CAP = 512  # without columns a kernel row costs little, and such ranks are rare
LOSS_ENTRIES = 1 << 28  # of V, 2 GiB


@dataclass(frozen=True)
class Factor:
    """K ≈ VᵀV and k ≈ Vᵀb."""

    V: Array
    """(r, n)"""
    b: Array
    """(r,)"""
    left: Array
    """(n,) diagonal of K − VᵀV."""
    left_trusted: float
    """(n/m) Σ_j √(left out of trusted value j's diagonal)."""
    capped: bool
    """Whether the rank ended at a cap, with more left out than the tolerance."""
    pivots: tuple[int, ...] = ()
    """(r,) the places of the values, training before trusted, that the rows belong to."""

    @property
    def rank(self) -> int:
        """The number of rows of V."""
        return len(self.V)

    @property
    def k(self) -> Array:
        """(n,) k, as far as the factor has it."""
        return self.b @ self.V

    def apply(self, w: Array) -> Array:
        """(n,) Kw, as far as the factor has it."""
        return (self.V @ w) @ self.V


@dataclass(frozen=True)
class Dense:
    """K and k, with every kernel value."""

    K: Array
    """(n, n)"""
    k: Array
    """(n,)"""

    capped = False

    @property
    def rank(self) -> int:
        """n: nothing is left out."""
        return len(self.k)

    def apply(self, w: Array) -> Array:
        """(n,) Kw."""
        return self.K @ w


Gram = Factor | Dense


def gram_of(problem: Problem, rank: int | None) -> Gram:
    """The form that suits the problem's size and rank; `rank` caps a factor."""
    n = problem.n
    if n > DENSE_ROWS or (rank is not None and rank < n):
        if rank is None:
            pays = RANK_CAP if problem.z.ndim == 2 else None
            return pivoted_cholesky(problem, _default_cap(problem), pays=pays)
        return pivoted_cholesky(problem, min(rank, n))
    if n <= DIRECT_ROWS:
        return dense(problem)
    factor = pivoted_cholesky(problem, min(n // 3, max(LOW_RANK, n // 8)), hopeless=4.0)
    return dense(problem) if factor.capped else factor


def _default_cap(problem: Problem) -> int:
    """The rank at which the factor of a large problem is cut."""
    if problem.z.ndim == 2:
        return max(RANK_CAP, min(LOW_RANK, math.isqrt(WORK // len(problem.z))))
    return max(RANK_CAP, min(LOSS_RANK_CAP, LOSS_ENTRIES // len(problem.z)))


def pivoted_cholesky(
    problem: Problem,
    cap: int,
    *,
    hopeless: float = math.inf,
    pays: int | None = None,
    mass: Array | None = None,
) -> Factor:
    """The factor of training and trusted values together, of at most `cap` rows.

    `mass` (m,) is how many samples each trusted value stands for, if not one.
    It gives up early where the largest entry left, which falls about
    geometrically, would need more than `hopeless` times as many rows, and after `pays` rows
    where more than half of the trace is left: so flat a kernel matrix has no low-rank part.
    """
    xp, z, n = problem.xp, problem.z, problem.n
    size = len(z)
    tolerance = min(max(1e-8 * problem.ridge, 1e-14), 1e-11)
    norms = (z * z).sum(1) if z.ndim == 2 else None
    V = xp.empty(cap, size)
    left = xp.full(size, 1.0)
    rows, worst, pivots = 0, 1.0, list[int]()
    while True:
        pivot = int(left.argmax())
        worst = float(left[pivot])
        if rows == cap or worst <= tolerance:
            break
        if rows and rows % 64 == 0:
            needed = rows * math.log(tolerance) / math.log(min(worst, 1 - 1e-9))
            if needed > hopeless * cap:
                break
        if rows == pays and float(left.sum()) > 0.5 * size:
            break
        row = V[rows]
        if z.ndim == 1:
            row[:] = z
            row -= float(z[pivot])
            row *= row
            row *= -problem.gamma
            xp.exp_(row)
        else:
            row[:] = gaussian(z, z[pivot : pivot + 1], problem.gamma, norms)[:, 0]
        if rows:
            row -= V[:rows, pivot] @ V[:rows]
        row *= 1.0 / math.sqrt(worst)
        left -= row * row
        left[pivot] = 0.0
        pivots.append(pivot)
        rows += 1
    left = xp.floor(left, 0.0)
    ratio, b, roots = n / (size - n), V[:rows, n:], left[n:] ** 0.5
    if mass is not None:
        ratio, b, roots = n / float(mass.sum()), b * mass, roots * mass
    return Factor(
        V=V[:rows, :n],
        b=b.sum(1) * ratio,
        left=left[:n],
        left_trusted=float(roots.sum()) * ratio,
        capped=worst > tolerance,
        pivots=tuple(pivots),
    )


def dense(problem: Problem) -> Dense:
    """K of shape (n, n) and k_i = (n/m) Σ_j k(z_i, z_j^trusted)."""
    n, gamma = problem.n, problem.gamma
    z = problem.z[:, None] if problem.z.ndim == 1 else problem.z
    train, ratio = z[:n], n / (len(z) - n)
    if n * len(z) <= BLOCK:
        both = gaussian(train, z, gamma)
        return Dense(both[:, :n], both[:, n:].sum(1) * ratio)
    k = problem.xp.full(n, 0.0)
    step = max(1, BLOCK // n)
    for start in range(n, len(z), step):
        k += gaussian(train, z[start : start + step], gamma).sum(1)
    return Dense(gaussian(train, train, gamma), k * ratio)
