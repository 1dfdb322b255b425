"""What a shift does to a data set, as a sequence of stages over row numbers.

A shift turns the test distribution p_te into the training distribution p_tr.
Each stage either moves labels (given the current label) or drops rows (given
the current label or the input). The true importance of a kept row with true
label y and given label ỹ is p_te(x, ỹ) / p_tr(x, ỹ): zero where ỹ ≠ y, and
otherwise one over the probability that such a row comes through all stages
with its label. That probability factors into `s(x) · M[y, ỹ]`, so a k × k
matrix and one number a row carry it exactly through any combination. Rows that
are protected (the trusted ones, a random part π of each class) come through
for sure, so over all rows it is π + (1 - π) · s(x) · M[y, y].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from diw.data import Inputs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number: 0.4, 100, 0.1234567."""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


@dataclass
class Passage:
    """The state of a data set on its way through the stages.

    Attributes:
        original: (n,) labels before the shift.
        protected: (n,) rows that keep their label and are never dropped.
        inputs: The rows' inputs, or None when no stage looks at them.
        keep: (m,) row numbers still there, ascending.
        targets: (m,) their current labels.
        through: (k, k), M[y, c]: how likely an unprotected row of true label y arrives at label c.
        selected: (m,) s(x), how likely an unprotected row with this input is kept.
        facts: What was done, for the record.
    """

    original: Ints
    num_classes: int
    protected: Bools
    inputs: "Inputs | None"
    keep: Ints
    targets: Ints
    through: Floats
    selected: Floats
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def kept_protected(self) -> Bools:
        """(m,) which of the current rows are protected."""
        return self.protected[self.keep]

    def drop_to(self, stay: Bools) -> None:
        """Keep the current rows where `stay` (m,) holds."""
        self.keep, self.targets = self.keep[stay], self.targets[stay]
        self.selected = self.selected[stay]


class Stage(Protocol):
    """One step of a shift."""

    @property
    def text(self) -> str:
        """The stage as `parse_shift` reads it."""
        ...

    @property
    def moves_labels(self) -> bool:
        """Whether it changes labels (and so knows which are wrong)."""
        ...

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Change the passage."""
        ...


@dataclass(frozen=True)
class Shifted:
    """What a shift did.

    Attributes:
        keep: (m,) int64, the rows that are left, ascending.
        targets: (m,) int64, their given labels.
        flipped: (m,) bool, the given label is not the original one; None for a shift that moves
            no labels.
        true_weights: (m,) float64, p_te(x, ỹ) / p_tr(x, ỹ) with mean one; None where no row has a
            positive weight.
        facts: What was asked for and what came of it (rates, counts), as JSON values.
    """

    keep: Ints
    targets: Ints
    flipped: Bools | None
    true_weights: Floats | None
    facts: Mapping[str, Any]
