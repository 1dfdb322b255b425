"""Parquet files, where pyarrow is installed."""

from pathlib import Path
from typing import Any

import numpy as np

from diw.data.tables import MISSING, Cells, Table
from diw.errors import UsageError

MAX_BYTES = 1 << 31
"""What the columns may take unpacked (2 GB)."""


def read_parquet(path: Path) -> Table:
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
        return Table(
            str(path),
            {name: _cells(path, name, table.column(name)) for name in _names(path, table)},
            table.num_rows,
        )
    except UsageError:
        raise
    except Exception as error:  # pyarrow raises many kinds at broken files
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{path}: not a readable Parquet file: {reason}") from None


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse, by what the file says of itself, more than memory should take."""
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


def _names(path: Path, table: Any) -> list[str]:
    names: list[str] = table.column_names
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"{path}: two columns are named {name!r}")
    return names


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
