"""Labels and probabilities as users hand them over: checked once, refused in one clear line."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.errors import UsageError
from diw.labels.transitions import Floats, Ints

MOST_LEVELS = 30
"""Numbers with decimals are labels if there are no more different ones."""
FEWEST_ROWS = 20
"""Below so many rows, all may have different labels."""
ROUNDED = 0.02
"""How far the probabilities of a row may be from one in all: they may be rounded."""


def check_labels(name: str, labels: ArrayLike, *, part: bool = False) -> NDArray[Any]:
    """(n,) labels of classes as an array; a target of another kind is refused.

    Args:
        name: Of the argument, for messages.
        labels: Numbers or words, none missing.
        part: Whether these are of so few rows that most may differ.
    """
    values = np.asarray(labels)
    if values.dtype.kind in "US" and not hasattr(labels, "dtype"):
        values = np.asarray(labels, object)  # a list of words and numbers becomes words only
    if values.ndim != 1:
        raise UsageError(
            f"{name}: expected one label per row (n,), got shape {values.shape}; several labels "
            "per row are not supported, audit each of them on its own"
        )
    missing = np.array([value is None or bool(value != value) for value in values.tolist()], bool)
    if missing.any():
        raise UsageError(f"{name}: row {int(missing.argmax())} has no label; leave such rows out")
    if values.dtype == object:
        words = [isinstance(value, str) for value in values]
        if any(words) and not all(words):
            odd = words.index(not words[0])
            raise UsageError(
                f"{name}: row {odd} is {values[odd]!r} and row 0 {values[0]!r}: give all labels as "
                "words, or all as numbers"
            )
        values = values.astype(str) if all(words) else np.array(values.tolist())
    different = np.unique(values)
    decimals = values.dtype.kind == "f" and bool((different != np.round(different)).any())
    many = not part and len(values) >= FEWEST_ROWS and 2 * len(different) > len(values)
    if many or (decimals and len(different) > MOST_LEVELS):
        raise UsageError(
            f"{name}: {len(different):,} different values in {len(values):,} rows are a quantity "
            "or names, not classes; regression has no wrong labels, sort values into classes first"
        )
    return values


def check_kinds(first: tuple[str, NDArray[Any]], second: tuple[str, NDArray[Any]]) -> None:
    """Refuse labels that are words in one place and numbers in the other, each with its name."""
    if len({labels.dtype.kind in "US" for _, labels in (first, second)}) > 1:
        shown = [f"{name}: {labels[0]!s}" for name, labels in (first, second)]
        raise UsageError(f"{shown[1]} is of another kind than {shown[0]}; words or numbers in both")


def class_numbers(name: str, labels: NDArray[Any], classes: Sequence[str]) -> Ints:
    """(n,) the numbers of these labels among the classes, the columns of the probabilities.

    Labels are names of columns; integers that are none are numbers of columns.

    Args:
        name: Of the argument, for messages.
        labels: (n,) see `check_labels`.
        classes: (k,) the names of the columns.
    """
    different, places = np.unique(labels, return_inverse=True)
    names = list(map(class_name, different.tolist()))
    number = {text: place for place, text in enumerate(classes)}
    unknown = [place for place, text in enumerate(names) if text not in number]
    if not unknown:
        return np.array([number[text] for text in names], np.int64)[places]
    if labels.dtype.kind in "iu" and different.min() >= 0 and different.max() < len(classes):
        return labels.astype(np.int64)
    row = int(np.flatnonzero(places == unknown[0])[0])
    raise UsageError(f"{name}: row {row}: {no_class(names[unknown[0]], classes)}")


def class_name(label: Any) -> str:
    """A label as the name of a class: whole numbers without a decimal point."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)


def no_class(text: str, classes: Sequence[str]) -> str:
    """That a label is no class, and which is meant."""
    near = get_close_matches(text[:100], classes, 1)
    hint = f"is {near[0]!r} meant?" if near else f"classes are {', '.join(classes[:10])}"
    return f"{text[:100]!r} is none of the {len(classes)} columns of probabilities; {hint}"


def column_names(probabilities: Any, k: int, given: NDArray[Any]) -> tuple[str, ...]:
    """(k,) what the columns of the probabilities are called.

    A data frame knows it. Otherwise columns are in the order of the sorted labels, as scikit-learn
    has them, where there are as many; or they are numbered.
    """
    named = getattr(probabilities, "columns", None)
    if named is not None:
        return tuple(class_name(name) for name in list(named))
    different = np.unique(given)
    if len(different) == k:
        return tuple(map(class_name, different.tolist()))
    if given.dtype.kind in "iu":
        return tuple(map(str, range(k)))
    raise UsageError(
        f"probabilities: has {k} columns, and there are {len(different)} different labels; name "
        "the columns by classes=[…]"
    )


def check_probabilities(probabilities: Any, n: int) -> Floats:
    """(n, k) probabilities of classes that add up to one in each row; what else it is, is said.

    Args:
        probabilities: Numbers, one row per label.
        n: The number of labels.
    """
    try:
        values = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        raise UsageError("probabilities: expected numbers, one column per class") from None
    if values.ndim != 2 or len(values) != n or values.shape[1] < 2:
        raise UsageError(
            f"probabilities: expected a row per label and a column per class ({n}, at least 2), "
            f"got {values.shape}"
        )
    if not n:
        raise UsageError("probabilities: there are no rows")
    sums = values.sum(axis=1)
    for wrong, what in (
        (~np.isfinite(values).all(axis=1), "NaN or infinite"),
        ((values < 0).any(axis=1), "negative: are these logarithms or scores? Give probabilities"),
        (np.abs(sums - 1) > ROUNDED, "not one in all: are columns missing, or not probabilities?"),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            shown = ", ".join(f"{value:.4g}" for value in values[row, :4])
            raise UsageError(f"probabilities: row {row} ({shown}, …) is {what}")
    return values / sums[:, None]
