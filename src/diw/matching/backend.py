"""The few array operations that NumPy and torch spell differently.

The solvers are written once, with operators and methods both kinds of array
share; what is left is here. NumPy serves everything on the CPU (a call costs
about a fifth of torch's, and a mini-batch is nothing but calls); torch serves
tensors on a GPU, which never leave it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

_potrf: Any = lapack.dpotrf  # pyright: ignore
_potrs: Any = lapack.dpotrs  # pyright: ignore

Array = Any  # numpy.ndarray or torch.Tensor, float64

_COLUMNS = 1 << 15  # of a factor in one block of a Gram matrix: V·s stays in the cache


class NumpyArrays:
    """NumPy, with LAPACK called directly: the wrappers cost more than a small solve."""

    def empty(self, *shape: int) -> Array:
        """Uninitialised numbers; the system commits the memory only when it is written."""
        return np.empty(shape)

    def full(self, size: int, value: float) -> Array:
        """`size` times the same number."""
        return np.full(size, value)

    def array(self, values: Any) -> Array:
        """Values as an array of this kind."""
        return np.asarray(values, dtype=np.float64)

    def middle(self, x: Array) -> Array:
        """A median of each column."""
        return np.partition(x, len(x) // 2, axis=0)[len(x) // 2]

    def clip(self, x: Array, high: float) -> Array:
        """Entries clipped to [0, high]; a fifth of the time of `np.clip`."""
        return np.minimum(np.maximum(x, 0.0), high)

    def floor(self, x: Array, low: float) -> Array:
        """Entries not below `low`."""
        return np.maximum(x, low)

    def exp_(self, x: Array) -> None:
        """The exponential, in place."""
        np.exp(x, out=x)

    def places(self, mask: Array) -> Array:
        """Where a mask is true."""
        return mask.nonzero()[0]

    def top(self, x: Array, count: int) -> Array:
        """Where the `count` largest entries are."""
        return np.argpartition(x, -count)[-count:]

    def first_bound(self, w: Array, d: Array, high: float) -> float:
        """The t at which the first entry of w + t·d leaves [0, high]."""
        falls, rises = d < 0, d > 0
        down = (w[falls] / -d[falls]).min(initial=np.inf)
        return float(min(down, ((high - w[rises]) / d[rises]).min(initial=np.inf)))

    def floats(self, mask: Array) -> Array:
        """A mask, or numbers, as float64."""
        return mask.astype(np.float64)

    def submatrix(self, matrix: Array, rows: Array) -> Array:
        """The rows and columns of a square matrix at some places."""
        return matrix[np.ix_(rows, rows)]

    def same(self, a: Array, b: Array) -> bool:
        """Whether two masks are equal."""
        return bool((a == b).all())

    def add_to_diagonal(self, matrix: Array, value: Any) -> None:
        """Add a number or a vector to the diagonal, in place."""
        if matrix.flags.c_contiguous:
            matrix.reshape(-1)[:: len(matrix) + 1] += value
        else:
            diagonal = np.einsum("ii->i", matrix)
            diagonal += value

    def solver(self, matrix: Array) -> Callable[[Array], Array] | None:
        """A function that solves with a positive definite matrix, which it overwrites."""
        # The matrix is symmetric: its transpose is in the order LAPACK works in place on.
        factor, failed = _potrf(matrix.T, 0, 0, 1)
        return None if failed else lambda right: _potrs(factor, right, 0)[0]


class TorchArrays:
    """torch in float64 on one device."""

    def __init__(self, device: Any):
        import torch

        self.torch = torch
        self.options: dict[str, Any] = {"dtype": torch.float64, "device": device}

    def empty(self, *shape: int) -> Array:
        """Uninitialised numbers."""
        return self.torch.empty(shape, **self.options)

    def full(self, size: int, value: float) -> Array:
        """`size` times the same number."""
        return self.torch.full((size,), value, **self.options)

    def array(self, values: Any) -> Array:
        """Values as a tensor on the device."""
        return self.torch.as_tensor(values, **self.options)

    def middle(self, x: Array) -> Array:
        """A median of each column."""
        return x.median(dim=0).values

    def clip(self, x: Array, high: float) -> Array:
        """Entries clipped to [0, high]."""
        return x.clamp(0.0, high)

    def floor(self, x: Array, low: float) -> Array:
        """Entries not below `low`."""
        return x.clamp(min=low)

    def exp_(self, x: Array) -> None:
        """The exponential, in place."""
        x.exp_()

    def places(self, mask: Array) -> Array:
        """Where a mask is true."""
        return mask.nonzero()[:, 0]

    def top(self, x: Array, count: int) -> Array:
        """Where the `count` largest entries are."""
        return x.topk(count).indices

    def first_bound(self, w: Array, d: Array, high: float) -> float:
        """The t at which the first entry of w + t·d leaves [0, high]."""
        room = self.torch.where(d < 0, w, high - w) / d.abs()
        return float(room.nan_to_num(nan=self.torch.inf).min())

    def floats(self, mask: Array) -> Array:
        """A mask, or numbers, as float64."""
        return mask.double()

    def submatrix(self, matrix: Array, rows: Array) -> Array:
        """The rows and columns of a square matrix at some places."""
        return matrix[rows][:, rows]

    def same(self, a: Array, b: Array) -> bool:
        """Whether two masks are equal."""
        return bool(self.torch.equal(a, b))

    def add_to_diagonal(self, matrix: Array, value: Any) -> None:
        """Add a number or a vector to the diagonal, in place."""
        matrix.diagonal().add_(value)

    def solver(self, matrix: Array) -> Callable[[Array], Array] | None:
        """A function that solves with a positive definite matrix."""
        factor, failed = self.torch.linalg.cholesky_ex(matrix)
        if int(failed):
            return None
        return lambda right: self.torch.cholesky_solve(right[:, None], factor)[:, 0]


Arrays = NumpyArrays | TorchArrays


def largest(x: Array) -> float:
    """The largest magnitude of an array, 0.0 of an empty one; NaN if it holds one."""
    return float(abs(x).max()) if 0 not in x.shape else 0.0


def gram(V: Array, s: Array) -> Array:
    """V diag(s) Vᵀ of a (r, n) factor, in blocks of columns."""
    n = V.shape[1]
    if n <= _COLUMNS:
        return (V * s) @ V.T
    total = (V[:, :_COLUMNS] * s[:_COLUMNS]) @ V[:, :_COLUMNS].T
    for start in range(_COLUMNS, n, _COLUMNS):
        part = V[:, start : start + _COLUMNS]
        total += (part * s[start : start + _COLUMNS]) @ part.T
    return total
