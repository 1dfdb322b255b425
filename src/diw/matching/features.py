"""Features of many values, as a logistic regression (regression.py) reads them.

Features x are (p,), and their first entry is one. New memory takes longer than what is computed
with it, so that those which are a column's values, moved and scaled, are never written down.
"""
# ruff: noqa: D102  the methods are explained once, in `Features`

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, to_numpy, weighted_gram

PART = 4096  # values at once
RUN = 256  # values side by side, where some stand for all


class Features(Protocol):
    """Features of N values, with what a fit computes from them."""

    def log_odds(self, a: FloatArray, part: slice) -> FloatArray:
        """aᵀx of each value of a part, for coefficients a (p,)."""
        ...

    def total(self, weights: FloatArray, part: slice) -> FloatArray:
        """Σ w_i x_i over the values of a part, (p,)."""
        ...

    def gram(self, weights: FloatArray, every: int) -> FloatArray:
        """Σ w_i x_i x_iᵀ, (p, p), over one in `every` value, which stand for all."""
        ...


@dataclass(frozen=True)
class Written(Features):
    """Features that are there: X (p, N), one value per column."""

    X: FloatArray

    def log_odds(self, a: FloatArray, part: slice) -> FloatArray:
        return a @ self.X[:, part]

    def total(self, weights: FloatArray, part: slice) -> FloatArray:
        return self.X[:, part] @ weights

    def gram(self, weights: FloatArray, every: int) -> FloatArray:
        found = np.zeros((len(self.X), len(self.X)))
        for run in runs(len(weights), every):
            X, w = NUMPY.array(self.X[:, run]), NUMPY.array(every * weights[run])
            found += to_numpy(weighted_gram(X, w))
        return found


@dataclass(frozen=True)
class Standardised(Features):
    """(1, scale · (v − centre)) for values v, the columns of V (d, N)."""

    V: FloatArray
    centre: FloatArray
    """(d,)."""
    scale: FloatArray
    """(d,)."""

    def log_odds(self, a: FloatArray, part: slice) -> FloatArray:
        slopes = a[1:] * self.scale
        log_odds = slopes @ self.V[:, part]
        log_odds += a[0] - slopes @ self.centre
        return log_odds

    def total(self, weights: FloatArray, part: slice) -> FloatArray:
        return self._moved(weights.sum(), self.V[:, part] @ weights)

    def gram(self, weights: FloatArray, every: int) -> FloatArray:
        total, along = 0.0, np.zeros(len(self.scale))
        for run in runs(len(weights), every):
            total += every * float(weights[run].sum())
            along += every * (self.V[:, run] @ weights[run])
        found = np.empty((1 + len(along), 1 + len(along)))
        found[0] = found[:, 0] = self._moved(total, along)
        others = Written(self.V).gram(weights, every) - np.outer(self.centre, along)
        others -= np.outer(along - total * self.centre, self.centre)
        found[1:, 1:] = self.scale[:, None] * others * self.scale
        return found

    def _moved(self, total: float, along: FloatArray) -> FloatArray:
        """Σ w_i x_i from Σ w_i and Σ w_i v_i."""
        return np.concatenate([[total], (along - total * self.centre) * self.scale])


def runs(size: int, every: int) -> Iterator[slice]:
    """One in `every` of `size` values, `RUN` side by side, which are faster to read."""
    length = RUN if every > 1 else size
    return (slice(i, min(i + length, size)) for i in range(0, size, every * length))


def parts(size: int) -> Iterator[slice]:
    """Parts of `size` values that stay in the processor's cache, which is what takes time."""
    return (slice(i, min(i + PART, size)) for i in range(0, size, PART))
