"""Values to match that do not fit into memory: arrays on disk, and folders of Parquet files.

They are read in parts, each by whoever works on it, so a part holds no values: only where they are,
how they are scaled and where their weights go.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.data.tables import find_label
from diw.errors import UsageError, one_line

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
        import pyarrow.parquet as parquet

        reader: Any = parquet
        try:
            with reader.ParquetFile(self.path) as file:
                table = file.read_row_group(self.group, columns=list(self.columns or ()))
        except Exception as error:  # pyarrow raises many kinds for damaged files
            raise UsageError(f"{self.path}: cannot be read: {one_line(error)}") from None
        table = table.slice(self.start, self.rows)
        columns = [table.column(name).to_numpy() for name in self.columns or ()]
        return np.column_stack(columns).astype(np.float64, copy=False)


def find_parts(path: Path, drop: Sequence[str] = (), labels: Sequence[str] = ()) -> list[FilePart]:
    """The parts of an `.npy` file, or of a folder of `.npy` or `.parquet` files, by name.

    Args:
        path: The file or the folder.
        drop: Columns of Parquet files that are not to be matched.
        labels: More of them, which need not be there.
    """
    parts: list[FilePart] = []
    files, shape = _files(path), None
    for file in files:
        array = file.suffix.lower() == ".npy"
        found = _of_array(file) if array else _of_table(file, drop, labels)
        kind = found[0].columns or _mapped(file).shape[1:] if found else shape
        if shape is not None and kind != shape:
            raise UsageError(f"{file}: has other columns than {files[0].name}")
        shape = kind
        parts += found
    if not parts:
        raise UsageError(f"{path}: it has no rows")
    return parts


def label_column(path: Path, label: str | None) -> str | None:
    """The column of Parquet files that holds labels, by its name or a usual one; None if none does.

    It is not matched, unless it is the only one.
    """
    file = _files(path)[0]
    if file.suffix.lower() == ".npy":
        return None
    columns = _schema(file)[0].names
    if label is not None and label not in columns:
        raise UsageError(f"label: {path} has no column {label!r}; it has {', '.join(columns)}")
    return find_label(label, columns) if len(columns) > 1 else None


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


def standardised(parts: Sequence[FilePart], moments: Sequence[tuple[FloatArray, ...]]) -> Any:
    """The parts with every column scaled by the means and deviations of all of them.

    Args:
        parts: Of the training values.
        moments: `moments_of` each part.

    Returns:
        The parts, and the shift and factor (d,) that they have now.
    """
    counts = np.array([float(count[0]) for count, _, _ in moments])
    means, squares = (np.stack([m[i] for m in moments]) for i in (1, 2))
    mean = (counts[:, None] * means).sum(0) / counts.sum()
    # Of a part about its own mean, and of that about the mean of all: no digits are lost.
    within = (counts[:, None] * (squares + (means - mean) ** 2)).sum(0) / counts.sum()
    scale = np.sqrt(within)
    factor = 1 / np.where(scale > 0, scale, 1.0)
    return [replace(part, shift=mean, factor=factor) for part in parts], mean, factor


def moments_of(part: FilePart) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The number of a part's rows (1,), their mean and their variance (d,)."""
    values = part.read()
    values = values.reshape(len(values), -1)
    return np.array([float(len(values))]), values.mean(0), values.var(0)


def with_places(parts: Sequence[FilePart], out: Path) -> list[FilePart]:
    """The parts with places for their weights in a new file, one after the other."""
    places = np.cumsum([0, *(part.rows for part in parts)])
    np.lib.format.open_memmap(out, "w+", np.float64, (int(places[-1]),)).flush()
    out = out.absolute()
    return [
        replace(part, path=part.path.absolute(), out=out, place=int(place))
        for part, place in zip(parts, places[:-1], strict=True)
    ]


def _mapped(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file, read as it is used; a header that lies is refused."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        content = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy raises many kinds for broken files
        raise UsageError(f"{path}: cannot be read: {one_line(error)}") from None
    if not isinstance(content, np.ndarray) or content.ndim == 0 or content.dtype.kind not in "fiub":
        raise UsageError(f"{path}: expected rows of numbers")
    return content


def _of_array(path: Path) -> list[FilePart]:
    content = _mapped(path)
    step = max(1, PART_VALUES // max(1, content[:1].size))
    starts = range(0, len(content), step)
    return [FilePart(path, start, min(start + step, len(content))) for start in starts]


def _schema(path: Path) -> tuple[Any, list[int]]:
    """The schema of a Parquet file, and the number of rows of each row group."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise UsageError(f"{path}: needs pyarrow: install diw with the extra 'parquet'") from None
    reader: Any = parquet
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    try:
        with reader.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            return file.schema_arrow, sizes
    except Exception as error:  # pyarrow raises many kinds for damaged files
        raise UsageError(f"{path}: cannot be read: {one_line(error)}") from None


def _of_table(path: Path, drop: Sequence[str], labels: Sequence[str]) -> list[FilePart]:
    schema, sizes = _schema(path)
    for name in drop:
        if name not in schema.names:
            raise UsageError(f"drop: {path} has no column {name!r}")
    columns = tuple(name for name in schema.names if name not in (*drop, *labels))
    for name in columns:
        kind = str(schema.field(name).type)
        if not NUMBERS.match(kind):
            raise UsageError(
                f"{path}: column {name!r} holds no numbers ({kind}); leave it out: --drop {name}"
            )
    parts: list[FilePart] = []
    for group, rows in enumerate(sizes):
        most = GROUP_VALUES if rows * len(columns) <= GROUP_VALUES else PART_VALUES
        step = max(1, most // max(1, len(columns)))
        for start in range(0, rows, step):
            parts.append(FilePart(path, start, min(start + step, rows), columns, group))
    return parts
