"""One part of a match in parts: the sums that a dual point gives of its values.

Nothing here knows of the other parts, so that it can be done on another machine; see streamed.py.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas  # pyright: ignore[reportMissingTypeStubs]

from diw.matching.gram import FloatArray, gaussian
from diw.seeding import numpy_generator

_triangular_product: Any = blas.dtrmm  # pyright: ignore

ENTRIES = 1 << 21
"""Of V at a time: 16 MiB."""
MISSED = 8
"""Values of each part that may become pivots because the sample has missed them."""


class Part(Protocol):
    """Some of the training values; can be sent to another process, and read there."""

    @property
    def rows(self) -> int:
        """How many."""
        ...

    def read(self) -> FloatArray:
        """(c,) or (c, d), float64 and finite."""
        ...

    def write(self, weights: FloatArray) -> None:
        """Keep the weights (c,) of these values."""
        ...


@dataclass(frozen=True)
class Basis:
    """The factor: column i of V is L⁻¹ k(pivots, z_i)."""

    pivots: FloatArray
    """(r, d)"""
    inverse: FloatArray
    """(r, r) L⁻¹, where LLᵀ is the pivots' kernel matrix."""
    gamma: float
    capped: bool
    ridge: float
    bound: float

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self.pivots)

    def columns(self, z: FloatArray) -> FloatArray:
        """(r, c) of V, for values (c, d)."""
        if z.shape[1] == 1:
            kernel = self.pivots - z[:, 0]
            kernel *= kernel
            kernel *= -self.gamma
            np.exp(kernel, out=kernel)
        else:
            kernel: Any = gaussian(self.pivots, z, self.gamma)  # pyright: ignore
        # L⁻¹ k in place. L⁻¹ is triangular, and BLAS has its matrices column by column.
        return _triangular_product(1.0, self.inverse.T, kernel.T, side=1, overwrite_b=1).T

    def blocks(self, z: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """V (r, c) and what it leaves of the diagonal (c,), of so many values (·, d) at a time."""
        step = max(256, ENTRIES // self.rank)
        for start in range(0, len(z), step):
            V = self.columns(z[start : start + step])
            yield V, np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 0.0)

    def weights(
        self, V: FloatArray, left: FloatArray, y: FloatArray, eta: float
    ) -> tuple[FloatArray, FloatArray]:
        """(c,) the weights of a dual point before clipping, and ω/d."""
        ratio = self.ridge / (self.ridge + left) if self.capped else np.ones_like(left)
        return (y @ V + eta) * ratio, ratio


@dataclass(frozen=True)
class Sums:
    """What a dual point gives, summed over samples."""

    Vw: FloatArray
    total: float
    gram: FloatArray
    """V diag(s) Vᵀ, s = ω/d of the free weights."""
    Vs: FloatArray
    free: float

    def __add__(self, other: "Sums") -> "Sums":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sums(*(a + b for a, b in both))


def as_matrix(z: FloatArray) -> FloatArray:
    """(c, d) values, d = 1 for one number per sample."""
    return z[:, None] if z.ndim == 1 else z


def squares(z: FloatArray) -> float:
    """The largest ‖z‖² of (c, d) values."""
    return float(np.einsum("ij,ij->i", z, z).max())


def drawn(part: Part, share: float) -> FloatArray:
    """A share of a part's values, at random, (c, d)."""
    z = as_matrix(part.read())
    size = max(1, min(len(z), math.ceil(share * len(z))))
    if size == len(z):
        return z
    rows = numpy_generator(0, "sample of a part", len(z)).choice(len(z), size, replace=False)
    return z[np.sort(rows)]


def missed(part: Part, basis: Basis) -> tuple[FloatArray, float]:
    """The values that the factor represents worst, (c, d), and what is left of the worst."""
    z, start = as_matrix(part.read()), 0
    rows, amounts = np.zeros(0, np.int64), np.zeros(0)
    for V, left in basis.blocks(z):
        worst = left.argpartition(-min(MISSED, len(left)))[-MISSED:]
        rows, amounts = np.append(rows, start + worst), np.append(amounts, left[worst])
        start += V.shape[1]
    order = amounts.argsort()[-MISSED:]
    order = order[amounts[order] > 1e-11]
    return z[rows[order]], float(amounts.max())


def sums_of(part: Part, basis: Basis, y: FloatArray, eta: float) -> Sums:
    """What a dual point gives of this part."""
    total: Sums | None = None
    for V, left in basis.blocks(as_matrix(part.read())):
        u, ratio = basis.weights(V, left, y, eta)
        w = np.clip(u, 0.0, basis.bound)
        s = ratio * (w == u)
        Vw, Vs = V @ w, V @ s
        np.multiply(V, np.sqrt(s), out=V)
        # Of a matrix and its own transpose, BLAS computes one half.
        here = Sums(Vw, float(w.sum()), V @ V.T, Vs, float(s.sum()))
        total = here if total is None else total + here
    assert total is not None
    return total


def along(
    part: Part, basis: Basis, y: FloatArray, eta: float, dy: FloatArray, deta: float,
    lengths: FloatArray,
) -> FloatArray:  # fmt: skip
    """(t,) Σ_i w_i(t) (V_i·dy + dη) at some step lengths t."""
    result = np.zeros(len(lengths))
    for V, left in basis.blocks(as_matrix(part.read())):
        u, ratio = basis.weights(V, left, y, eta)
        plain = dy @ V + deta
        for place, length in enumerate(lengths):
            result[place] += plain @ np.clip(u + length * plain * ratio, 0.0, basis.bound)
    return result


def finish(
    part: Part, basis: Basis, y: FloatArray, eta: float, b: FloatArray, Vw: FloatArray
) -> dict[str, float]:
    """Write the weights of a part; what the certificate needs to know of them."""
    z = as_matrix(part.read())
    weights: list[FloatArray] = []
    rows: list[dict[str, float]] = []
    for V, left in basis.blocks(z):
        w = np.clip(basis.weights(V, left, y, eta)[0], 0.0, basis.bound)
        weights.append(w)
        kept = left * w
        rows.append(
            {
                "total": float(w.sum()), "square": float(w @ w), "left": float(left.sum()),
                "root": float(np.sqrt(left) @ w), "kept": float(kept @ w),
                "kept_square": float(kept @ kept), "zeros": float((w == 0).sum()),
                "bounds": float((w >= basis.bound * (1 - 1e-6)).sum()),
            }
        )  # fmt: skip
        rows[-1] |= {"k": float(np.abs(b @ V).max()), "Kw": float(np.abs(Vw @ V).max())}
        rows[-1] |= {"largest": float(w.max())}
    part.write(np.concatenate(weights))
    most = ("k", "Kw", "largest")
    sums = {name: sum(row[name] for row in rows) for name in rows[0] if name not in most}
    largest = {name: max(row[name] for row in rows) for name in most}
    return sums | largest | {"far": squares(z)}
