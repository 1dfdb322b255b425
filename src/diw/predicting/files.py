"""Predictions as files: CSV and Parquet are written batch by batch, .npz at once.

Each row has the predicted class by name and the probability of every class;
images have their file names before these. In CSV a name that a spreadsheet would take for a
formula gets an apostrophe; Parquet and .npz hold names as they are.
"""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.runs import replacing

Probabilities = NDArray[np.float32]

_ROW_GROUP = 1 << 16
"""Rows per Parquet row group: with a few hundred the file would be mostly headers."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for some consecutive rows.

    Attributes:
        texts: Columns of text, b entries each: file names if rows have them, and predicted classes.
        probabilities: (b, classes) float32.
    """

    texts: tuple[list[str], ...]
    probabilities: Probabilities


def check_format(path: Path) -> None:
    """Refuse, before any work, a format that is unknown or needs a package that is missing."""
    if path.suffix.lower() not in _WRITERS:
        endings = ", ".join(ending for ending in _WRITERS if ending)
        raise UsageError(f"out: cannot write {path.name}; choose one of {endings}")
    if _WRITERS[path.suffix.lower()] is _write_parquet:
        try:
            import pyarrow.parquet  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            raise UsageError(
                f"out: writing {path.name} needs pyarrow: install diw with the extra 'parquet'"
            ) from None


def write_predictions(
    path: Path,
    batches: Iterable[Probabilities],
    classes: Sequence[str],
    names: Sequence[str] | None = None,
) -> NDArray[np.int64]:
    """Write predictions to a file, in the format of its ending, and count them.

    Args:
        path: `.csv` (the default), `.parquet` or `.npz`. It appears only when it is complete.
        batches: Probabilities (b, classes) in the order of the rows.
        classes: Class names by class number.
        names: One file name per row, if rows have names.

    Returns:
        (classes,) how often each class was predicted.
    """
    check_format(path)
    counts = np.zeros(len(classes), np.int64)

    def counted() -> Iterator[Predictions]:
        start = 0
        for probabilities in batches:
            numbers = probabilities.argmax(1)
            counts[:] += np.bincount(numbers, minlength=len(classes))
            labels = [classes[int(number)] for number in numbers]
            stop = start + len(labels)
            texts = (labels,) if names is None else (list(names[start:stop]), labels)
            yield Predictions(texts, probabilities)
            start = stop

    header = [*(["file"] if names is not None else []), "label", *(f"p_{name}" for name in classes)]
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, counted(), header, classes)
    return counts


def _write_csv(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for batch in batches:
            numbers = ([f"{p:.6g}" for p in row] for row in batch.probabilities.tolist())
            rows = zip(zip(*batch.texts, strict=True), numbers, strict=True)
            writer.writerows([*map(plain_text, texts), *row] for texts, row in rows)


def plain_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula: with an apostrophe before =, +, - or @.

    Numbers are left as they are: −1 and +1 are usual names of classes.
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _write_parquet(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    import pyarrow
    import pyarrow.parquet

    text, number = pyarrow.string(), pyarrow.float32()
    kinds = [text] * (len(header) - len(classes)) + [number] * len(classes)
    schema = pyarrow.schema(list(zip(header, kinds, strict=True)))
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _joined(batches, _ROW_GROUP):
            columns = zip([*batch.texts, *batch.probabilities.T], kinds, strict=True)
            arrays = [pyarrow.array(column, kind) for column, kind in columns]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _write_npz(
    path: Path, batches: Iterator[Predictions], header: list[str], classes: Sequence[str]
) -> None:
    (batch,) = _joined(batches, sys.maxsize)
    *files, labels = batch.texts
    names = np.array(classes)
    arrays: dict[str, Any] = {
        "labels": np.array(labels, names.dtype),
        "probabilities": batch.probabilities,
        "classes": names,
    }
    if files:
        arrays["files"] = np.array(files[0])
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _joined(batches: Iterator[Predictions], rows: int) -> Iterator[Predictions]:
    """Batches of at least `rows` rows; the last may have fewer."""
    held: list[Predictions] = []

    def join() -> Predictions:
        columns = zip(*(part.texts for part in held), strict=True)
        texts = tuple([text for part in column for text in part] for column in columns)
        return Predictions(texts, np.concatenate([part.probabilities for part in held]))

    for batch in batches:
        held.append(batch)
        if sum(len(part.probabilities) for part in held) >= rows:
            yield join()
            held.clear()
    if held:
        yield join()


_WRITERS: dict[str, Callable[[Path, Iterator[Predictions], list[str], Sequence[str]], None]] = {
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    "": _write_csv,
}
"""By the file's ending."""
