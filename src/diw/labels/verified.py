"""Reading verified labels as users have them: beside all rows, with gaps, or by row."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.labels.transitions import Ints


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
    found = np.empty(len(rows), np.int64)
    for place, (row, label) in enumerate(zip(rows, labels, strict=True)):
        number = numbers.get(_plain(label))
        if number is None:
            raise UsageError(f"{name}: row {row}: {_unknown(label, list(numbers))}")
        found[place] = number
    order = np.argsort(rows, kind="stable")
    return rows[order], found[order]


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
