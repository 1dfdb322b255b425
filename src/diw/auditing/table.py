"""An audit of a file of probabilities: CSV, Parquet, or `.npz` with named arrays; without torch."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diw.auditing.audits import judge
from diw.auditing.given import check_labels, check_probabilities, class_name, class_numbers
from diw.auditing.result import Audit
from diw.auditing.samples import MOST_COLUMNS, Origin, Samples
from diw.data.marks import read_verified
from diw.data.tables import Cells, TableFile, read_csv, read_parquet
from diw.errors import UsageError
from diw.files import read_archive
from diw.labels import Evidence
from diw.labels.transitions import TINY, Floats, Ints

PREFIX = "p_"
"""Before the names of classes in the columns that `diw predict` writes."""


class Row(NamedTuple):
    """A row of a file."""

    file: str
    row: int | None


@dataclass(frozen=True)
class Predictions:
    """Probabilities as a file holds them, with given labels and what else it says of each row."""

    source: Path
    probabilities: Floats
    classes: tuple[str, ...]
    labels: NDArray[Any]
    others: dict[str, Cells]
    files: list[str] | None

    def places(self) -> list[Row]:
        """Where each row is from: the file that a column `file` names, or this one."""
        if self.files is not None:
            return [Row(name, None) for name in self.files]
        return [Row(str(self.source), row) for row in range(len(self.labels))]

    def show(self, places: Ints) -> Samples:
        """The other columns of some rows."""
        names = list(self.others)[:MOST_COLUMNS]
        columns = [self.others[name] for name in names]
        cells = [[_word(column[int(row)]) for column in columns] for row in places]
        return Samples(None, names, cells)


def audit_file(
    path: Path, label: str, verified: Path | None = None, *, text_encoding: str | None = None
) -> Audit:
    """The audit of a file of probabilities.

    Args:
        path: The file: a table with a column of probabilities for each class, `p_NAME` or `NAME`,
            or an `.npz` with the arrays `probabilities` and `classes`.
        label: The column, or array, of the given labels.
        verified: A file of verified rows, see `read_verified`.
        text_encoding: Of CSV files that are not UTF-8.
    """
    try:
        found = read_predictions(path, label, text_encoding)
        given = class_numbers(f"column {label!r}", found.labels, found.classes)
    except UsageError as error:
        raise _naming(path, error) from None
    if len(np.unique(given)) < 2:
        raise UsageError(f"{path}: all labels are {found.labels[0]!r}; at least two are needed")
    places = found.places()
    log_p = np.log(np.maximum(found.probabilities, TINY))
    evidence = Evidence(log_p, given)
    if verified is not None:
        keys = [(one.file, "" if one.row is None else str(one.row)) for one in places]
        known = read_verified(verified, keys, given, found.classes)
        evidence = Evidence(log_p, given, known.places, known.right, drawn=known.drawn)
    key = hashlib.sha256(log_p.tobytes() + given.tobytes()).hexdigest()[:16]
    origin = Origin(str(path), key, found.show, lambda places: [""] * len(places))
    return judge(evidence, found.classes, places=places, origin=origin)


def read_predictions(path: Path, label: str, text_encoding: str | None = None) -> Predictions:
    """What a file says: probabilities by class, given labels, and the rest."""
    if not path.is_file():
        raise UsageError(f"probabilities: there is no file {path}")
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, label)
    parquet = path.suffix.lower() in (".parquet", ".pq")
    table = read_parquet(path) if parquet else read_csv(path, text_encoding)
    if label not in table.columns:
        raise UsageError(f"label: no column {label!r}; columns are {', '.join(table.columns)}")
    labels = check_labels(f"column {label!r}", _labels(table.columns[label]))
    columns = _class_columns(table, label, labels)
    values = np.column_stack([_numbers(name, table.columns[name]) for name in columns.values()])
    others = {
        name: cells
        for name, cells in table.columns.items()
        if name != label and name not in columns.values()
    }
    files = [str(name) for name in others["file"]] if "file" in others else None
    probabilities = check_probabilities(values, table.rows)
    return Predictions(path, probabilities, tuple(columns), labels, others, files)


def _from_arrays(path: Path, label: str) -> Predictions:
    arrays = read_archive(path)
    lacking = [name for name in ("probabilities", label) if name not in arrays]
    if lacking:
        raise UsageError(f"no array {lacking[0]!r}; arrays are {', '.join(arrays)}")
    labels = check_labels(f"array {label!r}", arrays[label])
    probabilities = check_probabilities(arrays["probabilities"], len(labels))
    k = probabilities.shape[1]
    if "classes" in arrays:
        classes = tuple(map(class_name, arrays["classes"].tolist()))
    elif labels.dtype.kind in "iu":
        classes = tuple(map(str, range(k)))
    else:
        raise UsageError("no array 'classes', which names the columns of probabilities")
    if len(classes) != k:
        raise UsageError(f"'classes' names {len(classes)} columns, probabilities has {k}")
    files = list(map(str, arrays["files"].tolist())) if "files" in arrays else None
    return Predictions(path, probabilities, classes, labels, {}, files)


def _class_columns(table: TableFile, label: str, labels: NDArray[Any]) -> dict[str, str]:
    """The column of each class: those with `p_` before the name, or those named like labels."""
    prefixed = {name[len(PREFIX) :]: name for name in table.columns if name.startswith(PREFIX)}
    if prefixed:
        return prefixed
    names = {class_name(value) for value in np.unique(labels).tolist()}
    named = {name: name for name in table.columns if name in names and name != label}
    if len(named) < 2:
        raise UsageError(
            "no columns of probabilities: name them like the classes, or p_CLASS, as diw predict "
            "does"
        )
    return named


def _labels(cells: Cells) -> list[Any]:
    """A column of labels; whole numbers of a typed file without a point."""
    values = cells if isinstance(cells, list) else cells.tolist()
    return [class_name(value) if value == value else value for value in values]


def _numbers(name: str, cells: Cells) -> Floats:
    try:
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    except ValueError:
        row = next(place for place, cell in enumerate(cells) if not _is_number(cell))
        raise UsageError(f"column {name!r}, row {row}: {cells[row]!r} is no number") from None


def _is_number(cell: Any) -> bool:
    try:
        float(0.0 if cell is None else cell)
    except ValueError:
        return False
    return True


def _word(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return "" if cell is None or cell != cell else f"{cell:.6g}"


def _naming(path: Path, error: UsageError) -> UsageError:
    text = str(error)
    named = str(path) in text or text.startswith("label: ")
    return error if named else UsageError(f"{path}: {text}")
