"""How files become inputs and class numbers, kept with a run so that later files are read alike.

What is learned from the training file (means, categories, class names) is
part of the run: a later prediction must not standardise by its own file.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError

LARGEST_NUMBER = 1e150
"""Of tables, which are scaled in double precision: up to here their squares do not overflow."""

FARTHEST = 1e6
"""Deviations from the training mean beyond which a number is a mistake and no network could use
it: its loss would be infinite."""


Moments = tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""The number of some rows, their mean (d,) and their variance (d,)."""


def moments(values: npt.ArrayLike) -> Moments:
    """The moments of rows (n, d), in double precision."""
    rows = np.asarray(values, np.float64)
    return len(rows), rows.mean(0), rows.var(0)


def standard(parts: Sequence[Moments]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and deviation (d,) of all rows, from the moments of their parts.

    Those of a part are about its own mean, and that about the mean of all: no digits are lost.
    """
    counts = np.array([count for count, _, _ in parts], np.float64)
    share = (counts / counts.sum()).reshape(-1, *[1] * np.ndim(parts[0][1]))
    means, squares = (np.stack([part[place] for part in parts]) for place in (1, 2))
    mean = (share * means).sum(0)
    return mean, np.sqrt((share * (squares + (means - mean) ** 2)).sum(0))


CONSTANT = "is the same in all rows, but for rounding, and tells nothing"
"""What is said of a column that `is_constant`."""


def is_constant(mean: npt.ArrayLike, spread: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether a column varies by no more than rounding; however small its numbers are."""
    return ~(np.asarray(spread) > 1e-12 * np.abs(mean))


@dataclass(frozen=True)
class ImageRows:
    """Images of one shape (channels, height, width).

    Attributes:
        span: Values that become 0 and 1 where training images have more than 8 bits; else None.
        upright: Whether images are turned as their EXIF data say; not before version 1.0.
    """

    shape: tuple[int, int, int]
    span: tuple[float, float] | None = None
    upright: bool = True


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, standardised: (x - mean) / scale; missing ones become the mean."""

    name: str
    mean: float
    scale: float


@dataclass(frozen=True)
class CategoryColumn:
    """A column of words, one-hot over `values`; missing and unseen ones become all zeros."""

    name: str
    values: tuple[str, ...]


Feature = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class TableRows:
    """Rows of a table; the columns of an array are named by their numbers.

    Attributes:
        columns: The features, in order.
        left_out: Columns that the training table has and that are no features.
    """

    columns: tuple[Feature, ...]
    left_out: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Numbers per row after encoding."""
        return sum(len(c.values) if isinstance(c, CategoryColumn) else 1 for c in self.columns)


@dataclass(frozen=True)
class Encoding:
    """What was learned from the files a data set was read from.

    Attributes:
        classes: Class names by class number.
        rows: How inputs are read.
        label: The column, array or file that holds the labels; None for the default.
    """

    classes: tuple[str, ...]
    rows: ImageRows | TableRows
    label: str | None = None

    @property
    def kind(self) -> Literal["image", "table"]:
        """What the rows are."""
        return "image" if isinstance(self.rows, ImageRows) else "table"

    def as_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads back."""
        return {"kind": self.kind, **asdict(self)}

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Encoding":
        """The encoding that `as_json` wrote."""
        try:
            rows: dict[str, Any] = value["rows"]
            if value["kind"] == "image":
                channels, height, width = (int(side) for side in rows["shape"])
                span = rows.get("span")
                read: ImageRows | TableRows = ImageRows(
                    (channels, height, width),
                    None if span is None else (float(span[0]), float(span[1])),
                    bool(rows.get("upright", False)),
                )
            else:
                columns = tuple(_column(column) for column in rows["columns"])
                read = TableRows(columns, tuple(rows.get("left_out", ())))
            return Encoding(tuple(value["classes"]), read, value["label"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"encoding: not written by diw: {error!r}") from None


def _column(value: dict[str, Any]) -> Feature:
    name = unicodedata.normalize("NFC", value["name"])
    if "values" in value:
        return CategoryColumn(name, tuple(value["values"]))
    return NumberColumn(name, float(value["mean"]), float(value["scale"]))


def label_names(values: npt.NDArray[Any], source: str) -> list[str]:
    """(n,) labels of any plain type as names; whole numbers lose a trailing `.0`.

    A missing label is refused with its row (counted from 0).
    """
    if values.ndim != 1:
        raise UsageError(f"{source}: expected one label per row, got shape {values.shape}")
    if values.dtype.kind in "iub":
        return [str(value) for value in values.tolist()]
    if values.dtype.kind == "f":
        for row in np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))[:1]:
            raise UsageError(f"{source}: label {values[row]} in row {row} is not a class")
        return [str(int(value)) for value in values.tolist()]
    if values.dtype.kind in "US":
        if values.dtype.kind == "S":
            try:
                values = np.char.decode(values, "utf-8")
            except UnicodeDecodeError:
                raise UsageError(f"{source}: labels are not UTF-8 text") from None
        names = [str(value).strip() for value in values.tolist()]
        if "" in names:
            raise UsageError(f"{source}: the label in row {names.index('')} is missing")
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            raise UsageError(f"{source}: labels are no text, as one has half a character") from None
        return [plain_name(name) for name in names]
    raise UsageError(f"{source}: labels must be numbers or text, got {values.dtype}")


def plain_name(name: str) -> str:
    """A label as text; a whole number written as a float (`1.0`, `1e0`) is that number.

    Accents have one form: é is one letter or two, by the program that wrote it.
    """
    if not name.isascii():
        return unicodedata.normalize("NFC", name)
    if not any(mark in name for mark in ".eE"):
        return name
    try:
        value = float(name)
    except ValueError:
        return name
    return str(int(value)) if np.isfinite(value) and value == int(value) else name


def class_list(names: Sequence[str], source: str) -> tuple[str, ...]:
    """The different names in order: by value when all are whole numbers, else alphabetically."""
    different = set(names)
    if len(different) < 2:
        raise UsageError(f"{source}: labels hold {len(different)} class, at least 2 are needed")
    if len(different) > 20 and 2 * len(different) > len(names):
        raise UsageError(
            f"{source}: {len(different)} different labels in {len(names)} rows; is this the label?"
        )
    try:
        return tuple(sorted(different, key=int))
    except ValueError:
        return tuple(sorted(different))


def check_labels(train: Sequence[str], trusted: Sequence[str] | None, source: str) -> None:
    """Refuse labels that cannot be meant.

    That is: one class only, spellings that differ in case or blanks alone, and trusted labels of
    which none is a training label.
    """
    found = [set(train), set(trusted or train)]
    if len(found[0]) == 1:
        raise UsageError(f"{source}: all rows have the label {train[0]!r}; at least 2 are needed")
    spellings: dict[str, str] = {}
    for name in sorted(found[0] | found[1]):
        other = spellings.setdefault("".join(name.split()).casefold(), name)
        if other != name:
            raise UsageError(
                f"{source}: the labels {other!r} and {name!r} differ in case or blanks only; "
                "write them alike, in trusted and test data too"
            )
    if not found[0] & found[1]:
        ours, theirs = (", ".join(map(repr, sorted(names)[:5])) for names in found)
        raise UsageError(
            f"trusted: its labels ({theirs}) and those of {source} ({ours}) have nothing in common"
        )


def class_numbers(
    names: Sequence[str], classes: Sequence[str], source: str
) -> npt.NDArray[np.int64]:
    """(n,) places of `names` in `classes`; an unknown name is refused with its row."""
    place = {plain_name(name): number for number, name in enumerate(classes)}
    place |= {name: number for number, name in enumerate(classes)}
    numbers = [place.get(name, -1) for name in names]
    if -1 in numbers:
        row = numbers.index(-1)
        raise UsageError(
            f"{source}: label {names[row]!r} in row {row} is not a class of the training data"
        )
    return np.array(numbers, np.int64)
