"""Shifts that select rows by their input or class and leave labels as they are.

Covariate shift (Fang et al. 2020, Section 3): p(x) changes, p(y | x) does not. Support shift (Fang
et al. 2023): some classes, or a region of the input space, are missing in training, and no weight
of a training sample makes up for them. Only trusted samples show what is missing.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.shifts.priors import last_classes
from diw.shifts.shift import CHUNK, Floats, Inputs, Passage, Stage, read_in_chunks, read_rows

_SAMPLE = 1000
"""Rows the principal direction is computed from, at most."""


def keep_probability(position: npt.ArrayLike, strength: float) -> Floats:
    """(n,) s(x) = exp(-strength · max(0, z)) of standardised positions z along the direction.

    One side is kept whole, the other thins out: strength 1 keeps a row at one standard deviation
    with probability 1/e.
    """
    return np.exp(-strength * np.maximum(0.0, np.asarray(position, np.float64)))


def principal_direction(inputs: Inputs, rng: np.random.Generator) -> Floats:
    """(d,) unit vector of largest variance in a sample of rows, its largest entry positive.

    The sign is fixed because that of an eigenvector is not.
    """
    width = int(np.prod(inputs.shape))
    size = min(len(inputs), _SAMPLE, max(2, CHUNK * 4 // width))
    rows = np.sort(rng.permutation(len(inputs))[:size])
    sample = read_rows(inputs, rows)
    sample -= sample.mean(axis=0)
    # The Gram matrix of a sample is small however wide the inputs are.
    _, vectors = np.linalg.eigh(sample @ sample.T)
    direction = sample.T @ vectors[:, -1]
    length = float(np.linalg.norm(direction))
    if length == 0:
        raise UsageError("shift: a direction needs inputs that differ from each other")
    direction /= length
    return direction * np.sign(direction[np.abs(direction).argmax()])


def positions(inputs: Inputs, direction: npt.ArrayLike) -> Floats:
    """(n,) projections of all rows on `direction` (d,), standardised; read in chunks."""
    along = np.asarray(direction, np.float64)
    z = np.concatenate([rows @ along for rows in read_in_chunks(inputs)])
    spread = float(z.std())
    if spread == 0:
        raise UsageError("shift: the inputs must differ along the direction")
    return (z - z.mean()) / spread


class AlongDirection(Stage):
    """A stage that selects rows by where they lie along one direction of the input space.

    Attributes:
        feature: The number of the (flattened) input feature that is the direction; None for the
            direction of largest variance.
    """

    feature: int | None

    def __post_init__(self) -> None:
        if self.feature is not None:
            whole = self.feature >= 0 and not self.feature % 1
            self.check(whole, "feature", "is a column number", self.feature)

    def positions(self, passage: Passage, rng: np.random.Generator) -> Floats:
        """(n,) standardised positions of all rows, as they were before the shift."""
        inputs = passage.needed_inputs
        if self.feature is None:
            return positions(inputs, principal_direction(inputs, rng))
        width = int(np.prod(inputs.shape))
        if self.feature >= width:
            raise UsageError(
                f"shift: {self.name} along feature {self.feature}, but inputs have {width}"
            )
        return positions(inputs, np.eye(1, width, self.feature)[0])


@final
@dataclass(frozen=True)
class Covariate(AlongDirection):
    """Biased selection along one direction of the input space.

    Attributes:
        strength: How fast rows thin out, see `keep_probability`.
    """

    name: ClassVar[str] = "covariate"
    usage: ClassVar[str] = "STRENGTH[,FEATURE]"
    strength: float
    feature: int | None = None

    def __post_init__(self) -> None:
        self.check(self.strength >= 0, "strength", "is not negative", self.strength)
        super().__post_init__()

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop rows; s(x) is measured over all rows, as they were before the shift."""
        if self.strength == 0 or not len(passage.keep):
            return
        probability = keep_probability(self.positions(passage, rng), self.strength)[passage.keep]
        drawn = rng.random(len(passage.keep))
        passage.selected = passage.selected * probability
        passage.facts["kept_probability"] = float(probability.mean())
        passage.drop_to((drawn < probability) | passage.kept_protected)


@final
@dataclass(frozen=True)
class Support(Stage):
    """The last classes are missing, but for the trusted rows of them that are trained on."""

    name: ClassVar[str] = "support"
    usage: ClassVar[str] = "SHARE"
    share: float

    def __post_init__(self) -> None:
        self.check(0 <= self.share < 1, "share", "lies in [0, 1)", self.share)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop every row of the missing classes."""
        missing = last_classes(self.share, passage.num_classes, self.name)
        if not missing:
            return
        first = passage.num_classes - missing
        passage.facts["missing_classes"] = list(range(first, passage.num_classes))
        passage.drop_to((passage.targets < first) | passage.kept_protected)
        present = (np.arange(passage.num_classes) < first).astype(np.float64)
        passage.pass_classes(present)


@final
@dataclass(frozen=True)
class Region(AlongDirection):
    """The far end of one direction is missing, but for the trusted rows that are trained on.

    Attributes:
        share: The share of all rows that lies there.
    """

    name: ClassVar[str] = "region"
    usage: ClassVar[str] = "SHARE[,FEATURE]"
    share: float
    feature: int | None = None

    def __post_init__(self) -> None:
        self.check(0 <= self.share < 1, "share", "lies in [0, 1)", self.share)
        super().__post_init__()

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Drop every row beyond the quantile of all rows, as they were before the shift."""
        if self.share == 0 or not len(passage.keep):
            return
        z = self.positions(passage, rng)
        there = (z <= np.quantile(z, 1 - self.share))[passage.keep]
        if there.all():
            raise UsageError(
                f"shift: {self.text} takes no row, so many share the largest value; "
                "raise the share or choose another feature"
            )
        passage.selected = passage.selected * there
        passage.facts["missing_share"] = float(1 - there.mean())
        passage.drop_to(there | passage.kept_protected)
