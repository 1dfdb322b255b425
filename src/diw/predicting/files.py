"""Predictions as files: CSV and Parquet are written batch by batch, .npz at once.

Each row has the predicted class by name and the probability of every class;
images have their file names before these.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.records import replacing

Probabilities = NDArray[np.float32]

_ROW_GROUP = 1 << 16
"""Rows per Parquet row group: with a few hundred the file would be mostly headers."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for some consecutive rows.

    Attributes:
        probabilities: (b, classes) float32.
        labels: (b,) class numbers of the largest probability.
        names: (b,) file names, or None if rows have no names.
    """

    probabilities: Probabilities
    labels: NDArray[np.int64]
    names: Sequence[str] | None


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
            labels = probabilities.argmax(1)
            counts[:] += np.bincount(labels, minlength=len(classes))
            stop = start + len(labels)
            yield Predictions(probabilities, labels, None if names is None else names[start:stop])
            start = stop

    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](temporary, counted(), classes, names is not None)
    return counts


def _header(classes: Sequence[str], named: bool) -> list[str]:
    return [*(["file"] if named else []), "label", *(f"p_{name}" for name in classes)]


def _write_csv(
    path: Path, batches: Iterator[Predictions], classes: Sequence[str], named: bool
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_header(classes, named))
        for batch in batches:
            labels = [classes[label] for label in batch.labels]
            numbers = ([f"{p:.6g}" for p in row] for row in batch.probabilities.tolist())
            if batch.names is None:
                writer.writerows([label, *row] for label, row in zip(labels, numbers, strict=True))
            else:
                rows = zip(batch.names, labels, numbers, strict=True)
                writer.writerows([name, label, *row] for name, label, row in rows)


def _write_parquet(
    path: Path, batches: Iterator[Predictions], classes: Sequence[str], named: bool
) -> None:
    import pyarrow
    import pyarrow.parquet

    text, number = pyarrow.string(), pyarrow.float32()
    header = _header(classes, named)
    kinds = [text] * (len(header) - len(classes)) + [number] * len(classes)
    schema = pyarrow.schema(list(zip(header, kinds, strict=True)))
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _joined(batches, _ROW_GROUP):
            columns: list[Any] = [] if batch.names is None else [list(batch.names)]
            columns += [[classes[label] for label in batch.labels], *batch.probabilities.T]
            arrays = [
                pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _write_npz(
    path: Path, batches: Iterator[Predictions], classes: Sequence[str], named: bool
) -> None:
    (batch,) = _joined(batches, None)
    arrays: dict[str, NDArray[Any]] = {
        "labels": np.array(classes)[batch.labels],
        "probabilities": batch.probabilities,
        "classes": np.array(classes),
    }
    if batch.names is not None:
        arrays["files"] = np.array(batch.names)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _joined(batches: Iterator[Predictions], rows: int | None) -> Iterator[Predictions]:
    """Batches of at least `rows` rows (the last may have fewer); a single one for None."""
    held: list[Predictions] = []
    for batch in batches:
        held.append(batch)
        if rows is not None and sum(len(part.labels) for part in held) >= rows:
            yield _join(held)
            held = []
    if held:
        yield _join(held)


def _join(parts: list[Predictions]) -> Predictions:
    named = parts[0].names is not None
    return Predictions(
        np.concatenate([part.probabilities for part in parts]),
        np.concatenate([part.labels for part in parts]),
        [name for part in parts for name in part.names or ()] if named else None,
    )


_WRITERS: dict[str, Callable[[Path, Iterator[Predictions], Sequence[str], bool], None]] = {
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
    "": _write_csv,
}
"""By the file's ending."""
