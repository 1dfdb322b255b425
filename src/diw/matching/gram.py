"""The Gaussian kernel, its matrix in the form that suits a problem, and solving with it.

The kernel matrix of losses has a handful of eigenvalues above the ridge, so its
factor K ≈ VᵀV has a handful of rows. Pivoted Cholesky finds it one row at a time, never
forms K, and knows its own error: K − VᵀV is positive semidefinite, and its
diagonal is kept. Training and trusted values are factored together, so that k
comes from the same factor without n × m kernel evaluations. At a rank cap the factor is
cut, and says what it leaves out. Small problems, and those whose kernel has full rank, use the
matrix.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack  # pyright: ignore[reportMissingTypeStubs]

from diw.errors import MatchingError

FloatArray = NDArray[np.float64]
Solve = Callable[[FloatArray], FloatArray]
"""Solves a linear system: right-hand side (n,) to solution (n,)."""

_potrf: Any = lapack.dpotrf  # pyright: ignore
_potrs: Any = lapack.dpotrs  # pyright: ignore
_trmm: Any = blas.dtrmm  # pyright: ignore

BLOCK = 1 << 22
"""Numbers that a temporary block may hold."""
EPSILON = 2.3e-16
_EXACT = 1e3  # γ‖z‖² beyond which distances that matter are computed from differences
_ROUNDING = 1e-14  # relative to the norms: the error of a squared distance by a matrix product
_ENTRIES = 1 << 18  # of a factor in one block of a Gram matrix: V·s stays in the cache

DIRECT_ROWS = 64  # up to this size the kernel matrix is faster than finding its rank
LOW_RANK = 512  # beyond this rank, and an eighth of n, the kernel matrix is faster
DENSE_ROWS = 8192  # up to this size an n × n matrix is worth its memory
RANK_CAP = 100  # and up to `LOW_RANK`, where n r² is at most
WORK = 1 << 32
LOSS_RANK_CAP = 512  # without columns a kernel row costs little, and such ranks are rare
LOSS_ENTRIES = 1 << 28  # of V, 2 GiB


def gaussian(
    a: FloatArray, b: FloatArray, gamma: float, norms: FloatArray | None = None
) -> FloatArray:
    """exp(−γ‖a_i − b_j‖²) of shape (len(a), len(b)), of two (·, d) arrays.

    `gamma` has scikit-learn's meaning; `norms` are the ‖a_i‖², for a caller that has them.
    """
    kernel = distances_for(a, b, gamma, gamma, norms)
    kernel *= -gamma
    return np.exp(kernel, out=kernel)


def distances_for(
    a: FloatArray, b: FloatArray, least: float, most: float, norms: FloatArray | None = None
) -> FloatArray:
    """‖a_i − b_j‖², as exact as kernels with γ from `least` to `most` need them."""
    if a.shape[1] == 1:
        squares = a - b[:, 0]
        squares *= squares
        return squares
    # Rounding moves γ‖a − b‖² by about 1e-16·γ‖a‖². Where that is too much, the
    # distances that matter (a kernel value above 1e-20) are computed from differences.
    others = (b * b).sum(1)
    exact = most * float(others.max()) > _EXACT
    return squared_distances(a, b, 46.0 / least if exact else -1.0, norms, others)


def squared_distances(
    a: FloatArray,
    b: FloatArray,
    below: float,
    norms_a: FloatArray | None = None,
    norms_b: FloatArray | None = None,
) -> FloatArray:
    """‖a_i − b_j‖² of shape (len(a), len(b)), of two (·, d) arrays.

    One matrix product gives all of them, with an absolute error of about
    1e-16·‖a‖²; those that may be at most `below` are computed again from differences.
    `norms_a` and `norms_b` are the ‖a_i‖² and ‖b_j‖², for a caller that has them.
    """
    ours: FloatArray = ((a * a).sum(1) if norms_a is None else norms_a)[:, None]
    theirs: FloatArray = (b * b).sum(1) if norms_b is None else norms_b
    squares = a @ b.T
    squares *= -2.0
    squares += ours
    squares += theirs
    if below >= 0:
        rows, columns = (squares <= below + _ROUNDING * (ours + theirs)).nonzero()
        step = max(1, BLOCK // a.shape[1])
        for i in range(0, len(rows), step):
            left, right = rows[i : i + step], columns[i : i + step]
            difference = a[left] - b[right]
            squares[left, right] = (difference * difference).sum(1)
    return np.maximum(squares, 0.0, out=squares)


def rounding(gamma: float, largest: float, columns: int) -> float:
    """How far a computed kernel value may be from the exact one.

    A value is exp(−x). From a difference, x has a relative error of a few ε, and x·exp(−x) is
    below one half; from a matrix product over d columns, an absolute error of
    (2d + 8)·ε·γ‖z‖². That is as large as `gaussian` lets it be.

    Args:
        gamma: γ.
        largest: The largest ‖z‖²; not used with one column.
        columns: d.
    """
    if columns == 1:
        return 2 * EPSILON
    return (2 + (2 * columns + 8) * min(gamma * largest, 4 * _EXACT)) * EPSILON


@dataclass(frozen=True)
class Factor:
    """K ≈ VᵀV and k ≈ Vᵀb."""

    V: FloatArray
    """(r, n)"""
    b: FloatArray
    """(r,)"""
    left: FloatArray
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
    def k(self) -> FloatArray:
        """(n,) k, as far as the factor has it."""
        return self.b @ self.V

    def apply(self, w: FloatArray) -> FloatArray:
        """(n,) Kw, as far as the factor has it."""
        return (self.V @ w) @ self.V


@dataclass(frozen=True)
class Dense:
    """K and k, with every kernel value."""

    K: FloatArray
    """(n, n)"""
    k: FloatArray
    """(n,)"""

    capped = False

    @property
    def rank(self) -> int:
        """n: nothing is left out."""
        return len(self.k)

    def apply(self, w: FloatArray) -> FloatArray:
        """(n,) Kw."""
        return self.K @ w


Gram = Factor | Dense


def gram_of(z: FloatArray, n: int, gamma: float, ridge: float, rank: int | None = None) -> Gram:
    """The form that suits the size and rank of a problem; `rank` caps a factor.

    Args:
        z: (n + m,) or (n + m, d) training, then trusted values.
        n: How many are training values.
        gamma: γ of the kernel.
        ridge: ω: what a factor may leave out is small beside it.
        rank: The most rows of a factor.
    """
    if n > DENSE_ROWS or (rank is not None and rank < n):
        if rank is None:
            pays = RANK_CAP if z.ndim == 2 else None
            return pivoted_cholesky(z, n, gamma, ridge, _default_cap(z), pays=pays)
        return pivoted_cholesky(z, n, gamma, ridge, min(rank, n))
    if n <= DIRECT_ROWS:
        return dense(z, n, gamma)
    cap = min(n // 3, max(LOW_RANK, n // 8))
    factor = pivoted_cholesky(z, n, gamma, ridge, cap, hopeless=4.0)
    return dense(z, n, gamma) if factor.capped else factor


def _default_cap(z: FloatArray) -> int:
    """The rank at which the factor of a large problem is cut."""
    if z.ndim == 2:
        return max(RANK_CAP, min(LOW_RANK, math.isqrt(WORK // len(z))))
    return max(RANK_CAP, min(LOSS_RANK_CAP, LOSS_ENTRIES // len(z)))


def pivoted_cholesky(
    z: FloatArray,
    n: int,
    gamma: float,
    ridge: float,
    cap: int,
    *,
    hopeless: float = math.inf,
    pays: int | None = None,
) -> Factor:
    """The factor of training and trusted values together, of at most `cap` rows.

    It gives up early where the largest entry left, which falls about
    geometrically, would need more than `hopeless` times as many rows, and after `pays` rows
    where more than half of the trace is left: so flat a kernel matrix has no low-rank part.
    """
    size = len(z)
    tolerance = min(max(1e-8 * ridge, 1e-14), 1e-11)
    norms = (z * z).sum(1) if z.ndim == 2 else None
    V = np.empty((cap, size))
    left = np.full(size, 1.0)
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
            row *= -gamma
            np.exp(row, out=row)
        else:
            row[:] = gaussian(z, z[pivot : pivot + 1], gamma, norms)[:, 0]
        if rows:
            row -= V[:rows, pivot] @ V[:rows]
        row *= 1.0 / math.sqrt(worst)
        left -= row * row
        left[pivot] = 0.0
        pivots.append(pivot)
        rows += 1
    left = np.maximum(left, 0.0)
    ratio = n / (size - n)
    return Factor(
        V=V[:rows, :n],
        b=V[:rows, n:].sum(1) * ratio,
        left=left[:n],
        left_trusted=float((left[n:] ** 0.5).sum()) * ratio,
        capped=worst > tolerance,
        pivots=tuple(pivots),
    )


@dataclass(frozen=True)
class Basis:
    """The factor for values that were not there when it was made: V = L⁻¹ k(pivots, z)."""

    pivots: FloatArray
    """(r, d)"""
    inverse: FloatArray
    """(r, r) L⁻¹, where LLᵀ is the pivots' kernel matrix."""
    gamma: float

    @classmethod
    def of(cls, pivots: FloatArray, gamma: float, ridge: float = 1e-15) -> "Basis":
        """From the pivots (r, d) in an order in which it is stable, or with a larger ridge."""
        kernel = gaussian(pivots, pivots, gamma)
        inverse: Any = np.linalg.inv(np.linalg.cholesky(kernel + ridge * np.eye(len(kernel))))
        return cls(pivots, inverse, gamma)

    def columns(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """V (r, k) of values (k, d), and what it leaves of their kernel's diagonal (k,)."""
        kernel = gaussian(self.pivots, z, self.gamma)
        # L⁻¹ k in place. L⁻¹ is triangular, and BLAS has its matrices column by column.
        V: FloatArray = _trmm(1.0, self.inverse.T, kernel.T, side=1, overwrite_b=1).T
        return V, np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 0.0)


def dense(z: FloatArray, n: int, gamma: float) -> Dense:
    """K of shape (n, n) and k_i = (n/m) Σ_j k(z_i, z_j^trusted)."""
    z = z[:, None] if z.ndim == 1 else z
    train, ratio = z[:n], n / (len(z) - n)
    if n * len(z) <= BLOCK:
        both = gaussian(train, z, gamma)
        return Dense(both[:, :n], both[:, n:].sum(1) * ratio)
    k = np.full(n, 0.0)
    step = max(1, BLOCK // n)
    for start in range(n, len(z), step):
        k += gaussian(train, z[start : start + step], gamma).sum(1)
    return Dense(gaussian(train, train, gamma), k * ratio)


def clip(x: FloatArray, high: float) -> FloatArray:
    """Entries clipped to [0, high], in a fifth of the time of `np.clip`."""
    return np.minimum(np.maximum(x, 0.0), high)


def magnitude(x: FloatArray) -> float:
    """The largest absolute value of an array, 0.0 of an empty one; NaN if it holds one."""
    return max(float(x.max()), -float(x.min())) if 0 not in x.shape else 0.0


def weighted_gram(V: FloatArray, s: FloatArray) -> FloatArray:
    """V diag(s) Vᵀ of a (r, n) factor, in blocks of columns."""
    r, n = V.shape
    columns = max(1024, _ENTRIES // max(r, 1))
    total = (V[:, :columns] * s[:columns]) @ V[:, :columns].T
    for start in range(columns, n, columns):
        part = V[:, start : start + columns]
        total += (part * s[start : start + columns]) @ part.T
    return total


def add_to_diagonal(matrix: FloatArray, value: FloatArray | float) -> FloatArray:
    """Add a number or a vector to the diagonal, in place; the matrix is returned."""
    if matrix.flags.c_contiguous:
        matrix.reshape(-1)[:: len(matrix) + 1] += value
    else:
        diagonal = np.einsum("ii->i", matrix)
        diagonal += value
    return matrix


def positive_solver(matrix: Callable[[], FloatArray], diagonal: float = 0.0) -> Solve:
    """A solver for `matrix()` + `diagonal`·I, positive definite if need be up to rounding.

    `matrix` is called anew for each attempt, because a factorisation overwrites its matrix.
    LAPACK is called directly: SciPy's wrappers cost more than a small solve.
    """
    more, jitter = diagonal, 1e-15
    while True:
        # The matrix is symmetric: its transpose is in the order LAPACK works in place on.
        factor, failed = _potrf(add_to_diagonal(matrix(), more).T, 0, 0, 1)
        if not failed:
            return lambda right: _potrs(factor, right, 0)[0]
        if jitter > 1e-6:
            raise MatchingError("kernel mean matching: a linear system is singular; raise ridge")
        trace = float(add_to_diagonal(matrix(), diagonal).trace())
        more, jitter = diagonal + jitter * trace, 100 * jitter


def woodbury(V: FloatArray, d: FloatArray) -> Solve:
    """A solver for (VᵀV + diag(d)) x = right, for V (r, n) and d > 0, by Woodbury's identity."""
    inverse = 1.0 / d
    solve = positive_solver(lambda: weighted_gram(V, inverse), 1.0)

    def apply(right: FloatArray) -> FloatArray:
        x = right * inverse
        return x - (solve(V @ x) @ V) * inverse

    return apply


def conjugate_gradients(
    apply: Solve, right: FloatArray, inverse: FloatArray | float, accuracy: float, steps: int
) -> tuple[FloatArray, float]:
    """Solve with a positive definite matrix that is close to a diagonal one.

    Args:
        apply: The product with the matrix.
        right: (n,) right-hand side.
        inverse: The inverse of the diagonal, as a preconditioner.
        accuracy: The relative residual at which to stop.
        steps: The largest number of steps.

    Returns:
        The solution and its relative residual, both in the preconditioner's norm.
    """
    x, residual = 0.0 * right, right
    p = inverse * residual
    first = size = float(residual @ p)
    for _ in range(steps):
        if size <= accuracy * accuracy * first:
            break
        q = apply(p)
        step = size / float(p @ q)
        x, residual = x + step * p, residual - step * q
        scaled = inverse * residual
        before, size = size, float(residual @ scaled)
        p = scaled + (size / before) * p
    return x, (size / first) ** 0.5 if first > 0 else 0.0
