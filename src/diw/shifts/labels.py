"""Label noise: transition matrices and the draw of given labels from them.

Fang et al. 2020, Section 3: class-conditional noise p(ỹ | y), `T[y, ỹ]` here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.base import Floats, Ints, Passage, number_text


def pair_matrix(rate: float, num_classes: int) -> Floats:
    """T (k, k) of pair flip: class j becomes j + 1 (mod k) with probability `rate`."""
    _check_rate(rate)
    return (1 - rate) * np.eye(num_classes) + rate * np.roll(np.eye(num_classes), 1, axis=1)


def symmetric_matrix(rate: float, num_classes: int) -> Floats:
    """T (k, k) of symmetric flip: any other class, with probability `rate` / (k - 1) each."""
    _check_rate(rate)
    if num_classes < 2:
        return np.eye(num_classes)
    off = rate / (num_classes - 1)
    return np.full((num_classes, num_classes), off) + (1 - rate - off) * np.eye(num_classes)


def flip(targets: npt.ArrayLike, matrix: npt.ArrayLike, rng: np.random.Generator) -> Ints:
    """Given labels (n,) drawn from the rows `T[y]` of a transition matrix (k, k).

    One uniform number a row, compared with the cumulated row of T: each label
    is drawn independently and exactly by T.
    """
    labels = np.asarray(targets, np.int64)
    transition = check_stochastic(matrix, "matrix")
    # Stay first: the row's own class takes the front of [0, 1), so T = I is exactly the identity.
    k = len(transition)
    own = np.arange(k)
    order = (own[:, None] + own[None, :]) % k
    edges = np.cumsum(np.take_along_axis(transition, order, axis=1), axis=1)
    edges[:, -1] = 1.0
    drawn = rng.random(len(labels))
    steps = np.empty(len(labels), np.int64)
    for label in range(k):
        rows = labels == label
        steps[rows] = np.searchsorted(edges[label], drawn[rows], side="right")
    return (labels + steps) % k


def check_stochastic(matrix: npt.ArrayLike, name: str) -> Floats:
    """The matrix as (k, k) floats whose rows are probabilities; anything else is refused."""
    values = np.asarray(matrix, np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not len(values):
        raise UsageError(f"{name}: expected a square matrix, got shape {values.shape}")
    if not np.isfinite(values).all() or values.min() < 0:
        raise UsageError(f"{name}: probabilities must be finite and not negative")
    wrong = np.flatnonzero(np.abs(values.sum(axis=1) - 1) > 1e-6)
    if len(wrong):
        row = int(wrong[0])
        raise UsageError(f"{name}: row {row} sums to {values[row].sum():.6g}, expected 1")
    return values / values.sum(axis=1, keepdims=True)


def move_labels(passage: Passage, transition: Floats, rng: np.random.Generator) -> None:
    """Draw new labels for the current rows; protected ones keep theirs."""
    drawn = flip(passage.targets, transition, rng)
    passage.targets = np.where(passage.kept_protected, passage.targets, drawn)
    passage.through = passage.through @ transition


@final
@dataclass(frozen=True)
class Pair:
    """Pair flip with probability `rate`."""

    rate: float
    moves_labels: bool = field(default=True, init=False)

    @property
    def text(self) -> str:
        """As `parse_shift` reads it."""
        return f"pair:{number_text(self.rate)}"

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        move_labels(passage, pair_matrix(self.rate, passage.num_classes), rng)


@final
@dataclass(frozen=True)
class Symmetric:
    """Symmetric flip with probability `rate`."""

    rate: float
    moves_labels: bool = field(default=True, init=False)

    @property
    def text(self) -> str:
        """As `parse_shift` reads it."""
        return f"symmetric:{number_text(self.rate)}"

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        move_labels(passage, symmetric_matrix(self.rate, passage.num_classes), rng)


@final
@dataclass(frozen=True, eq=False)
class Matrix:
    """Any transition matrix T (k, k), rows the true classes, columns the given ones."""

    transition: Floats
    source: str = "matrix"
    moves_labels: bool = field(default=True, init=False)

    @property
    def text(self) -> str:
        """As `parse_shift` reads it."""
        return f"matrix:{self.source}"

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        check_size(self.transition, passage.num_classes, self.source)
        passage.facts["transition"] = self.transition.tolist()
        move_labels(passage, self.transition, rng)


def check_size(matrix: Floats, num_classes: int, source: str) -> None:
    """Refuse a matrix made for another number of classes."""
    if len(matrix) != num_classes:
        raise UsageError(
            f"{source}: {len(matrix)} x {len(matrix)}, but the data have {num_classes} classes"
        )


def read_matrix(path: str) -> Floats:
    """A stochastic matrix from a .npy file or a text file (commas or blanks, a line a row)."""
    file = Path(path)
    try:
        if file.suffix == ".npy":
            values = np.load(file, allow_pickle=False)
        else:
            lines = file.read_text(encoding="utf-8").replace(",", " ").split("\n")
            values = [[float(cell) for cell in line.split()] for line in lines if line.strip()]
        return check_stochastic(np.asarray(values, np.float64), path)
    except UsageError:
        raise
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path}: not a matrix of numbers: {error}") from None


def _check_rate(rate: float) -> None:
    if not 0 <= rate < 1:
        raise UsageError(f"rate: a noise rate lies in [0, 1), got {rate:g}")
