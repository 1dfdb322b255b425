"""Label noise: given labels drawn from transition matrices, and contaminated classes.

Fang et al. 2020, Section 3. Class-conditional noise fixes what becomes of a true class, p(ỹ | y),
`T[y, ỹ]` here. Contamination fixes what is found under a given label: p_tr(x | ỹ) is the mixture
Σ_y p(y | ỹ) p_te(x | y), with p(y | ỹ) as `C[ỹ, y]` here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.priors import class_sizes, resample
from diw.shifts.shift import Floats, Ints, Passage, Stage, number_text


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

    One uniform number per row, compared with the cumulative sums of T's row: each label
    is drawn independently with exactly the probabilities of T.
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
class Pair(Stage):
    """Pair flip with probability `rate`."""

    name: ClassVar[str] = "pair"
    moves_labels: ClassVar[bool] = True
    rate: float

    @property
    def values(self) -> str:
        """RATE."""
        return number_text(self.rate)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        move_labels(passage, pair_matrix(self.rate, passage.num_classes), rng)


@final
@dataclass(frozen=True)
class Symmetric(Stage):
    """Symmetric flip with probability `rate`."""

    name: ClassVar[str] = "symmetric"
    moves_labels: ClassVar[bool] = True
    rate: float

    @property
    def values(self) -> str:
        """RATE."""
        return number_text(self.rate)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        move_labels(passage, symmetric_matrix(self.rate, passage.num_classes), rng)


@final
@dataclass(frozen=True, eq=False)
class Matrix(Stage):
    """Any transition matrix T (k, k), rows the true classes, columns the given ones.

    Attributes:
        source: The file that holds T, or a name for `transition`.
        transition: T itself; None to read it from `source` when the shift is applied.
    """

    name: ClassVar[str] = "matrix"
    moves_labels: ClassVar[bool] = True
    source: str
    transition: Floats | None = None

    @property
    def values(self) -> str:
        """FILE."""
        return self.source

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        transition = read_matrix(self.source) if self.transition is None else self.transition
        check_size(transition, passage.num_classes, self.source)
        passage.facts["transition"] = transition.tolist()
        move_labels(passage, transition, rng)


def reverse(mixture: npt.ArrayLike, prior: npt.ArrayLike) -> tuple[Floats, Floats]:
    """True-class distribution and transition matrix behind a contamination.

    With p(ỹ) = `prior` and C = `mixture`: q(y) = Σ_ỹ p(ỹ) C[ỹ, y] and
    T[y, ỹ] = p(ỹ) C[ỹ, y] / q(y) by Bayes' rule.

    Args:
        mixture: (k, k), C[ỹ, y] = p(y | ỹ), rows sum to one.
        prior: (k,) p(ỹ).

    Returns:
        q (k,) and T (k, k); a class with q(y) = 0 has the identity as its row.
    """
    joint = np.asarray(prior, np.float64)[:, None] * check_stochastic(mixture, "mixture")
    marginal = joint.sum(axis=0)
    transition = np.eye(len(marginal))
    present = marginal > 0
    transition[present] = joint.T[present] / marginal[present, None]
    return marginal, transition


@final
@dataclass(frozen=True, eq=False)
class Contaminated(Stage):
    """Given classes that are mixtures of true ones, with p(ỹ) as the classes were before.

    Attributes:
        rate: The share of other classes in each given class, in equal parts; None for a `mixture`.
        source: The file that holds C, or a name for `mixture`; used when there is no rate.
        mixture: C (k, k), rows the given classes, columns the true ones; None to read it from
            `source` when the shift is applied.
    """

    name: ClassVar[str] = "contaminated"
    moves_labels: ClassVar[bool] = True
    rate: float | None = None
    source: str = ""
    mixture: Floats | None = None

    @property
    def values(self) -> str:
        """RATE or FILE."""
        return self.source if self.rate is None else number_text(self.rate)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop rows until the true classes are as q, then flip labels by T."""
        k = passage.num_classes
        mixture = self._mixture(k)
        check_size(mixture, k, self.source)
        counts = np.bincount(passage.targets, minlength=k)
        present = counts > 0
        if ((mixture[present] > 0) & ~present).any():
            raise UsageError("shift: contaminated needs rows of every class that is mixed in")
        if not present.any():
            return
        marginal, transition = reverse(mixture, counts / counts.sum())
        needed = np.divide(marginal, counts, out=np.zeros(k), where=present)
        # The class needed most keeps all its rows; sizes are taken from its count, not from the
        # whole, so that a contamination that needs no dropping drops nothing.
        largest = int(needed.argmax())
        shares = np.where(marginal > 0, marginal / marginal[largest], 0.0)
        sizes = class_sizes(counts, shares, int(counts[largest]))
        resample(passage, sizes, rng)
        move_labels(passage, transition, rng)

    def _mixture(self, num_classes: int) -> Floats:
        if self.rate is not None:
            return symmetric_matrix(self.rate, num_classes)
        return read_matrix(self.source) if self.mixture is None else self.mixture


def check_size(matrix: Floats, num_classes: int, source: str) -> None:
    """Refuse a matrix made for another number of classes."""
    if len(matrix) != num_classes:
        raise UsageError(
            f"{source}: {len(matrix)} x {len(matrix)}, but the data have {num_classes} classes"
        )


def read_matrix(path: str) -> Floats:
    """A stochastic matrix from a .npy file or a text file (commas or blanks, one line per row)."""
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
