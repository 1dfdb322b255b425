"""Factors of the kernel matrix, K ≈ VᵀV, and what they leave out.

The kernel matrix of losses has a handful of eigenvalues above the ridge, so its
factor has a handful of rows. Pivoted Cholesky finds it one row at a time, never
forms K, and knows its own error: K − VᵀV is positive semidefinite, and its
diagonal is kept. Training and trusted values are factored together, so that k
comes from the same factor without n × m kernel evaluations.

Raw images and other full-rank kernels get the exact n × n factor instead, up to
`DENSE_ROWS` samples; beyond that the factor is cut at a rank cap.
"""

import math
from dataclasses import dataclass

from diw.kernels import gaussian
from diw.matching.arrays import Array
from diw.matching.problem import Problem

DIRECT_ROWS = 64  # up to this size the full factor is faster than finding its rank
GRAM_ROWS = 256  # up to this size V Vᵀ is faster than picking the free part of K
LOW_RANK = 512  # beyond this rank (and a third of n) the n × n factor is faster
DENSE_ROWS = 8192  # up to this size an n × n matrix is worth its memory
RANK_CAP = 100
LOSS_RANK_CAP = 512  # without columns a kernel row costs little, and such ranks are rare
LOSS_ENTRIES = 1 << 28  # of V, 2 GiB
EPSILON = 2.3e-16

_BLOCK = 1 << 22  # kernel values a temporary may hold


@dataclass(frozen=True)
class Factor:
    """K ≈ VᵀV − shift·I and k ≈ Vᵀb."""

    V: Array
    """(r, n)"""
    b: Array
    """(r,)"""
    left: Array | None
    """(n,) diagonal of K − VᵀV, or None: nothing but rounding is left out."""
    left_trusted: float
    """(n/m) Σ_j √(left out of trusted value j's diagonal)."""
    shift: float
    """What was added to K's diagonal to keep its factor regular; the ridge is that much less."""
    K: Array | None
    """(n, n) VᵀV, where the factor is square."""
    nearly_diagonal: bool
    """Whether the rest of every row of K is smaller than its diagonal."""
    capped: bool
    """Whether the rank ended at a cap, with more left out than the tolerance."""


def factor(problem: Problem, rank: int | None) -> Factor:
    """The factor that suits the problem's size and rank; `rank` caps it."""
    n = problem.n
    if n <= DENSE_ROWS and (rank is None or rank >= n):
        if n <= DIRECT_ROWS:
            return full(problem)
        found = pivoted(problem, min(n // 3, LOW_RANK), hopeless=4.0)
        return full(problem) if found.capped else found
    if rank is None:
        rank = RANK_CAP
        if problem.z.ndim == 1:
            rank = max(rank, min(LOSS_RANK_CAP, LOSS_ENTRIES // len(problem.z)))
    return pivoted(problem, min(rank, n))


def pivoted(problem: Problem, cap: int, *, hopeless: float = math.inf) -> Factor:
    """Pivoted Cholesky of training and trusted values together, at most `cap` rows.

    It gives up early where the largest entry left, which falls about
    geometrically, would need more than `hopeless` times as many rows.
    """
    xp, z, n = problem.xp, problem.z, problem.n
    size = len(z)
    tolerance = min(max(1e-8 * problem.ridge, 1e-14), 1e-11)
    norms = (z * z).sum(1) if z.ndim == 2 else None
    V = xp.empty(cap, size)
    left = xp.full(size, 1.0)
    rows, worst = 0, 1.0
    while True:
        pivot = int(left.argmax())
        worst = float(left[pivot])
        if rows == cap or worst <= tolerance:
            break
        if rows and rows % 64 == 0:
            needed = rows * math.log(tolerance) / math.log(min(worst, 1 - 1e-9))
            if needed > hopeless * cap:
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
        rows += 1
    left = xp.floor(left, 0.0)
    ratio = n / (size - n)
    return Factor(
        V=V[:rows, :n],
        b=V[:rows, n:].sum(1) * ratio,
        left=left[:n],
        left_trusted=float((left[n:] ** 0.5).sum()) * ratio,
        shift=0.0,
        K=None,
        nearly_diagonal=False,
        capped=worst > tolerance,
    )


def full(problem: Problem) -> Factor:
    """The square factor: K + shift·I = VᵀV exactly, k with every kernel value.

    A shift far below the ridge keeps a singular K factorable; it is taken off
    the ridge again, so the problem stays the same.
    """
    xp, n = problem.xp, problem.n
    K, k = _kernels(problem)
    shift, lower = 0.0, None
    for attempt in range(8):
        more = min(4 * EPSILON * n * 10.0**attempt, 0.5 * problem.ridge - shift)
        xp.add_to_diagonal(K, more)
        shift += more
        lower = xp.cholesky(K)
        if lower is not None or more <= 0:
            break
    if lower is None:
        raise ValueError(f"ridge: {problem.ridge:g} is lost in rounding at n = {n}; raise it")
    b = xp.forward(lower, k)
    kept = None if n <= GRAM_ROWS else K
    nearly_diagonal = kept is not None and float(K.sum(1).max()) < 2.0
    return Factor(lower.T, b, None, 0.0, shift, kept, nearly_diagonal, False)


def _kernels(problem: Problem) -> tuple[Array, Array]:
    """K of shape (n, n) and k of shape (n,), from every kernel value."""
    n, gamma = problem.n, problem.gamma
    z = problem.z[:, None] if problem.z.ndim == 1 else problem.z
    train, ratio = z[:n], n / (len(z) - n)
    if n <= DIRECT_ROWS and len(z) <= 4 * DIRECT_ROWS:
        both = gaussian(train, z, gamma)
        return both[:, :n], both[:, n:].sum(1) * ratio
    k = problem.xp.full(n, 0.0)
    step = max(1, _BLOCK // n)
    for start in range(n, len(z), step):
        k += gaussian(train, z[start : start + step], gamma).sum(1)
    return gaussian(train, train, gamma), k * ratio
