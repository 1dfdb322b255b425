"""The low-rank factor of the kernel matrix: pivoted Cholesky, one column at a time.

The kernel matrix of losses has a handful of eigenvalues above the ridge. Pivoted
Cholesky finds a factor with K ≈ VᵀV column by column, never forms K, and knows
what it leaves out: K − VᵀV is positive semidefinite with a diagonal that is kept.
Training and trusted values are factored together, so that k comes from the same
factor and costs no n × m kernel evaluations.
"""

from dataclasses import dataclass

import numpy as np

from diw.kernels import Floats


@dataclass(frozen=True)
class Factor:
    """K ≈ VᵀV over training and trusted values, and the diagonal of what is left out."""

    V: Floats
    """(r, n) for the training values, contiguous."""
    b: Floats
    """(r,) with k ≈ Vᵀb: the trusted columns' sum times n/m."""
    left: Floats
    """(n,) diagonal of K − VᵀV, not negative."""
    left_trusted: Floats
    """(m,) the same for the trusted values."""


def pivoted_cholesky(z: Floats, n: int, gamma: float, *, tolerance: float, max_rank: int) -> Factor:
    """Factor the Gaussian kernel of `z`, whose first n values are the training ones.

    Args:
        z: (n + m,) or (n + m, d) values.
        n: How many of them are training values.
        gamma: The kernel's γ, not negative.
        tolerance: Stop when no diagonal entry of K − VᵀV is larger.
        max_rank: Stop at this rank in any case.
    """
    size = len(z)
    cap = min(max_rank, size)
    rows = np.empty((min(cap, 32), size))
    left = np.ones(size)
    rank = 0
    while rank < cap:
        pivot = int(left.argmax())
        largest = float(left[pivot])
        if largest <= tolerance:
            break
        if rank == len(rows):
            rows = np.concatenate([rows, np.empty((min(cap - rank, rank), size))])
        row = rows[rank]
        if z.ndim == 1:
            np.subtract(z, z[pivot], out=row)
            np.multiply(row, row, out=row)
        else:
            difference = z - z[pivot]
            np.einsum("ij,ij->i", difference, difference, out=row)
        row *= -gamma
        np.exp(row, out=row)
        if rank:
            row -= rows[:rank, pivot] @ rows[:rank]
        row *= 1.0 / np.sqrt(largest)
        left -= row * row
        left[pivot] = 0.0
        rank += 1
    rows = rows[:rank]
    np.maximum(left, 0.0, out=left)
    b = rows[:, n:].sum(axis=1) * (n / (size - n))
    return Factor(np.ascontiguousarray(rows[:, :n]), b, left[:n], left[n:])
