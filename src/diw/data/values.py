"""Values to match, from two files: whole, or in parts where they do not fit into memory.

Numbers without labels, both files encoded by the first. Arrays on disk and folders of Parquet files
are read in parts, each by whoever works on it, so a part holds no values: only where they are, how
they are scaled and where their weights go. Nothing here needs torch but tables in memory.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from diw.data.encoding import (
    Encoding,
    Feature,
    Moments,
    NumberColumn,
    TableRows,
    is_constant,
    moments,
    standard,
)
from diw.data.tables import TableFile, find_label, open_parquet
from diw.errors import UsageError
from diw.files import Archive, map_array

if TYPE_CHECKING:
    from diw.data.checks import Note

FloatArray = NDArray[np.float64]

PART_VALUES = 1 << 22
"""Numbers of a part: 32 MiB as float64."""
GROUP_VALUES = 1 << 25
"""Numbers of a row group of a Parquet file that is one part: 256 MiB. A group is read as a whole,
so that cutting it costs as many readings as it has parts."""
NUMBERS = re.compile(r"u?int\d+$|(halffloat|float|double)$|bool$")
"""Types of Parquet columns."""
LARGEST = 1e100
"""Numbers beyond this are refused: their squares are not numbers."""

Values = NDArray[Any]
"""(n,) or (n, d) finite numbers."""


@dataclass(frozen=True)
class ValuePair:
    """Training and trusted values of one kind, and notes for the user."""

    train: Values
    trusted: Values
    notes: "tuple[Note, ...]" = ()


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


def read_labels(path: Path, label: str | None, text_encoding: str | None) -> Sequence[str]:
    """The labels (n,) of a file that has them, as names."""
    from diw.data.read import read_raw

    return read_raw(path, label, text_encoding=text_encoding).labels or ()


def lacks_labels(path: Path, label: str | None, text_encoding: str | None) -> bool:
    """Whether a file is a table in which no column holds labels."""
    from diw.data.read import read_raw

    if not path.is_file():
        return False
    content = read_raw(path, None, need_labels=False, text_encoding=text_encoding).content
    return isinstance(content, TableFile) and find_label(label, content.columns) is None


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
    mean, factor = _scaling([moments(ours)])
    shift, factor = mean.astype(ours.dtype), factor.astype(ours.dtype)
    return ValuePair((ours - shift) * factor, (theirs - shift) * factor)


def _read_array(path: Path) -> Values:
    if path.suffix.lower() == ".npy":
        content = np.asarray(_mapped(path))
    else:
        with Archive(path) as archive:
            held = archive.names
            if "X" not in held and len(held) != 1:
                names = ", ".join(held) or "none"
                raise UsageError(f"{path}: no array X in it (it holds: {names})")
            content = _rows_of_numbers(archive.read("X" if "X" in held else held[0]), path)
    values = content if content.dtype.kind == "f" else content.astype(np.float64)
    return values.reshape(len(values), -1) if values.ndim > 1 else values


def _rows_of_numbers(content: NDArray[Any], path: Path) -> NDArray[Any]:
    if content.ndim == 0 or content.dtype.kind not in "fiub":
        raise UsageError(f"{path}: expected rows of numbers, got {content.dtype} {content.shape}")
    return content


def _mapped(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file, read as it is used."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    return _rows_of_numbers(map_array(path), path)


def _scaling(parts: Sequence[Moments]) -> tuple[FloatArray, FloatArray]:
    """What is subtracted from each row (d,), and the factor (d,) after that."""
    mean, spread = standard(parts)
    return mean, 1 / np.where(is_constant(mean, spread), 1.0, spread)


def _tables(
    train: Path,
    trusted: Path,
    drop: tuple[str, ...],
    raw: bool,
    text_encoding: str | None,
    label: str | None,
    keep_label: bool,
) -> ValuePair:
    import torch

    from diw.data.checks import Note
    from diw.data.read import Raw, encode, fit, read_raw

    def read(path: Path, leave_out: tuple[str, ...]) -> Raw:
        found = read_raw(path, None, need_labels=False, text_encoding=text_encoding)
        return replace(found, not_features=leave_out)

    ours = read(train, drop)
    labels: tuple[str, ...] = ()
    if isinstance(ours.content, TableFile) and not keep_label:
        name = _left_out(ours.content.columns, label, train)
        if name is not None and name not in drop:
            labels = (name,)
            ours = replace(ours, not_features=(*drop, name))
    if isinstance(ours.content, TableFile):
        _check_drop(ours.content.columns, drop, train)
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


def _left_out(columns: Iterable[str], label: str | None, path: Path) -> str | None:
    """The column of labels, which is not matched, unless it is the only one."""
    names = list(columns)
    if label is not None and label not in names:
        raise UsageError(f"label: {path} has no column {label!r}; it has {', '.join(names)}")
    return find_label(label, names) if len(names) > 1 else None


def _check_drop(columns: Iterable[str], drop: Sequence[str], path: Path) -> None:
    names = list(columns)
    for name in drop:
        if name not in names:
            raise UsageError(f"drop: {path} has no column {name!r}; it has {', '.join(names)}")


@dataclass(frozen=True)
class FilePart:
    """Some rows of an `.npy` file, or a row group of a Parquet file."""

    path: Path
    start: int
    stop: int
    columns: tuple[str, ...] | None = None
    """Of a Parquet file; None for an array."""
    group: int = 0
    """The row group of a Parquet file; `start` and `stop` count within it."""
    shift: FloatArray | None = None
    """(d,) is subtracted from each row, which is then multiplied by `factor`."""
    factor: FloatArray | None = None
    out: Path | None = None
    """An `.npy` file for the weights of all rows, and this part's first place in it."""
    place: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start

    def read(self) -> FloatArray:
        """(c,) or (c, d) finite numbers, scaled."""
        values = self._array() if self.columns is None else self._table()
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if not np.abs(values).max(initial=0.0) < LARGEST:  # NaN is not less than anything
            raise UsageError(f"{self.path}: it holds missing, infinite or huge values")
        if self.shift is not None and self.factor is not None:
            values -= self.shift
            values *= self.factor
        return values

    def write(self, weights: FloatArray) -> None:
        """Put the weights (c,) into their places of the file for all."""
        assert self.out is not None
        kept = np.lib.format.open_memmap(self.out, mode="r+")
        kept[self.place : self.place + len(weights)] = weights
        kept.flush()

    def _array(self) -> FloatArray:
        content = _mapped(self.path)[self.start : self.stop]
        return content.reshape(len(content), -1).astype(np.float64)

    def _table(self) -> FloatArray:
        with open_parquet(self.path) as file:
            table = file.read_row_group(self.group, columns=list(self.columns or ()))
        table = table.slice(self.start, self.rows)
        columns = [table.column(name).to_numpy() for name in self.columns or ()]
        return np.column_stack(columns).astype(np.float64, copy=False)


def find_parts(
    path: Path,
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    part_values: int | None = None,
    group_values: int | None = None,
) -> list[FilePart]:
    """The parts of an `.npy` file, or of a folder of `.npy` or `.parquet` files, by name.

    Args:
        path: The file or the folder.
        drop: Columns of Parquet files that are not to be matched.
        labels: More of them, which need not be there.
        part_values: Numbers of a part; `PART_VALUES` by default.
        group_values: Numbers of a row group that is one part; `GROUP_VALUES` by default.
    """
    parts: list[FilePart] = []
    most = (part_values or PART_VALUES, group_values or GROUP_VALUES)
    files, shape = _files(path), None
    for file in files:
        array = file.suffix.lower() == ".npy"
        found = _of_array(file, most[0]) if array else _of_table(file, drop, labels, most)
        kind = found[0].columns or _mapped(file).shape[1:] if found else shape
        if shape is not None and kind != shape:
            raise UsageError(f"{file}: has other columns than {files[0].name}")
        shape = kind
        parts += found
    if not parts:
        raise UsageError(f"{path}: it has no rows")
    return parts


def label_column(path: Path, label: str | None) -> str | None:
    """The column of Parquet files that holds labels and is not matched; None if none does."""
    file = _files(path)[0]
    if file.suffix.lower() == ".npy":
        return None
    return _left_out(_schema(file)[0].names, label, path)


def _files(path: Path) -> list[Path]:
    """The file, or those of the folder, by name."""
    files = [path]
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix.lower() in (".npy", ".parquet"))
        if not files:
            raise UsageError(f"{path}: holds no .parquet and no .npy files")
        if len({file.suffix.lower() for file in files}) > 1:
            raise UsageError(f"{path}: holds both .parquet and .npy files; give one kind")
    elif path.suffix.lower() not in (".npy", ".parquet"):
        raise UsageError(f"{path}: only .npy and .parquet are read in parts")
    return files


def standardised(
    parts: Sequence[FilePart], found: Sequence[Moments]
) -> tuple[list[FilePart], FloatArray, FloatArray]:
    """The parts with every column scaled by the means and deviations of all of them.

    Args:
        parts: Of the training values.
        found: `moments_of` each part.

    Returns:
        The parts, and the shift and factor (d,) that they have now.
    """
    shift, factor = _scaling(found)
    return [replace(part, shift=shift, factor=factor) for part in parts], shift, factor


def moments_of(part: FilePart) -> Moments:
    """The number of a part's rows, their mean and their variance (d,)."""
    values = part.read()
    return moments(values.reshape(len(values), -1))


def with_places(parts: Sequence[FilePart], out: Path) -> list[FilePart]:
    """The parts with places for their weights in a new file, one after the other."""
    places = np.cumsum([0, *(part.rows for part in parts)])
    np.lib.format.open_memmap(out, "w+", np.float64, (int(places[-1]),)).flush()
    out = out.absolute()
    return [
        replace(part, path=part.path.absolute(), out=out, place=int(place))
        for part, place in zip(parts, places[:-1], strict=True)
    ]


def _of_array(path: Path, part_values: int) -> list[FilePart]:
    content = _mapped(path)
    step = max(1, part_values // max(1, content[:1].size))
    starts = range(0, len(content), step)
    return [FilePart(path, start, min(start + step, len(content))) for start in starts]


def _schema(path: Path) -> tuple[Any, list[int]]:
    """The schema of a Parquet file, and the number of rows of each row group."""
    with open_parquet(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        return file.schema_arrow, sizes


def _of_table(
    path: Path, drop: Sequence[str], labels: Sequence[str], most: tuple[int, int]
) -> list[FilePart]:
    schema, sizes = _schema(path)
    _check_drop(schema.names, drop, path)
    columns = tuple(name for name in schema.names if name not in (*drop, *labels))
    for name in columns:
        kind = str(schema.field(name).type)
        if not NUMBERS.match(kind):
            raise UsageError(
                f"{path}: column {name!r} holds no numbers ({kind}); leave it out: --drop {name}"
            )
    parts: list[FilePart] = []
    for group, rows in enumerate(sizes):
        whole = rows * len(columns) <= most[1]
        step = max(1, most[whole] // max(1, len(columns)))
        for start in range(0, rows, step):
            parts.append(FilePart(path, start, min(start + step, rows), columns, group))
    return parts
