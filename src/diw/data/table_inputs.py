"""Tables as inputs: numbers standardised, categories one-hot, missing values filled and said."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from diw.data.encoding import CategoryColumn, Column, NumberColumn, TableRows
from diw.data.inputs import TensorInputs
from diw.data.tables import Cells, Table, numbers_of, words_of
from diw.errors import UsageError

MAX_VALUES = 100
"""A column of words with more different ones is left out: a name or a key, not a category."""

MAX_NUMBERS = 1 << 29
"""Encoded numbers (rows times columns) that are held in memory, 2 GB of them."""


def fit_table(table: Table, leave_out: Sequence[str]) -> tuple[TableRows, tuple[str, ...]]:
    """How each feature column is encoded, learned from this table; and what must be said.

    Args:
        table: The training data.
        leave_out: Columns that are not features.
    """
    columns: list[Column] = []
    notes: list[str] = []
    for name, cells in table.columns.items():
        if name in leave_out:
            continue
        column, said = _fit_column(table, name, cells)
        notes += said
        if column is not None:
            columns.append(column)
    rows = TableRows(tuple(columns))
    if rows.width == 0:
        raise UsageError(f"{table.source}: no column besides the label can be used")
    return rows, tuple(notes)


def table_inputs(
    table: Table, rows: TableRows, leave_out: Sequence[str] = ()
) -> tuple[TensorInputs, tuple[str, ...]]:
    """The table encoded (n, width) float32 as `rows` says; and what must be said."""
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
            encoded[:, place], said = _standardise(table, column, cells)
            place += 1
        else:
            said = _one_hot(table, column, cells, encoded[:, place : place + len(column.values)])
            place += len(column.values)
        notes += said
    known = {column.name for column in rows.columns} | set(leave_out)
    extra = [name for name in table.columns if name not in known]
    if extra:
        notes.append(f"{table.source}: columns not used: {', '.join(extra[:10])}")
    return TensorInputs(torch.from_numpy(encoded)), tuple(notes)


def _fit_column(table: Table, name: str, cells: Cells) -> tuple[Column | None, list[str]]:
    numbers = numbers_of(cells)
    if numbers is None:
        counts = Counter(word for word in words_of(cells) if word is not None)
        if len(counts) > MAX_VALUES:
            said = f"{len(counts)} different values; it is not used"
            return None, [f"{table.source}: column {name!r} has {said}"]
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
    table: Table, column: NumberColumn, cells: Cells
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
    table: Table, column: CategoryColumn, cells: Cells, into: npt.NDArray[np.float32]
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
            said = f"{count} of {len(words)} values {what}, encoded as zeros"
            notes.append(f"{table.source}: column {column.name!r}: {said}")
    return notes


def _refuse_infinite(table: Table, name: str, cells: npt.NDArray[np.float64]) -> None:
    wrong = np.flatnonzero(np.isinf(cells) | (np.abs(cells) > 1e30))
    if len(wrong):
        raise UsageError(
            f"{table.source}: {cells[wrong[0]]:g} in row {int(wrong[0])} of column {name!r} is too "
            "large"
        )
