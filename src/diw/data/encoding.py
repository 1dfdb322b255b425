"""How files become inputs, kept with a run so that later files are read the same way.

What is learned from the training file (means, categories, class names) is
data of the run: a prediction a year later must not standardise by its own file.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from diw.errors import UsageError


@dataclass(frozen=True)
class ImageRows:
    """Images of one shape (channels, height, width)."""

    shape: tuple[int, int, int]


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


Column = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class TableRows:
    """Rows of a table; the columns of an array are named by their numbers."""

    columns: tuple[Column, ...]

    @property
    def width(self) -> int:
        """Numbers a row has after encoding."""
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
        """An encoding from what `as_json` wrote, perhaps through a file."""
        try:
            rows: dict[str, Any] = value["rows"]
            if value["kind"] == "image":
                channels, height, width = (int(side) for side in rows["shape"])
                read: ImageRows | TableRows = ImageRows((channels, height, width))
            else:
                read = TableRows(tuple(_column(column) for column in rows["columns"]))
            return Encoding(tuple(value["classes"]), read, value["label"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"encoding: not one that was written here: {error!r}") from None


def _column(value: dict[str, Any]) -> Column:
    if "values" in value:
        return CategoryColumn(value["name"], tuple(value["values"]))
    return NumberColumn(value["name"], float(value["mean"]), float(value["scale"]))
