"""Table files, CSV, Parquet and JSON Lines, as columns of numbers or words."""

import csv
import gzip
import json
import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError, one_line

MAX_CELLS = 50_000_000
"""The most cells of a CSV file that are read: they are Python strings, 3 to 4 GB at worst."""

MAX_LINE = 1 << 26
"""The longest line of a CSV file, in characters."""

MAX_CELL = 1 << 22
"""The longest cell of a CSV file, in characters: a text may be long."""

MAX_RATIO = 100
"""How many times its size a packed file may unpack to, unless that is less than `SMALL`."""

SMALL = 1 << 21
"""Characters that are read within a second or two, whatever they are."""

MISSING = frozenset(
    {"", "?", "na", "n/a", "nan", "nat", "null", "none", "<na>", "#n/a", "#na", "#nv"}
    | {"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"}
)
"""Cells that hold no value, in lower case and without blanks around them."""

LABELS = ("label", "y", "target", "class")
"""Columns taken for the label when none is named."""

CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
JSON_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")

Cells = npt.NDArray[np.float64] | list[str | None]
"""One column: words with None for missing ones; numbers with NaN where the file has types."""

MAX_BYTES = 1 << 31
"""What the columns may take unpacked (2 GB)."""


@dataclass(frozen=True)
class TableFile:
    """Columns by name, all of the same length.

    Attributes:
        delimiter: What stands between the cells of a CSV file.
        facts: What was found out about the columns, once.
    """

    source: str
    columns: dict[str, Cells]
    rows: int
    delimiter: str = ","
    facts: dict[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    def label_column(self, label: str | None, *, required: bool) -> str | None:
        """The name of the label column: `label`, or the only column with a usual name."""
        found = find_label(label, self.columns)
        if found is not None:
            return found
        if required:
            wrong = f"no column {label!r}" if label else "say which column is the label"
            raise UsageError(f"{self.source}: {wrong}; columns are {', '.join(self.columns)}")
        return None


def find_label(label: str | None, columns: Iterable[str]) -> str | None:
    """The name of the label column: `label`, or the only one of `columns` with a usual name."""
    there = set(columns)
    found = [name for name in ([label] if label else LABELS) if name in there]
    return found[0] if len(found) == 1 else None


def read_csv(path: Path, text_encoding: str | None = None) -> TableFile:
    """A CSV file with a header line: commas, semicolons or tabs; `.gz` is unpacked.

    Every line must have as many cells as the header; empty cells at its end may be more.

    Args:
        path: The file.
        text_encoding: How its characters are encoded; UTF-8 by default.
    """
    with open_csv(path, text_encoding) as file:
        names = file.names
        cells: list[list[str | None]] = [[] for _ in names]
        for row, (_, line) in enumerate(file.lines):
            if row * len(names) > MAX_CELLS:
                raise UsageError(
                    f"{path}: more than {MAX_CELLS:,} cells; save large data as .npy or Parquet"
                )
            for column, cell in zip(cells, line, strict=True):
                column.append(None if cell.lower() in MISSING else cell)
    rows = len(cells[0])
    if rows == 0:
        raise UsageError(f"{path}: no rows below the header")
    return TableFile(str(path), dict(zip(names, cells, strict=True)), rows, file.delimiter)


@dataclass(frozen=True)
class CsvFile:
    """The header of a CSV file, and the lines below it as they are read.

    Attributes:
        lines: The number of each line in the file, and its cells: as many as the header has.
    """

    names: list[str]
    delimiter: str
    lines: Iterator[tuple[int, list[str]]]


@contextmanager
def open_csv(path: Path, text_encoding: str | None = None) -> Generator[CsvFile]:
    """A CSV file as spreadsheets and programs write it.

    Whatever is wrong with the file is a `UsageError` that names it. Cells have no blanks around
    them. Empty lines are skipped, and so are lines of empty cells at the end and empty columns
    without a name at the right, which Excel writes where a sheet was once used.
    """
    limit = csv.field_size_limit(MAX_CELL)
    try:
        with _text(path, text_encoding) as file:
            yield _read_lines(file, str(path))
    except csv.Error as error:
        raise UsageError(f"{path}: not a CSV file: {error}") from None
    finally:
        csv.field_size_limit(limit)


def read_json_lines(path: Path, text_encoding: str | None = None) -> TableFile:
    """A file with one JSON object a line; `.gz` is unpacked. What a line lacks is missing."""
    columns: dict[str, list[str | None]] = {}
    row = 0
    with _text(path, text_encoding) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            for name, value in _object(line, path, number).items():
                column = columns.setdefault(name, [])
                column += [None] * (row - len(column))
                column.append(_word(value, path, number, name))
            row += 1
            if row * len(columns) > MAX_CELLS:
                raise UsageError(
                    f"{path}: more than {MAX_CELLS:,} cells; save large data as .npy or Parquet"
                )
    if not columns:
        raise UsageError(f"{path}: no rows")
    cells: dict[str, Cells] = {
        name: column + [None] * (row - len(column)) for name, column in columns.items()
    }
    return TableFile(str(path), cells, row)


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    found: Any = None
    with suppress(ValueError, RecursionError):
        found = json.loads(line, object_pairs_hook=tuple)
    if not isinstance(found, tuple):
        raise UsageError(f"{path}: line {number} is no JSON object; write one a line")
    pairs = [(plain(name), value) for name, value in cast(tuple[tuple[str, Any], ...], found)]
    _refuse_twins([name for name, _ in pairs], f"{path}: line {number}")
    return dict(pairs)


def _word(value: Any, path: Path, number: int, name: str) -> str | None:
    """A value as the cell of a CSV file would be."""
    if value is not None and not isinstance(value, (str, int, float)):
        raise UsageError(f"{path}: {name!r} in line {number} is a list or an object; leave it out")
    word = plain(value) if isinstance(value, str) else str(value)
    return None if word.lower() in MISSING else word


@contextmanager
def _text(path: Path, text_encoding: str | None) -> Generator[Iterator[str]]:
    """The lines of a text file, none of which fills the memory."""
    try:
        with _open_text(path, text_encoding) as file:
            yield _bounded(file, str(path))
    except LookupError:
        raise UsageError(
            f"encoding: there is no {text_encoding!r}; try latin-1 or cp1252"
        ) from None
    except UnicodeEncodeError:
        raise UsageError(f"{path}: holds half of a character (a lone \\ud8… or \\udc…)") from None
    except UnicodeError as error:
        hint = "" if text_encoding else "; if Excel or an old program wrote it: --encoding latin-1"
        at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        raise UsageError(f"{path}: not {text_encoding or 'UTF-8'} text{at}{hint}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: not a readable .gz file: {one_line(error)}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _open_text(path: Path, text_encoding: str | None) -> TextIO:
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    if text_encoding is None:
        with opened(path, "rb") as file:
            start = file.read(2)
        # Excel's "Unicode text" is UTF-16 with a mark at the front.
        text_encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return opened(path, "rt", encoding=text_encoding, newline="")


def _read_lines(lines: Iterator[str], source: str) -> CsvFile:
    header = next(lines, "")
    before = 1
    delimiter = max(",;\t", key=header.count)
    if stated := re.fullmatch(r"sep=(.)\s*", header):  # a line for Excel alone
        delimiter, header, before = stated[1], next(lines, ""), 2
    names = [plain(name) for name in next(csv.reader([header], delimiter=delimiter), [])]
    while len(names) > 1 and not names[-1]:
        names.pop()
    if not any(names):
        raise UsageError(f"{source}: the first line must name the columns")
    _refuse_twins(names, source)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)

    def cells() -> Iterator[tuple[int, list[str]]]:
        empty: list[tuple[int, list[str]]] = []  # rows if another follows, else the end
        for line in filter(None, reader):
            number = reader.line_num + before
            words = [plain(cell) for cell in line]
            while len(words) > len(names) and not words[-1]:
                words.pop()
            if len(words) != len(names):
                raise UsageError(
                    f"{source}: line {number} has {len(words)} cells, the header {len(names)}"
                )
            if any(words):
                yield from empty
                empty = []
                yield number, words
            else:
                empty.append((number, words))

    return CsvFile(names, delimiter, cells())


def plain(text: str) -> str:
    """A cell without blanks around it, its accents in one form: é may be written in two ways.

    Half a character, as JSON may have one, is a `UnicodeEncodeError`: no file can hold it.
    """
    text = text.strip()
    if text.isascii():
        return text
    text.encode()
    return unicodedata.normalize("NFC", text)


def _bounded(file: TextIO, source: str) -> Iterator[str]:
    """The lines of a file, as long as none would fill the memory.

    A packed file must not unpack to very much more than it is.
    """
    most = math.inf
    if source.lower().endswith(".gz"):
        most = max(SMALL, MAX_RATIO * Path(source).stat().st_size)
    count = 0
    while line := file.readline(MAX_LINE):
        count += len(line)
        if count > most:
            raise UsageError(
                f"{source}: unpacks to more than {MAX_RATIO} times its size; unpack it first if "
                "that is meant"
            )
        if len(line) == MAX_LINE:
            raise UsageError(f"{source}: cannot be read: a line of {MAX_LINE:,} characters")
        yield line


@contextmanager
def open_parquet(path: Path, **options: Any) -> Generator[Any]:
    """A Parquet file of pyarrow's; whatever is wrong with it is a `UsageError` that names it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow: install diw with the extra 'parquet'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path, **options) as file:
            yield file
    except UsageError:
        raise
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except Exception as error:  # pyarrow raises many kinds for broken files
        raise UsageError(f"{path}: not a readable Parquet file: {one_line(error)}") from None


def read_parquet(path: Path) -> TableFile:
    """The columns of a Parquet file: numbers, truth values, dates and text."""
    with open_parquet(path) as file:
        _check_size(path, file.metadata)
        schema = file.schema_arrow
        names = [plain(name) for name in schema.names]
        _refuse_twins(names, str(path))
        for name, field in zip(names, schema, strict=True):
            _refuse_type(path, name, _value_type(field.type))
        # As dictionaries, because few bytes can hold a long text a million times.
        texts = [field.name for field in schema if _is_text(_value_type(field.type))]
    with open_parquet(path, read_dictionary=texts) as file:
        table = file.read()
        columns = {name: _cells(path, name, table.column(at)) for at, name in enumerate(names)}
        return TableFile(str(path), columns, table.num_rows)


def _check_size(path: Path, metadata: Any) -> None:
    """Refuse a file that, by its metadata, needs too much memory, or much more than it is."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    unpacked = sum(group.total_byte_size for group in groups)
    size = max(unpacked, 8 * metadata.num_rows * metadata.num_columns)
    if size > MAX_BYTES:
        raise UsageError(
            f"{path}: unpacks to {size:,} bytes, more than a table may have ({MAX_BYTES:,}); save "
            "large data as .npy"
        )
    if size > max(32 * SMALL, MAX_RATIO * path.stat().st_size):
        raise UsageError(
            f"{path}: unpacks to {size:,} bytes, more than {MAX_RATIO} times its size; if that is "
            "meant, save it as .npy"
        )
    if metadata.num_rows == 0:
        raise UsageError(f"{path}: no rows")


def _refuse_twins(names: list[str], source: str) -> None:
    twins = [name for name, count in Counter(names).items() if count > 1]
    if twins:
        raise UsageError(f"{source}: two columns are named {twins[0]!r}")


def _refuse_type(path: Path, name: str, kind: Any) -> None:
    """Refuse lists, bytes and the like unread: they may unpack to very much."""
    from pyarrow import types

    plain_kinds = (
        types.is_null,
        types.is_boolean,
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_temporal,
    )
    if not (_is_text(kind) or any(is_kind(kind) for is_kind in plain_kinds)):
        raise UsageError(f"{path}: column {name!r} has type {kind}; numbers and text can be used")


def _value_type(kind: Any) -> Any:
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    import pyarrow

    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)


def _cells(path: Path, name: str, column: Any) -> Cells:
    import pyarrow
    from pyarrow import types

    kind = _value_type(column.type)
    if _is_text(kind):
        return [cell for chunk in column.chunks for cell in _words(chunk)]
    if types.is_dictionary(column.type):
        column = column.cast(kind)
    if types.is_null(kind):
        return [None for _ in range(len(column))]
    if types.is_temporal(kind):
        return _words(column.cast(pyarrow.string()).combine_chunks())
    if types.is_integer(kind) and not _fits(column):
        return [None if value is None else str(value) for value in column.to_pylist()]
    values = column.cast(pyarrow.float64(), safe=False).to_numpy()
    return np.array(values, np.float64)  # a null has become NaN


def _words(chunk: Any) -> list[str | None]:
    """The cells of a chunk of text; equal ones are one object where it is a dictionary."""
    import pyarrow

    def cells(texts: list[str | None]) -> list[str | None]:
        words = (None if text is None else plain(text) for text in texts)
        return [None if word is None or word.lower() in MISSING else word for word in words]

    if not pyarrow.types.is_dictionary(chunk.type):
        return cells(chunk.to_pylist())
    known = cells(chunk.dictionary.to_pylist())
    places = chunk.indices.to_pylist()
    return [None if place is None else known[place] for place in places]


def _fits(column: Any) -> bool:
    """Whether all whole numbers are exact in double precision: keys and labels may not be."""
    import pyarrow.compute

    compute: Any = pyarrow.compute
    ends = compute.min_max(column).as_py()
    return all(value is None or abs(value) <= 1 << 53 for value in ends.values())
