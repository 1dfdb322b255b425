"""Tables: CSV and Parquet files as columns of numbers or words, and these as inputs.

Numbers are standardised and words one-hot encoded, as learned from the training table.
Missing values are filled; what was filled or left out is in the notes.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import torch

from diw.data.dataset import TensorInputs
from diw.data.encoding import CategoryColumn, Feature, NumberColumn, TableRows
from diw.errors import UsageError, one_line

MAX_CELLS = 50_000_000
"""The most cells of a CSV file that are read: they are Python strings, 3 to 4 GB at worst."""

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""Cells that hold no value, in lower case and without blanks around them."""

LABELS = ("label", "y", "target", "class")
"""Columns taken for the label when none is named."""

Cells = npt.NDArray[np.float64] | list[str | None]
"""One column: words with None for missing ones; numbers with NaN where the file has types."""

MAX_BYTES = 1 << 31
"""What the columns may take unpacked (2 GB)."""

MAX_VALUES = 100
"""A column with more different words is left out: it holds names or keys, not categories."""

MAX_NUMBERS = 1 << 29
"""Encoded numbers (rows times columns) that are held in memory, 2 GB of them."""


@dataclass(frozen=True)
class TableFile:
    """Columns by name, all of the same length."""

    source: str
    columns: dict[str, Cells]
    rows: int

    def label_column(self, label: str | None, *, required: bool) -> str | None:
        """The name of the label column: `label`, or the only column with a usual name."""
        found = [name for name in ([label] if label else LABELS) if name in self.columns]
        if len(found) == 1:
            return found[0]
        if required:
            wrong = f"no column {label!r}" if label else "say which column is the label"
            raise UsageError(f"{self.source}: {wrong}; columns are {', '.join(self.columns)}")
        return None


def read_csv(path: Path) -> TableFile:
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
    return TableFile(str(path), dict(zip(names, cells, strict=True)), rows)


def _read_lines(file: TextIO, source: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header, and the lines below it with their numbers; empty lines are skipped."""
    header = file.readline()
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in next(csv.reader(StringIO(header), delimiter=delimiter), [])]
    if not any(names):
        raise UsageError(f"{source}: the first line must name the columns")
    _refuse_twins(names, source)
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    return names, ((reader.line_num + 1, line) for line in reader if line)


def read_parquet(path: Path) -> TableFile:
    """The columns of a Parquet file: numbers, truth values and text."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow: install diw with the extra 'parquet'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            _check_size(path, file.metadata)
            table = file.read()
        names: list[str] = table.column_names
        _refuse_twins(names, str(path))
        columns = {name: _cells(path, name, table.column(name)) for name in names}
        return TableFile(str(path), columns, table.num_rows)
    except UsageError:
        raise
    except Exception as error:  # pyarrow raises many kinds for broken files
        raise UsageError(f"{path}: not a readable Parquet file: {one_line(error)}") from None


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse a file that, by its metadata, needs too much memory."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    size = max(unpacked, 8 * metadata.num_rows * metadata.num_columns)
    if size > MAX_BYTES:
        raise UsageError(
            f"{path}: unpacks to {size:,} bytes, more than a table may have ({MAX_BYTES:,}); save "
            "large data as .npy"
        )
    if metadata.num_rows == 0:
        raise UsageError(f"{path}: no rows")


def _refuse_twins(names: list[str], source: str) -> None:
    twins = [name for name, count in Counter(names).items() if count > 1]
    if twins:
        raise UsageError(f"{source}: two columns are named {twins[0]!r}")


def _cells(path: Path, name: str, column: Any) -> Cells:
    import pyarrow

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_integer(kind):
        column, kind = column.cast(pyarrow.float64(), safe=False), pyarrow.float64()
    if pyarrow.types.is_floating(kind):
        values = column.cast(pyarrow.float64(), safe=False).to_numpy()
        return np.array(values, np.float64)  # a null has become NaN
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        words: list[str | None] = column.to_pylist()
        return [None if word is None or word.strip().lower() in MISSING else word for word in words]
    raise UsageError(f"{path}: column {name!r} has type {kind}; numbers and text can be used")


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


def fit_table(table: TableFile, leave_out: Sequence[str]) -> tuple[TableRows, tuple[str, ...]]:
    """How each feature column is encoded, learned from this table, and notes for the user.

    Args:
        table: The training data.
        leave_out: Columns that are not features.
    """
    columns: list[Feature] = []
    notes: list[str] = []
    for name, cells in table.columns.items():
        if name in leave_out:
            continue
        column, more = _fit_column(table, name, cells)
        notes += more
        if column is not None:
            columns.append(column)
    rows = TableRows(tuple(columns))
    if rows.width == 0:
        raise UsageError(f"{table.source}: no column besides the label can be used")
    return rows, tuple(notes)


def table_inputs(
    table: TableFile, rows: TableRows, leave_out: Sequence[str] = ()
) -> tuple[TensorInputs, tuple[str, ...]]:
    """The table encoded (n, width) float32 as `rows` says, and notes for the user."""
    lacking = [column.name for column in rows.columns if column.name not in table.columns]
    if lacking:
        raise UsageError(
            f"{table.source}: lacks the columns {', '.join(map(repr, lacking[:5]))} of the "
            "training data"
        )
    if table.rows * rows.width > MAX_NUMBERS:
        raise UsageError(
            f"{table.source}: {table.rows} rows of {rows.width} numbers are too many for memory; "
            "save them as .npy"
        )
    encoded = np.zeros((table.rows, rows.width), np.float32)
    notes: list[str] = []
    place = 0
    for column in rows.columns:
        cells = table.columns[column.name]
        if isinstance(column, NumberColumn):
            encoded[:, place], more = _standardise(table, column, cells)
            place += 1
        else:
            more = _one_hot(table, column, cells, encoded[:, place : place + len(column.values)])
            place += len(column.values)
        notes += more
    known = {column.name for column in rows.columns} | set(leave_out)
    extra = [name for name in table.columns if name not in known]
    if extra:
        notes.append(f"{table.source}: columns not used: {', '.join(extra[:10])}")
    return TensorInputs(torch.from_numpy(encoded)), tuple(notes)


def _fit_column(table: TableFile, name: str, cells: Cells) -> tuple[Feature | None, list[str]]:
    numbers = numbers_of(cells)
    if numbers is None:
        counts = Counter(word for word in words_of(cells) if word is not None)
        if len(counts) > MAX_VALUES:
            reason = f"has {len(counts)} different values; it is not used"
            return None, [f"{table.source}: column {name!r} {reason}"]
        return CategoryColumn(name, tuple(sorted(counts))), []
    _refuse_infinite(table, name, numbers)
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return None, [f"{table.source}: column {name!r} is empty and not used"]
    mean, scale = float(present.mean()), float(present.std())
    if not scale > 1e-12 * max(1.0, abs(mean)):
        scale = 1.0  # a constant column becomes zeros
    return NumberColumn(name, mean, scale), []


def _standardise(
    table: TableFile, column: NumberColumn, cells: Cells
) -> tuple[npt.NDArray[np.float32], list[str]]:
    numbers = numbers_of(cells)
    if numbers is None:
        words = words_of(cells)
        row = next(row for row, word in enumerate(words) if numbers_of([word]) is None)
        raise UsageError(
            f"{table.source}: {words[row]!r} in row {row} of column {column.name!r} is not a "
            "number, as it was in the training data"
        )
    _refuse_infinite(table, column.name, numbers)
    missing = np.isnan(numbers)
    filled = np.where(missing, column.mean, numbers)
    notes: list[str] = []
    if missing.any():
        count = f"{int(missing.sum())} of {len(numbers)} values missing"
        notes = [f"{table.source}: column {column.name!r}: {count}, set to the mean"]
    return ((filled - column.mean) / column.scale).astype(np.float32), notes


def _one_hot(
    table: TableFile, column: CategoryColumn, cells: Cells, into: npt.NDArray[np.float32]
) -> list[str]:
    place = {value: number for number, value in enumerate(column.values)}
    words = words_of(cells)
    missing = sum(word is None for word in words)
    unseen = 0
    for row, word in enumerate(words):
        if word in place:
            into[row, place[word]] = 1
        elif word is not None:
            unseen += 1
    notes: list[str] = []
    for count, what in ((missing, "missing"), (unseen, "not in the training data")):
        if count:
            share = f"{count} of {len(words)} values {what}"
            notes.append(f"{table.source}: column {column.name!r}: {share}, encoded as zeros")
    return notes


def _refuse_infinite(table: TableFile, name: str, cells: npt.NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(np.isinf(cells) | (np.abs(cells) > 1e30))
    if len(wrong):
        raise UsageError(
            f"{table.source}: {cells[wrong[0]]:g} in row {int(wrong[0])} of column {name!r} is too "
            "large"
        )
