"""Values to match, read from two files: numbers without labels, both encoded by the first."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diw.data.arrays import read_array
from diw.data.checks import Note
from diw.data.encoding import Encoding, Feature, NumberColumn, TableRows
from diw.data.read import Raw, encode, fit, read_raw
from diw.data.tables import TableFile
from diw.errors import UsageError

Values = NDArray[Any]
"""(n,) or (n, d) finite numbers."""


@dataclass(frozen=True)
class ValuePair:
    """Training and trusted values of one kind, and notes for the user."""

    train: Values
    trusted: Values
    notes: tuple[Note, ...] = ()


def read_values(
    train: Path,
    trusted: Path,
    *,
    drop: tuple[str, ...] = (),
    raw: bool = False,
    text_encoding: str | None = None,
    label: str | None = None,
    keep_label: bool = False,
) -> ValuePair:
    """Two files as values to match.

    Columns of numbers are standardised by the training file's means and deviations
    and words become one-hot, unless there is one column of numbers alone: it is
    taken as it is, like everything with `raw`.

    Args:
        train: `.npy`, `.npz` (the array X, or its only one), `.csv`, `.tsv` or `.parquet`.
        trusted: Another such file with the same columns.
        drop: Columns of a table that are not to be matched (labels, row numbers).
        raw: Take numbers as they are.
        text_encoding: Of CSV files that are not UTF-8.
        label: The column of a table that holds labels; by default one with a usual name, such as
            `label`. It is not matched, unless it is the only one.
        keep_label: Match it as any other column.
    """
    if _is_array(train) != _is_array(trusted):
        raise UsageError(f"{trusted}: give both as arrays, or both as tables, like {train}")
    if _is_array(train):
        pair = _arrays(train, trusted, raw)
    else:
        pair = _tables(train, trusted, drop, raw, text_encoding, label, keep_label)
    for path, values in ((train, pair.train), (trusted, pair.trusted)):
        if not len(values):
            raise UsageError(f"{path}: it has no rows")
        if not np.isfinite(values).all():
            raise UsageError(f"{path}: it holds NaN or infinite values")
    return pair


def _is_array(path: Path) -> bool:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    return path.suffix.lower() in (".npy", ".npz")


def _arrays(train: Path, trusted: Path, raw: bool) -> ValuePair:
    ours, theirs = _read_array(train), _read_array(trusted)
    if ours.shape[1:] != theirs.shape[1:]:
        raise UsageError(
            f"{trusted}: rows of shape {theirs.shape[1:]}, but {train} has {ours.shape[1:]}"
        )
    if ours.ndim == 1 or ours.shape[1] == 1:
        return ValuePair(ours.reshape(-1), theirs.reshape(-1))
    if raw:
        return ValuePair(ours, theirs)
    mean, scale = ours.mean(0, dtype=np.float64), ours.std(0, dtype=np.float64)
    scale[scale == 0] = 1
    shift, factor = mean.astype(ours.dtype), (1 / scale).astype(ours.dtype)
    return ValuePair((ours - shift) * factor, (theirs - shift) * factor)


def _read_array(path: Path) -> Values:
    content = np.asarray(read_array(path))
    if content.ndim == 0 or content.dtype.kind not in "fiub":
        raise UsageError(f"{path}: expected rows of numbers, got {content.dtype} {content.shape}")
    values = content if content.dtype.kind == "f" else content.astype(np.float64)
    return values.reshape(len(values), -1) if values.ndim > 1 else values


def _tables(
    train: Path,
    trusted: Path,
    drop: tuple[str, ...],
    raw: bool,
    text_encoding: str | None,
    label: str | None,
    keep_label: bool,
) -> ValuePair:
    def read(path: Path, leave_out: tuple[str, ...]) -> Raw:
        found = read_raw(path, None, need_labels=False, text_encoding=text_encoding)
        return replace(found, not_features=leave_out)

    ours = read(train, drop)
    labels: tuple[str, ...] = ()
    if isinstance(ours.content, TableFile) and not keep_label:
        columns = ours.content.columns
        if label is not None and label not in columns:
            raise UsageError(f"label: {train} has no column {label!r}; it has {', '.join(columns)}")
        name = ours.content.label_column(label, required=False)
        if name is not None and name not in drop and len(columns) > 1:
            labels = (name,)
            ours = replace(ours, not_features=(*drop, name))
    if isinstance(ours.content, TableFile):
        for name in drop:
            if name not in ours.content.columns:
                columns = ", ".join(ours.content.columns)
                raise UsageError(f"drop: {train} has no column {name!r}; it has {columns}")
    rows, notes = fit(ours)
    what = "left out: it holds the labels; --keep-label matches it"
    notes += tuple(Note(ours.source, what, name, "left out") for name in labels)
    if not isinstance(rows, TableRows):
        raise UsageError(f"{train}: give a table or an array")
    alone = len(rows.columns) == 1 and isinstance(rows.columns[0], NumberColumn)
    if raw or alone:
        rows = TableRows(tuple(_as_is(column) for column in rows.columns))
    theirs = read(trusted, (*drop, *labels))
    encoding = Encoding((), rows)
    values: list[Values] = []
    for raw_rows in (ours, theirs):
        encoded = encode(raw_rows, encoding)
        notes += encoded.notes
        taken = encoded.inputs.take(torch.arange(len(encoded.inputs))).numpy()
        values.append(taken.reshape(-1) if alone else taken)
    return ValuePair(values[0], values[1], tuple(dict.fromkeys(notes)))


def _as_is(column: Feature) -> Feature:
    """No standardisation; a missing number still becomes the mean, which is then its own."""
    return replace(column, scale=1.0) if isinstance(column, NumberColumn) else column
