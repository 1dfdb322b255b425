"""NumPy and torch behind one interface.

The solvers are written once, with the operators and methods that both kinds of array
share (`Array`); the operations that the libraries spell differently are here (`Backend`).
NumPy serves everything on the CPU: a call costs about a fifth of torch's, and a mini-batch
is nothing but calls. torch serves tensors on a GPU, which never leave it.
"""
# ruff: noqa: D102  the methods of `Array` are those of NumPy and torch

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack  # pyright: ignore[reportMissingTypeStubs]

from diw.errors import MatchingError

FloatArray = NDArray[np.float64]
Values = Any
"""What a caller gives and gets: a NumPy array, a tensor, or nested lists of numbers."""
Native = Any
"""An array of the library that a backend stands for; to the solvers it is an `Array`."""
BackendName = Literal["auto", "numpy", "torch"]

_potrf: Any = lapack.dpotrf  # pyright: ignore
_potrs: Any = lapack.dpotrs  # pyright: ignore

_ENTRIES = 1 << 18  # of a factor in one block of a Gram matrix: V·s stays in the cache


class Array(Protocol):
    """What a float64 array of NumPy and a tensor have in common, as far as it is used here.

    Comparisons give masks and `argmax` an index, which are arrays of the same kind.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def T(self) -> "Array": ...
    def __len__(self) -> int: ...
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> "Array": ...
    def __setitem__(self, index: Any, value: "Array | float", /) -> None: ...
    def __neg__(self) -> "Array": ...
    def __abs__(self) -> "Array": ...
    def __invert__(self) -> "Array": ...
    def __add__(self, other: "Array | float", /) -> "Array": ...
    def __radd__(self, other: float, /) -> "Array": ...
    def __sub__(self, other: "Array | float", /) -> "Array": ...
    def __rsub__(self, other: float, /) -> "Array": ...
    def __mul__(self, other: "Array | float", /) -> "Array": ...
    def __rmul__(self, other: float, /) -> "Array": ...
    def __truediv__(self, other: "Array | float", /) -> "Array": ...
    def __rtruediv__(self, other: float, /) -> "Array": ...
    def __pow__(self, other: float, /) -> "Array": ...
    def __matmul__(self, other: "Array", /) -> "Array": ...
    def __and__(self, other: "Array", /) -> "Array": ...
    def __or__(self, other: "Array", /) -> "Array": ...
    def __lt__(self, other: "Array | float", /) -> "Array": ...
    def __le__(self, other: "Array | float", /) -> "Array": ...
    def __gt__(self, other: "Array | float", /) -> "Array": ...
    def __ge__(self, other: "Array | float", /) -> "Array": ...
    def sum(self, axis: int = ..., /) -> "Array": ...
    def min(self) -> "Array": ...
    def max(self) -> "Array": ...
    def all(self) -> "Array": ...
    def any(self) -> "Array": ...
    def argmax(self) -> "Array": ...
    def trace(self) -> "Array": ...


Solve = Callable[[Array], Array]
"""Solves a linear system: right-hand side (n,) to solution (n,)."""


class Backend(Protocol):
    """The operations that NumPy and torch spell differently."""

    def empty(self, *shape: int) -> Array:
        """Uninitialised numbers."""
        ...

    def full(self, size: int, value: float) -> Array:
        """`size` times the same number."""
        ...

    def array(self, values: Values) -> Array:
        """Values as an array of this kind."""
        ...

    def median(self, x: Array) -> Array:
        """A median of each column, the lower or the upper one of an even number."""
        ...

    def clip(self, x: Array, high: float) -> Array:
        """Entries clipped to [0, high]."""
        ...

    def floor(self, x: Array, low: float, *, in_place: bool = False) -> Array:
        """The larger of each entry and `low`."""
        ...

    def exp_(self, x: Array) -> None:
        """The exponential, in place."""
        ...

    def equal(self, a: Array, b: Array) -> Array:
        """(n,) mask of the entries that are equal."""
        ...

    def same(self, a: Array, b: Array) -> bool:
        """Whether two arrays are equal in every entry."""
        ...

    def where(self, mask: Array) -> tuple[Array, ...]:
        """The indices along each axis at which a mask is true."""
        ...

    def largest(self, x: Array, count: int) -> Array:
        """The indices of the `count` largest entries."""
        ...

    def first_bound(self, w: Array, d: Array, high: float) -> float:
        """The t at which the first entry of w + t·d leaves [0, high]."""
        ...

    def floats(self, mask: Array) -> Array:
        """A mask, or numbers, as float64."""
        ...

    def submatrix(self, matrix: Array, rows: Array) -> Array:
        """A copy of the given rows and columns of a square matrix."""
        ...

    def add_to_diagonal(self, matrix: Array, value: Array | float) -> Array:
        """Add a number or a vector to the diagonal, in place; the matrix is returned."""
        ...

    def cholesky(self, matrix: Array) -> Solve | None:
        """A solver for a positive definite matrix, which it may overwrite; None if it is not."""
        ...


class _Numpy(Backend):
    """NumPy, with LAPACK called directly: SciPy's wrappers cost more than a small solve."""

    def empty(self, *shape: int) -> Native:
        return np.empty(shape)

    def full(self, size: int, value: float) -> Native:
        return np.full(size, value)

    def array(self, values: Values) -> Native:
        return np.asarray(values, dtype=np.float64)

    def median(self, x: Native) -> Native:
        return np.partition(x, len(x) // 2, axis=0)[len(x) // 2]

    def clip(self, x: Native, high: float) -> Native:
        return np.minimum(np.maximum(x, 0.0), high)  # a fifth of the time of `np.clip`

    def floor(self, x: Native, low: float, *, in_place: bool = False) -> Native:
        return np.maximum(x, low, out=x if in_place else None)

    def exp_(self, x: Native) -> None:
        np.exp(x, out=x)

    def equal(self, a: Native, b: Native) -> Native:
        return a == b

    def same(self, a: Native, b: Native) -> bool:
        return bool((a == b).all())

    def where(self, mask: Native) -> tuple[Native, ...]:
        return mask.nonzero()

    def largest(self, x: Native, count: int) -> Native:
        return np.argpartition(x, -count)[-count:]

    def first_bound(self, w: Native, d: Native, high: float) -> float:
        falls, rises = d < 0, d > 0
        down = (w[falls] / -d[falls]).min(initial=np.inf)
        return float(min(down, ((high - w[rises]) / d[rises]).min(initial=np.inf)))

    def floats(self, mask: Native) -> Native:
        return mask.astype(np.float64)

    def submatrix(self, matrix: Native, rows: Native) -> Native:
        return matrix[np.ix_(rows, rows)]

    def add_to_diagonal(self, matrix: Native, value: Native) -> Native:
        if matrix.flags.c_contiguous:
            matrix.reshape(-1)[:: len(matrix) + 1] += value
        else:
            diagonal: Native = np.einsum("ii->i", matrix)
            diagonal += value
        return matrix

    def cholesky(self, matrix: Native) -> Solve | None:
        # The matrix is symmetric: its transpose is in the order LAPACK works in place on.
        factor, failed = _potrf(matrix.T, 0, 0, 1)
        return None if failed else lambda right: _potrs(factor, right, 0)[0]


class _Torch(Backend):
    """torch in float64 on one device."""

    def __init__(self, device: Any):
        self.torch: Native = import_module("torch")
        self.options: dict[str, Any] = {"dtype": self.torch.float64, "device": device}

    def empty(self, *shape: int) -> Native:
        return self.torch.empty(shape, **self.options)

    def full(self, size: int, value: float) -> Native:
        return self.torch.full((size,), value, **self.options)

    def array(self, values: Values) -> Native:
        return self.torch.as_tensor(values, **self.options)

    def median(self, x: Native) -> Native:
        return x.median(dim=0).values

    def clip(self, x: Native, high: float) -> Native:
        return x.clamp(0.0, high)

    def floor(self, x: Native, low: float, *, in_place: bool = False) -> Native:
        return x.clamp_(min=low) if in_place else x.clamp(min=low)

    def exp_(self, x: Native) -> None:
        x.exp_()

    def equal(self, a: Native, b: Native) -> Native:
        return a == b

    def same(self, a: Native, b: Native) -> bool:
        return bool(self.torch.equal(a, b))

    def where(self, mask: Native) -> tuple[Native, ...]:
        return mask.nonzero(as_tuple=True)

    def largest(self, x: Native, count: int) -> Native:
        return x.topk(count).indices

    def first_bound(self, w: Native, d: Native, high: float) -> float:
        room = self.torch.where(d < 0, w, high - w) / d.abs()
        return float(room.nan_to_num(nan=self.torch.inf).min())

    def floats(self, mask: Native) -> Native:
        return mask.double()

    def submatrix(self, matrix: Native, rows: Native) -> Native:
        return matrix[rows][:, rows]

    def add_to_diagonal(self, matrix: Native, value: Native) -> Native:
        matrix.diagonal().add_(value)
        return matrix

    def cholesky(self, matrix: Native) -> Solve | None:
        factor, failed = self.torch.linalg.cholesky_ex(matrix)
        if int(failed):
            return None
        return lambda right: self.torch.cholesky_solve(cast(Native, right)[:, None], factor)[:, 0]


NUMPY: Backend = _Numpy()


def backend_for(z: Values, name: BackendName = "auto") -> Backend:
    """The backend for values as a caller gives them.

    By itself torch is chosen only for tensors on a device that computes in float64 faster there.
    """
    tensor = is_tensor(z)
    if name == "numpy" or (name == "auto" and (not tensor or z.device.type in ("cpu", "mps"))):
        return NUMPY
    return _Torch(z.device if tensor else "cpu")


def backend_of(x: Array) -> Backend:
    """The backend that an array of ours belongs to."""
    return NUMPY if isinstance(x, np.ndarray) else backend_for(x, "torch")


def is_tensor(z: Values) -> bool:
    """Whether values are a tensor; asked without importing torch."""
    return hasattr(z, "detach")


def to_numpy(x: Array) -> FloatArray:
    """An array, or a tensor on any device, as a NumPy array."""
    own: Any = x
    return own.cpu().numpy() if is_tensor(own) else own


def like(z: Values, w: Array, bound: float) -> Values:
    """`w` with the kind, device and precision of `z`; rounding never lifts a weight above B."""
    if is_tensor(z):
        single = z.is_floating_point() and z.itemsize < 8
    else:
        dtype = getattr(z, "dtype", None)
        single = dtype is not None and dtype.kind == "f" and dtype.itemsize < 8
    most = np.float32(bound)
    if float(most) > bound:
        most = np.nextafter(most, np.float32(0))
    if is_tensor(z) and is_tensor(w):
        return cast(Any, w).float().clamp(max=float(most)) if single else w
    weights: Any = to_numpy(w)
    if single:
        weights = np.minimum(weights.astype(np.float32), most)
    if not is_tensor(z):
        return weights
    return import_module("torch").from_numpy(weights).to(z.device)


def magnitude(x: Array) -> float:
    """The largest absolute value of an array, 0.0 of an empty one; NaN if it holds one."""
    return max(float(x.max()), -float(x.min())) if 0 not in x.shape else 0.0


def weighted_gram(V: Array, s: Array) -> Array:
    """V diag(s) Vᵀ of a (r, n) factor, in blocks of columns."""
    r, n = V.shape
    columns = max(1024, _ENTRIES // max(r, 1))
    total = (V[:, :columns] * s[:columns]) @ V[:, :columns].T
    for start in range(columns, n, columns):
        part = V[:, start : start + columns]
        total += (part * s[start : start + columns]) @ part.T
    return total


def positive_solver(xp: Backend, matrix: Callable[[], Array], diagonal: float = 0.0) -> Solve:
    """A solver for `matrix()` + `diagonal`·I, positive definite if need be up to rounding.

    `matrix` is called anew for each attempt, because a factorisation overwrites its matrix.
    """
    solve, jitter = xp.cholesky(xp.add_to_diagonal(matrix(), diagonal)), 1e-15
    while solve is None:
        if jitter > 1e-6:
            raise MatchingError("kernel mean matching: a linear system is singular; raise ridge")
        trace = float(xp.add_to_diagonal(matrix(), diagonal).trace())
        more = diagonal + jitter * trace
        solve, jitter = xp.cholesky(xp.add_to_diagonal(matrix(), more)), 100 * jitter
    return solve


def conjugate_gradients(
    apply: Solve, right: Array, inverse: Array | float, accuracy: float, steps: int
) -> tuple[Array, float]:
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
