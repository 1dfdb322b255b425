"""Tables as read: columns of numbers or words, before anything is encoded."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError

MAX_CELLS = 50_000_000
"""The most cells of a CSV file that are read: they are Python strings, 3 to 4 GB at worst."""

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""Cells that hold no value, in lower case and without blanks around them."""

LABELS = ("label", "y", "target", "class")
"""Columns taken for the label when none is named."""

Cells = npt.NDArray[np.float64] | list[str | None]
"""One column: words with None for missing ones; numbers with NaN where the file has types."""


@dataclass(frozen=True)
class Table:
    """Columns by name, all of the same length."""

    source: str
    columns: dict[str, Cells]
    rows: int

    def label_column(self, label: str | None, *, required: bool) -> str | None:
        """The name of the label column: the one asked for, or the only usual one."""
        have = ", ".join(self.columns)
        if label is not None:
            if label in self.columns:
                return label
            if required:
                raise UsageError(f"{self.source}: no column {label!r}; columns are {have}")
            return None
        usual = [name for name in LABELS if name in self.columns]
        if len(usual) == 1:
            return usual[0]
        if required:
            raise UsageError(f"{self.source}: say which column is the label; columns are {have}")
        return None


def read_csv(path: Path) -> Table:
    """A CSV file with a header line; commas, semicolons or tabs, UTF-8.

    Every line must have as many cells as the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, lines = _read_lines(file, str(path))
            cells: list[list[str | None]] = [[] for _ in names]
            for row, (number, line) in enumerate(lines):
                if row * len(names) > MAX_CELLS:
                    raise UsageError(
                        f"{path}: more than {MAX_CELLS:,} cells; save large data as .npy or Parquet"
                    )
                if len(line) != len(names):
                    raise UsageError(
                        f"{path}: line {number} has {len(line)} cells, the header {len(names)}"
                    )
                for column, cell in zip(cells, line, strict=True):
                    word = cell.strip()
                    column.append(None if word.lower() in MISSING else word)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text at byte {error.start}") from None
    except csv.Error as error:
        raise UsageError(f"{path}: not a CSV file: {error}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    rows = len(cells[0])
    if rows == 0:
        raise UsageError(f"{path}: no rows below the header")
    return Table(str(path), dict(zip(names, cells, strict=True)), rows)


def _read_lines(file: TextIO, source: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header, and the lines below it with their numbers; empty lines are skipped."""
    header = file.readline()
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in next(csv.reader(StringIO(header), delimiter=delimiter), [])]
    if not any(names):
        raise UsageError(f"{source}: the first line must name the columns")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"{source}: two columns are named {name!r}")
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    return names, ((reader.line_num + 1, line) for line in reader if line)


def numbers_of(cells: Cells) -> npt.NDArray[np.float64] | None:
    """(n,) numbers, NaN where missing; None when a cell is neither a number nor missing."""
    if not isinstance(cells, list):
        return cells
    try:
        return np.array([np.nan if word is None else float(word) for word in cells], np.float64)
    except ValueError:
        return None


def words_of(cells: Cells) -> list[str | None]:
    """The column as words; whole numbers of a typed file without a point."""
    if isinstance(cells, list):
        return cells
    return [
        None if np.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
        for value in cells.tolist()
    ]
