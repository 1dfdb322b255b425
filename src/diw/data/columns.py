"""The columns of a table as inputs: numbers standardised, words one-hot encoded.

How is learned from the training table (`fit_table`) and applied to every later one
(`table_inputs`). Missing values are filled; what was filled or left out is in the notes.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from diw.data.checks import Note
from diw.data.dataset import TensorInputs
from diw.data.encoding import (
    CONSTANT,
    FARTHEST,
    LARGEST_NUMBER,
    CategoryColumn,
    Feature,
    NumberColumn,
    TableRows,
    is_constant,
    moments,
    standard,
)
from diw.data.numbers import numbers_of, shown_mark, words_of
from diw.data.tables import Cells, TableFile
from diw.errors import UsageError

MAX_VALUES = 100
"""A column with more different words is left out: it holds names or keys, not categories."""

MAX_NUMBERS = 1 << 29
"""Encoded numbers (rows times columns) that are held in memory, 2 GB of them."""

MOSTLY = 0.05
"""The share of words up to which a column of numbers is one with wrong cells, not of categories."""

FEW_NUMBERS = 10
"""A column with at most so many different numbers, and words, is one of categories."""

KEY = re.compile(
    r"(^|[_\s])(id|index|key|nr|no|uuid)$|^unnamed: \d+$|^__index_level_\d+__$", re.IGNORECASE
)
"""Names of columns that number the rows."""

FEW_ROWS = 10
"""In a table of fewer rows, different values say nothing about a column."""


def fit_table(table: TableFile, leave_out: Sequence[str]) -> tuple[TableRows, tuple[Note, ...]]:
    """How each feature column is encoded, learned from this table, and notes for the user.

    Columns that only number or name the rows are left out.

    Args:
        table: The training data.
        leave_out: Columns that are not features.
    """
    columns: list[Feature] = []
    notes: list[Note] = []
    for name, cells in table.columns.items():
        if name in leave_out:
            continue
        found, note = _fit_column(table, name, cells)
        columns += [] if found is None else [found]
        notes += [] if note is None else [note]
    used = {column.name for column in columns}
    dropped = tuple(name for name in table.columns if name not in {*used, *leave_out})
    rows = TableRows(tuple(columns), dropped)
    if rows.width == 0:
        why = f" ({notes[0]})" if notes else ""
        raise UsageError(f"{table.source}: no column besides the label can be used{why}")
    return rows, tuple(notes)


def table_inputs(
    table: TableFile, rows: TableRows, leave_out: Sequence[str] = ()
) -> tuple[TensorInputs, tuple[Note, ...]]:
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
    notes: list[Note] = []
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
    known = {column.name for column in rows.columns} | set(leave_out) | set(rows.left_out)
    extra = [name for name in table.columns if name not in known]
    if extra:
        notes.append(Note(table.source, f"columns not used: {', '.join(extra[:10])}"))
    return TensorInputs(torch.from_numpy(encoded)), tuple(notes)


def _fit_column(table: TableFile, name: str, cells: Cells) -> tuple[Feature | None, Note | None]:
    """How the column is encoded, if it is used, and what the user should know."""

    def note(text: str, kind: str = "") -> Note:
        return Note(table.source, text, name, kind)

    if name == "":
        return None, note("left out: it has no name, like a row number", "left out")
    numbers = numbers_of(table, name)
    if numbers is None:
        return _fit_words(table, name, words_of(cells))
    _refuse_large(table, name, numbers)
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return None, note("is empty and not used", "not used")
    if _numbers_rows(name, numbers):
        return None, note("left out: it numbers the rows", "left out")
    mean, spread = map(float, standard([moments(present)]))
    if is_constant(mean, spread):
        return NumberColumn(name, mean, 1.0), note(CONSTANT)
    return NumberColumn(name, mean, spread), None


def _fit_words(
    table: TableFile, name: str, words: list[str | None]
) -> tuple[Feature | None, Note | None]:
    _refuse_wrong_cells(table, name, words)
    counts = Counter(word for word in words if word is not None)
    if len(counts) > MAX_VALUES or (len(words) >= FEW_ROWS and len(counts) == len(words)):
        reason = f"has {len(counts)} different values; it is not used"
        return None, Note(table.source, reason, name, "not used")
    return CategoryColumn(name, tuple(sorted(counts))), None


def _numbers_rows(name: str, numbers: npt.NDArray[np.float64]) -> bool:
    """Whether the column counts the rows, or is named as a key and different in each of them."""
    if len(numbers) < FEW_ROWS or not (numbers == np.floor(numbers)).all():
        return False
    if (np.diff(numbers) == 1).all():
        return True
    return KEY.search(name) is not None and len(np.unique(numbers)) == len(numbers)


def _refuse_wrong_cells(table: TableFile, name: str, words: list[str | None]) -> None:
    """Refuse a column of numbers with a few cells that are not, naming the first."""
    present = [word for word in words if word is not None]
    wrong = _wrong_cells(words)
    numbers = len({*present} - {*wrong})
    if wrong and len(wrong) <= max(1, MOSTLY * len(present)) and numbers > FEW_NUMBERS:
        row = words.index(wrong[0])
        raise UsageError(
            f"{table.source}: {wrong[0]!r} in row {row} of column {name!r} is not a number, as the "
            f"others are ({len(wrong)} of {len(present)} cells are not); correct it, with a "
            "decimal point, or leave it empty"
        )


def _wrong_cells(words: Sequence[str | None]) -> list[str]:
    """Cells that are no number, or that have another decimal mark than most."""
    counts = Counter(word for word in words if word is not None)
    marks = {word: shown_mark(word) for word in counts}  # once each: a text may be long
    shown: Counter[str | None] = Counter()
    for word, count in counts.items():
        shown[marks[word]] += count
    comma = shown[","] + shown["?,"] > shown["."] + shown["?."]
    other = (None, ".", "?.") if comma else (None, ",", "?,")
    return [word for word in words if word is not None and marks[word] in other]


def _standardise(
    table: TableFile, column: NumberColumn, cells: Cells
) -> tuple[npt.NDArray[np.float32], list[Note]]:
    numbers = numbers_of(table, column.name)
    if numbers is None:
        words = words_of(cells)
        wrong = _wrong_cells(words)[0]
        raise UsageError(
            f"{table.source}: {wrong!r} in row {words.index(wrong)} of column {column.name!r} is "
            "not a number, as it was in the training data"
        )
    _refuse_large(table, column.name, numbers)
    missing = np.isnan(numbers)
    scaled = (np.where(missing, column.mean, numbers) - column.mean) / column.scale
    far = np.flatnonzero(np.abs(scaled) > FARTHEST)
    if len(far):
        row = int(far[0])
        raise UsageError(
            f"{table.source}: {numbers[row]:g} in row {row} of column {column.name!r} is "
            f"{abs(scaled[row]):.0e} standard deviations from the mean of the training data; "
            "correct it, or leave it empty"
        )
    notes = _reading_notes(table, column.name, cells, numbers)
    if missing.any():
        count = f"{int(missing.sum())} of {len(numbers)} values missing, set to the mean"
        notes.append(Note(table.source, count, column.name, "missing values set to the mean"))
    return scaled.astype(np.float32), notes


def _reading_notes(
    table: TableFile, name: str, cells: Cells, numbers: npt.NDArray[np.float64]
) -> list[Note]:
    """How numbers with marks were read, shown by the first."""
    notes: list[Note] = []
    if isinstance(cells, list):
        for row, word in enumerate(cells):
            if word and re.search(r"[^\d+\-.eE]|\..*\.", word) and np.isfinite(numbers[row]):
                read = f"{word} is read as {numbers[row]:.15g}"
                notes.append(Note(table.source, read, name, "numbers read by their marks"))
                break
    return notes


def _one_hot(
    table: TableFile, column: CategoryColumn, cells: Cells, into: npt.NDArray[np.float32]
) -> list[Note]:
    place = {value: number for number, value in enumerate(column.values)}
    words = words_of(cells)
    missing = sum(word is None for word in words)
    unseen = 0
    for row, word in enumerate(words):
        if word in place:
            into[row, place[word]] = 1
        elif word is not None:
            unseen += 1
    notes: list[Note] = []
    for count, what, kind in (
        (missing, "missing", "missing words encoded as zeros"),
        (unseen, "not in the training data", "words not in the training data encoded as zeros"),
    ):
        if count:
            share = f"{count} of {len(words)} values {what}, encoded as zeros"
            notes.append(Note(table.source, share, column.name, kind))
    return notes


def _refuse_large(table: TableFile, name: str, cells: npt.NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(np.abs(cells) > LARGEST_NUMBER)
    if len(wrong):
        raise UsageError(
            f"{table.source}: {cells[wrong[0]]:g} in row {int(wrong[0])} of column {name!r} is too "
            "large"
        )
