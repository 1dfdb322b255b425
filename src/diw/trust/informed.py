"""How probably each given label is wrong, so that rows are drawn whose check tells most.

From a finished run or from a table of probabilities, and from the rows that were checked before:
the label model of `diw.labels` says it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from diw.auditing.given import check_probabilities
from diw.auditing.table import PREFIX
from diw.data.numbers import words_of
from diw.data.tables import read_csv, read_parquet
from diw.errors import UsageError
from diw.files import read_archive
from diw.labels import Evidence, fit
from diw.labels.transitions import TINY, Floats, Ints
from diw.runs import Run
from diw.trust.items import Items

SOME = 50
"""Rows by which it is seen that a run was trained on the same data."""
Checked = Mapping[int, int]
"""Right class by row, of rows that were checked before."""


def wrong_labels(source: Run | Path, items: Items, checked: Checked) -> Floats:
    """(n,) the probability that each given label is wrong.

    Args:
        source: A finished run on these data; or a table with a column `p_CLASS` for each class and
            a row for each of the data, as `diw predict` writes it, or an `.npz` with the arrays
            `probabilities` and `classes`.
        items: The rows to draw from.
        checked: What is known of them.
    """
    if isinstance(source, Path):
        return _by_probabilities(source, items, checked)
    return _by_run(source, items, checked)


def _by_run(run: Run, items: Items, checked: Checked) -> Floats:
    """By the audit of a run; rows that it did not train on get the mean of the others."""
    from diw.auditing.run import audit_run

    named = {
        _end(file, row): place for place, (file, row) in enumerate(items.places(range(len(items))))
    }
    places = run.source.places
    ends = (named.get(_end(one.file, one.row)) for one in places)
    met = {place: row for place, row in enumerate(ends) if row is not None}
    some = list(met.items())[:SOME]
    same = run.source.contents([place for place, _ in some])
    if not some or same != items.contents([row for _, row in some]):
        raise UsageError(f"from: {run.folder} was not trained on rows of {items.source}")
    known: dict[Any, str] = {}
    for place, row in met.items():
        one = places[place]
        if row in checked and not one.trusted:
            known[one.file if one.row is None else one.row] = items.classes[checked[row]]
    found = audit_run(run, known or None)
    said = found.score if found.model is None else 1 - found.weight
    wrong = np.full(len(items), np.nan)
    for place, row in met.items():
        if not found.trusted[place]:
            wrong[row] = said[place]
    return np.where(np.isnan(wrong), np.nanmean(wrong), wrong)


def _by_probabilities(path: Path, items: Items, checked: Checked) -> Floats:
    columns = _columns(path)
    names = [name if name in columns else PREFIX + name for name in items.classes]
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise UsageError(f"probabilities: {path} has no column {lacking[0]!r}")
    values = np.column_stack([columns[name] for name in names])
    try:
        log_p = np.log(np.maximum(check_probabilities(values, len(items)), TINY))
    except UsageError as error:
        raise UsageError(f"{error} ({path})") from None
    rows = np.array(sorted(checked), np.int64)
    right = np.array([checked[row] for row in rows.tolist()], np.int64)
    some = (rows, right) if len(rows) else (None, None)
    model = fit(Evidence(log_p, items.given, *some), share=False)
    posterior = model.posterior(log_p, items.given)
    return 1 - posterior[np.arange(len(items)), items.given]


def worth(wrong: Floats, chance: Floats, rows: Ints) -> float:
    """How many rows drawn at random would tell as much of the share of wrong labels.

    By the expected variance of its estimate, if the probabilities are right.

    Args:
        wrong: (n,) the probability that each label is wrong.
        chance: (m,) with which the drawn rows were drawn.
        rows: (m,) the drawn rows.
    """
    p, some = float(wrong.mean()), wrong[rows]
    squares = some * (1 - p) ** 2 + (1 - some) * p**2
    # Each drawn row stands for 1/chance rows, each of which adds its square / chance.
    variance = float((squares / chance**2).sum()) / len(wrong) ** 2
    return p * (1 - p) / max(variance, TINY)


def _columns(path: Path) -> dict[str, Any]:
    """Columns of numbers by name."""
    if not path.is_file():
        raise UsageError(f"probabilities: there is no file {path}")
    if path.suffix.lower() == ".npz":
        arrays = read_archive(path)
        if not {"probabilities", "classes"} <= arrays.keys():
            raise UsageError(f"probabilities: {path} needs the arrays probabilities and classes")
        classes, values = map(str, arrays["classes"].tolist()), arrays["probabilities"].T
        return dict(zip(classes, values, strict=False))
    parquet = path.suffix.lower() in (".parquet", ".pq")
    table = read_parquet(path) if parquet else read_csv(path)
    return {name: np.array(words_of(cells), object) for name, cells in table.columns.items()}


def _end(file: str, row: int | None) -> str:
    """The number of a row, or folder and name of an image, from whatever folder it is named."""
    return "/".join(file.replace("\\", "/").split("/")[-2:]) if row is None else str(row)
