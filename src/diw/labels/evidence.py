"""What speaks for and against given labels: predictions, and the right labels of verified rows.

These are read as users have them: beside all rows, with gaps, or by row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.labels.transitions import Floats, Ints
from diw.seeding import numpy_generator

FOLDS = 5
IN_SAMPLE = 0.995
"""Learners that agree with so many given labels have usually seen them."""


@dataclass(frozen=True)
class Evidence:
    """Predictions for the rows of a data set, their given labels, and the right ones of some.

    Attributes:
        log_p: (n, k) logarithms of predicted probabilities, from fits without the row.
        given: (n,) the given labels.
        rows: (m,) which rows were verified; None where nobody verified any.
        trusted: (m,) their right labels, or those of the trusted samples in `trusted_log_p`.
        trusted_log_p: (m, k) predictions for trusted samples that are no rows of the data.
        drawn: (m,) the probability with which each verified row was drawn, zero where it was
            picked; None: all at random.
        fold: (m,) the fold of each verified row in the fits of `log_v`; None to draw them.
        log_v: (folds, n, k) logarithms of what a small model of the verified rows says, for each
            fold from its fit on the other folds; NaN for classes that it did not see.
    """

    log_p: Floats
    given: Ints
    rows: Ints | None = None
    trusted: Ints | None = None
    trusted_log_p: Floats | None = None
    drawn: Floats | None = None
    fold: Ints | None = None
    log_v: NDArray[np.floating] | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.log_p)
        if len(shape) != 2 or shape[1] < 2:
            raise UsageError(f"log_p: expected (rows, at least 2 classes), got {shape}")
        if np.isnan(self.log_p).any():
            row, column = np.argwhere(np.isnan(self.log_p))[0]
            raise UsageError(f"log_p: row {row}, column {column} is NaN")
        n, k = shape
        self._check_classes("given", self.given, n, k)
        if self.trusted is None:
            if self.rows is not None or self.trusted_log_p is not None:
                raise UsageError("trusted: give the right labels of the verified rows")
            return
        if (self.rows is None) == (self.trusted_log_p is None):
            raise UsageError("trusted: needs rows of the data, or trusted_log_p; one of the two")
        if self.rows is None:
            assert self.trusted_log_p is not None
            self._check_classes("trusted", self.trusted, len(self.trusted_log_p), k)
            return
        self._check_rows(self.rows, n)
        m = len(self.rows)
        self._check_classes("trusted", self.trusted, m, k)
        if self.drawn is not None and not (
            np.shape(self.drawn) == (m,) and ((self.drawn >= 0) & (self.drawn <= 1)).all()
        ):
            raise UsageError(f"drawn: expected {m} probabilities in [0, 1]")
        if (self.log_v is None) != (self.fold is None):
            raise UsageError("fold: give it together with log_v")
        if self.log_v is not None:
            if np.shape(self.log_v)[1:] != (n, k):
                raise UsageError(f"log_v: expected (folds, {n}, {k}), got {np.shape(self.log_v)}")
            self._check_classes("fold", self.fold, m, len(self.log_v))

    def _check_rows(self, rows: Ints, n: int) -> None:
        if np.ndim(rows) != 1 or np.asarray(rows).dtype.kind not in "iu":
            raise UsageError("rows: expected row numbers (m,)")
        outside = (np.asarray(rows) < 0) | (np.asarray(rows) >= n)
        if outside.any():
            raise UsageError(f"rows: row {rows[outside][0]} is not in the data, which have {n}")
        places, counts = np.unique(rows, return_counts=True)
        if (counts > 1).any():
            raise UsageError(f"rows: row {places[counts > 1][0]} is verified twice")

    @staticmethod
    def _check_classes(name: str, labels: Any, n: int, k: int) -> None:
        values = np.asarray(labels)
        if values.shape != (n,) or values.dtype.kind not in "iu":
            raise UsageError(f"{name}: expected {n} class numbers, got {values.shape}")
        if n and (values.min() < 0 or values.max() >= k):
            raise UsageError(f"{name}: classes are 0 to {k - 1}, and one is {values.max()}")

    @property
    def classes(self) -> int:
        """K, the number of classes."""
        return self.log_p.shape[1]

    @property
    def looks_in_sample(self) -> bool:
        """Whether the predictions agree with the given labels as only those of seen rows do."""
        agree = self.log_p.argmax(1) == self.given
        return len(agree) >= 100 and float(agree.mean()) > IN_SAMPLE

    def folds(self, seed: int) -> Ints:
        """(m,) the fold of each verified row."""
        if self.fold is not None:
            return np.asarray(self.fold)
        m = 0 if self.rows is None else len(self.rows)
        return draw_folds(m, seed)


def draw_folds(m: int, seed: int, folds: int = FOLDS) -> Ints:
    """(m,) folds of verified rows, of nearly equal size; with fewer rows there are fewer folds."""
    return numpy_generator(seed, "verified folds").permutation(m) % min(folds, max(m, 1))


def read_verified(
    verified: Any, classes: Sequence[Any] | NDArray[Any], n: int, *, name: str = "verified"
) -> tuple[Ints, Ints]:
    """(m,) verified rows, in order, and (m,) their right labels as numbers of `classes`.

    Args:
        verified: (n,) right labels, with None or NaN where nobody checked; or a mapping from row
            numbers to right labels.
        classes: The labels that there are, by class number.
        n: The number of rows.
        name: What messages call it.
    """
    rows, labels = _pairs(verified, n, name)
    numbers = {_plain(label): place for place, label in enumerate(classes)}
    if _truth(labels) and not _truth(numbers):
        raise UsageError(
            f"{name}: holds truth values, as a mask does; give the right labels of the rows that "
            "somebody checked, and None for the others"
        )
    found = np.empty(len(rows), np.int64)
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        number = numbers.get(_plain(label))
        if number is None:
            raise UsageError(f"{name}: row {row}: {_unknown(label, list(numbers))}")
        found[place] = number
    order = np.argsort(rows, kind="stable")
    return rows[order], found[order]


def _truth(labels: Iterable[Any]) -> bool:
    """Whether a label is a truth value, which is equal to 0 or 1."""
    return any(isinstance(label, bool | np.bool_) for label in labels)


def _pairs(verified: Any, n: int, name: str) -> tuple[Ints, list[Any]]:
    """Row numbers and labels as they are."""
    if isinstance(verified, Mapping):
        for row in verified:
            if isinstance(row, bool) or not isinstance(row, int | np.integer):
                raise UsageError(f"{name}: {row!r} is no row number; count rows from 0")
            if not 0 <= row < n:
                raise UsageError(f"{name}: row {row} is not in the data, which have {n} rows")
        kept = {int(row): label for row, label in verified.items() if not _missing(label)}
        return np.fromiter(kept, np.int64, len(kept)), list(kept.values())
    if isinstance(verified, np.ma.MaskedArray):
        gaps = np.ma.getmaskarray(verified)
        verified = np.asarray(verified, object)
        verified[gaps] = None
    values = np.asarray(verified)
    if values.shape == (n, 1):
        values = values[:, 0]
    if values.shape != (n,):
        raise UsageError(
            f"{name}: expected {n} labels, one a row with NaN or None where nobody checked, "
            f"or a mapping from row to label; got {values.shape}"
        )
    if values.dtype.kind == "f":
        rows = np.flatnonzero(~np.isnan(values))
    elif values.dtype.kind == "O":
        rows = np.flatnonzero([not _missing(value) for value in values])
    else:
        rows = np.arange(n)
    return rows, [values[row] for row in rows]


def _missing(value: Any) -> bool:
    """None, NaN, NaT, or pandas' NA, of which nothing can be said, not even that it is itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True


def _plain(label: Any) -> Any:
    """A label that compares equal to itself in another type: 1.0 and numpy's 1 are 1."""
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unknown(label: Any, known: list[Any]) -> str:
    """What to say of a label that no row has."""
    value = _plain(label)
    word, words = isinstance(value, str), [one for one in known if isinstance(one, str)]
    if word and not words:
        return f"the label {value!r} is a word, but the given labels are numbers"
    if not word and len(words) == len(known):
        return f"the label {value!r} is a number, but the given labels are words"
    close = get_close_matches(value, words, 1, 0.5) if word else []
    if not word and isinstance(value, int | float):
        numbers = [one for one in known if isinstance(one, int | float)]
        close = [min(numbers, key=lambda one: abs(one - value))] if numbers else []
    hint = f"; is it {close[0]!r}?" if close else ""
    gap = "; leave rows that nobody checked NaN or None" if value == -1 else ""
    return f"no row is given as {value!r}{hint}{gap}"
