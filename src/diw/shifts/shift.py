"""A shift is a sequence of stages, applied to labels and row numbers; it reports what it did.

A shift turns the test distribution p_te into the training distribution p_tr.
Each stage either changes labels (given the current label) or drops rows (given
the current label or the input). The true importance of a kept row with true
label y and given label ỹ is p_te(x, ỹ) / p_tr(x, ỹ): zero where ỹ ≠ y, and
otherwise one over the probability that such a row passes all stages
with its label. That probability factors into `s(x) · M[y, ỹ]`, so a k × k
matrix and one number per row carry it exactly through any combination; where labels depend on the
input, M has rows of its own for each sample. Rows that are protected (the trusted ones, a random
part π of each class) always pass, so over all rows it is π + (1 - π) · s(x) · M[y, y].
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError
from diw.seeding import numpy_generator

if TYPE_CHECKING:
    from torch import Tensor

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number: 0.4, 100, 0.1234567."""
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


class Inputs(Protocol):
    """Rows that can be read by index, in memory or not."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row, channels first for images."""
        ...

    def __len__(self) -> int: ...

    def take(self, index: "Tensor") -> "Tensor":
        """Rows `index` (b,) as a float32 tensor (b, *shape), ready for the network."""
        ...


CHUNK = 1 << 22
"""Numbers read at a time: inputs may be larger than memory."""


def read_rows(inputs: Inputs, rows: Ints) -> Floats:
    """Some rows (b,) as flat vectors (b, d)."""
    import torch

    return inputs.take(torch.from_numpy(rows)).flatten(1).double().numpy()


def read_in_chunks(inputs: Inputs) -> Iterator[Floats]:
    """All rows in order, as many at a time as fit into memory: (b, d) each."""
    size = max(1, CHUNK // int(np.prod(inputs.shape)))
    for start in range(0, len(inputs), size):
        yield read_rows(inputs, np.arange(start, min(start + size, len(inputs))))


def row_numbers(name: str, given: npt.ArrayLike, n: int) -> Ints:
    """Row numbers (m,) from themselves or from a mask: n truth values, or n zeros and ones.

    Args:
        name: The argument they were given as, for messages.
        given: Row numbers (m,) in any order, or a mask (n,).
        n: How many rows there are.
    """
    values = np.asarray(given)
    if values.shape == (n,) and values.dtype.kind in "biu" and np.isin(values, (0, 1)).all():
        return np.flatnonzero(values)
    if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        raise UsageError(f"{name}: give a mask ({n},) or row numbers")
    if len(values) and not 0 <= values.min() <= values.max() < n:
        raise UsageError(f"{name}: row numbers must lie in 0..{n - 1}")
    return values.astype(np.int64)


@dataclass
class Passage:
    """The state of a data set between two stages.

    Attributes:
        original: (n,) labels before the shift.
        num_classes: k.
        protected: (n,) rows that keep their label and are never dropped.
        inputs: The rows' inputs, or None when no stage reads them.
        keep: (m,) row numbers still there, ascending.
        targets: (m,) their current labels.
        unprotected: (m,) the labels they would have if none were protected.
        through: (k, k), M[y, c]: the probability that an unprotected row of true label y arrives
            at label c.
        selected: (m,) s(x), the probability that an unprotected row with this input is kept.
        by_row: (m, k), the rows of M where they depend on the input; else None.
        facts: What was done, for the record.
    """

    original: Ints
    num_classes: int
    protected: Bools
    inputs: Inputs | None
    keep: Ints
    targets: Ints
    unprotected: Ints
    through: Floats
    selected: Floats
    by_row: Floats | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def needed_inputs(self) -> Inputs:
        """The inputs, which a stage cannot do without."""
        if self.inputs is None:
            raise ValueError("inputs: a shift that depends on them needs them")
        return self.inputs

    @property
    def kept_protected(self) -> Bools:
        """(m,) which of the current rows are protected."""
        return self.protected[self.keep]

    def drop_to(self, stay: Bools) -> None:
        """Keep the current rows where `stay` (m,) holds."""
        self.keep, self.targets = self.keep[stay], self.targets[stay]
        self.unprotected, self.selected = self.unprotected[stay], self.selected[stay]
        self.by_row = None if self.by_row is None else self.by_row[stay]

    def relabel(self, labels: Ints) -> None:
        """Give the current rows new labels (m,); protected ones keep theirs."""
        self.unprotected = labels
        self.targets = np.where(self.kept_protected, self.targets, labels)

    def arrivals(self) -> Floats:
        """(m, k) the probability that an unprotected row like these arrives at each label."""
        return self.through[self.original[self.keep]] if self.by_row is None else self.by_row

    def pass_through(self, transition: Floats) -> None:
        """Change M by a transition matrix (k, k)."""
        self.through = self.through @ transition
        self.by_row = None if self.by_row is None else self.by_row @ transition

    def pass_classes(self, chance: Floats) -> None:
        """Change M by the probability (k,) that a label's rows are kept."""
        self.through = self.through * chance
        self.by_row = None if self.by_row is None else self.by_row * chance


@dataclass(frozen=True)
class Stage(ABC):
    """One step of a shift; its fields are the values of its text, in their order.

    Attributes:
        name: The word before the colon in its text.
        usage: What is written after the colon.
        moves_labels: Whether it changes labels (and so knows which are wrong).
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    moves_labels: ClassVar[bool] = False

    @property
    def values(self) -> str:
        """What stands after the colon in its text; a field that is None is left out."""
        given = (getattr(self, each.name) for each in fields(self))
        return ",".join(_value_text(value) for value in given if value is not None)

    @property
    def text(self) -> str:
        """The stage as `parse_shift` reads it."""
        return f"{self.name}:{self.values}"

    @abstractmethod
    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Change the passage."""

    def check(self, holds: bool, field: str, rule: str, got: float) -> None:
        """Refuse a field's value unless it `holds` to the rule."""
        if not holds:
            raise UsageError(f"shift: the {field} of {self.name} {rule}, got {got:g}")


@dataclass(frozen=True)
class Noise(Stage):
    """A stage that makes labels wrong, at one rate.

    Attributes:
        rate: The expected share of labels that change.
    """

    usage: ClassVar[str] = "RATE"
    moves_labels: ClassVar[bool] = True
    rate: float

    def __post_init__(self) -> None:
        self.check(0 <= self.rate < 1, "rate", "lies in [0, 1)", self.rate)


def _value_text(value: float | str | npt.NDArray[Any]) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    return value if isinstance(value, str) else number_text(value)


@dataclass(frozen=True)
class Shifted:
    """What a shift did.

    Attributes:
        keep: (m,) int64, the rows that are left, ascending.
        targets: (m,) int64, their given labels.
        unprotected: (m,) int64, the labels they would have been given if none were protected.
        true_weights: (m,) float64, p_te(x, ỹ) / p_tr(x, ỹ) with mean one; None where no row has a
            positive weight.
        facts: What was requested and what resulted (rates, counts), as JSON values.
    """

    keep: Ints
    targets: Ints
    unprotected: Ints
    true_weights: Floats | None
    facts: Mapping[str, Any]


@final
@dataclass(frozen=True)
class Shift:
    """A distribution shift; no stages means none.

    Attributes:
        stages: Applied in this order, each to what the one before left.
    """

    stages: tuple[Stage, ...] = ()

    @property
    def text(self) -> str:
        """The shift as `parse_shift` reads it."""
        return "+".join(stage.text for stage in self.stages) or "none"

    @property
    def moves_labels(self) -> bool:
        """Whether any stage changes labels."""
        return any(stage.moves_labels for stage in self.stages)

    def apply(
        self,
        targets: npt.ArrayLike,
        num_classes: int,
        seed: int,
        *,
        protected: npt.ArrayLike | None = None,
        inputs: Inputs | None = None,
    ) -> Shifted:
        """Shift a data set; the same arguments always give the same result.

        Args:
            targets: (n,) clean labels in [0, num_classes).
            num_classes: k.
            seed: Determines every draw; protecting rows does not change the draws of others.
            protected: Rows that keep their label and are kept, see `row_numbers`.
            inputs: Needed by shifts that depend on them: covariate, region, instance, annotator.
        """
        labels = np.asarray(targets, np.int64)
        if labels.ndim != 1 or (
            len(labels) and not 0 <= labels.min() <= labels.max() < num_classes
        ):
            raise ValueError(f"targets: expected (n,) labels in 0..{num_classes - 1}")
        chosen = row_numbers("protected", () if protected is None else protected, len(labels))
        passage = Passage(
            original=labels,
            num_classes=num_classes,
            protected=np.isin(np.arange(len(labels)), chosen),
            inputs=inputs,
            keep=np.arange(len(labels)),
            targets=labels.copy(),
            unprotected=labels.copy(),
            through=np.eye(num_classes),
            selected=np.ones(len(labels)),
        )
        for place, stage in enumerate(self.stages):
            # The name alone, so that a matrix read from another path gives the same draws.
            stage.act(passage, numpy_generator(seed, "shift", place, stage.name))
        return self._summary(passage)

    def _summary(self, passage: Passage) -> Shifted:
        true = passage.original[passage.keep]
        intact = passage.targets == true
        facts: dict[str, Any] = {
            "shift": self.text,
            "rows": len(passage.keep),
            "dropped": len(passage.original) - len(passage.keep),
            "class_counts": np.bincount(passage.targets, minlength=passage.num_classes).tolist(),
            **passage.facts,
        }
        if self.moves_labels:
            facts["flipped"] = int((~intact).sum())
            facts["flip_rate"] = float((~intact).mean()) if len(intact) else 0.0
        weights = _true_weights(passage, true, intact)
        return Shifted(passage.keep, passage.targets, passage.unprotected, weights, facts)


def _true_weights(passage: Passage, true: Ints, intact: Bools) -> Floats | None:
    """(m,) p_te / p_tr of the rows left, with mean one; None when all labels are wrong."""
    k = passage.num_classes
    rows = np.bincount(passage.original, minlength=k)
    sure = np.bincount(passage.original[passage.protected], minlength=k) / np.maximum(rows, 1)
    if passage.by_row is None:
        chance = np.diag(passage.through)[true]
    else:
        chance = passage.by_row[np.arange(len(true)), true]
    arrives = sure[true] + (1 - sure[true]) * passage.selected * chance
    weights = np.divide(1.0, arrives, out=np.zeros(len(true)), where=intact)
    total = float(weights.sum())
    return weights * (len(weights) / total) if total > 0 else None
