"""Label noise: given labels drawn from transition matrices, and contaminated classes.

Fang et al. 2020, Section 3. Class-conditional noise fixes what becomes of a true class, p(ỹ | y),
`T[y, ỹ]` here. Contamination fixes what is found under a given label: p_tr(x | ỹ) is the mixture
Σ_y p(y | ỹ) p_te(x | y), with p(y | ỹ) as `C[ỹ, y]` here.
"""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.priors import class_sizes, resample
from diw.shifts.shift import Floats, Ints, Noise, Passage, Stage


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
    passage.relabel(flip(passage.unprotected, transition, rng))
    passage.pass_through(transition)


class Flip(Noise):
    """Label noise by a transition matrix that follows from one rate."""

    @abstractmethod
    def transition(self, num_classes: int) -> Floats:
        """T (k, k), rows the true classes, columns the given ones."""

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels."""
        move_labels(passage, self.transition(passage.num_classes), rng)


@final
class Pair(Flip):
    """Pair flip: class j becomes j + 1 (mod k) with probability `rate`."""

    name: ClassVar[str] = "pair"

    def transition(self, num_classes: int) -> Floats:
        """T (k, k), the rate to the right of the diagonal."""
        same = np.eye(num_classes)
        return (1 - self.rate) * same + self.rate * np.roll(same, 1, axis=1)


@final
class Symmetric(Flip):
    """Symmetric flip: any other class, with probability `rate` / (k - 1) each."""

    name: ClassVar[str] = "symmetric"

    def transition(self, num_classes: int) -> Floats:
        """T (k, k), the same everywhere off the diagonal."""
        if num_classes < 2:
            return np.eye(num_classes)
        off = self.rate / (num_classes - 1)
        return off + (1 - self.rate - off) * np.eye(num_classes)


@final
@dataclass(frozen=True, eq=False)
class Matrix(Stage):
    """Any transition matrix T (k, k), or the file that holds it, read when the shift is applied."""

    name: ClassVar[str] = "matrix"
    usage: ClassVar[str] = "FILE"
    moves_labels: ClassVar[bool] = True
    matrix: str | Floats

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels, and record T."""
        transition = read_matrix(self.matrix, passage.num_classes)
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
        mixture: The share of other classes in each given class, in equal parts; or C (k, k), rows
            the given classes, columns the true ones; or the file that holds C, read when the shift
            is applied.
    """

    name: ClassVar[str] = "contaminated"
    usage: ClassVar[str] = "RATE|FILE"
    moves_labels: ClassVar[bool] = True
    mixture: float | str | Floats

    def __post_init__(self) -> None:
        if isinstance(self.mixture, (int, float)):
            self.check(0 <= self.mixture < 1, "rate", "lies in [0, 1)", self.mixture)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop rows until the true classes are as q, then flip labels by T."""
        k = passage.num_classes
        if isinstance(self.mixture, (int, float)):
            mixture = Symmetric(self.mixture).transition(k)
        else:
            mixture = read_matrix(self.mixture, k)
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


def read_matrix(source: str | npt.ArrayLike, num_classes: int) -> Floats:
    """A stochastic matrix (k, k), given or in a file, for a data set of k classes.

    The file is a .npy file, or text with one line per row (commas or blanks).
    """
    if isinstance(source, str):
        name, values = source, _read_numbers(Path(source))
    else:
        name, values = "matrix", source
    matrix = check_stochastic(values, name)
    k = len(matrix)
    if k != num_classes:
        raise UsageError(f"{name}: {k} x {k}, but the data have {num_classes} classes")
    return matrix


def _read_numbers(file: Path) -> Floats:
    try:
        if file.suffix == ".npy":
            return np.asarray(np.load(file, allow_pickle=False), np.float64)
        lines = file.read_text(encoding="utf-8").replace(",", " ").split("\n")
        rows = [[float(cell) for cell in line.split()] for line in lines if line.strip()]
        return np.asarray(rows, np.float64)
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file") from None
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{file}: not a matrix of numbers: {error}") from None
