"""Training and trusted rows as plain vectors, side by side, as a diagnosis looks at them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.given import check_kinds, check_labels
from diw.data.marks import Verified
from diw.errors import UsageError
from diw.labels.transitions import Bools, Floats, Ints
from diw.seeding import numpy_generator

if TYPE_CHECKING:
    from diw.data import Dataset

FEWEST = 5
"""Rows of a kind below which nothing can be said."""
MOST_ROWS = 10_000
"""Training rows that are looked at; more would not change an estimate by much."""
MOST_TRUSTED = 5000
MOST_NUMBERS = 4096
"""Numbers per row; larger images are averaged in squares first."""


@dataclass(frozen=True)
class Pooled:
    """Training rows and, after them, trusted ones, as they are looked at.

    Attributes:
        vectors: (n + m, d)
        labels: (n + m,)
        trusted: m.
        classes: Names by class number.
        columns: Whether they are rows of a table, whose columns have units of their own.
        pairs: (p, 2) training rows and trusted ones that are the same row; None where that is not
            known, and has to be found.
        drawn: (p,) the probability with which each pair was drawn, see `diw.data.Verified`.
    """

    vectors: Floats
    labels: Ints
    trusted: int
    classes: tuple[str, ...]
    columns: bool
    pairs: Ints | None = None
    drawn: Floats | None = None

    @property
    def train(self) -> int:
        """The number of training rows, n."""
        return len(self.labels) - self.trusted

    def without(self, rows: Bools) -> "Pooled":
        """What is left without some training rows, a mask (n,)."""
        kept = np.concatenate([~rows, np.ones(self.trusted, bool)])
        return replace(self, vectors=self.vectors[kept], labels=self.labels[kept])


def pooled_data(train: "Dataset", trusted: "Dataset | Verified", seed: int) -> Pooled:
    """At most 10,000 rows of the one data set and 5,000 of the other, or verified ones of it."""
    pairs = drawn = None
    ours = some_rows(np.arange(len(train)), seed)
    if isinstance(trusted, Verified):
        check_sizes(len(train) - len(trusted.places), len(trusted.places))
        chosen = some_rows(np.arange(len(trusted.places)), seed, MOST_TRUSTED)
        theirs, known = trusted.places[chosen], trusted.right[chosen]
        ours = np.union1d(ours, theirs)
        pairs = np.stack([np.searchsorted(ours, theirs), len(ours) + np.arange(len(theirs))], 1)
        drawn = None if trusted.drawn is None else trusted.drawn[chosen]
        others = as_vectors(train, theirs)
    else:
        check_sizes(len(train), len(trusted))
        theirs = some_rows(np.arange(len(trusted)), seed, MOST_TRUSTED)
        others, known = as_vectors(trusted, theirs), trusted.targets.numpy()[theirs]
    vectors = np.concatenate([as_vectors(train, ours), others])
    labels = np.concatenate([train.targets.numpy()[ours], known])
    columns = len(train.shape) == 1
    return Pooled(vectors, labels, len(theirs), train.classes, columns, pairs, drawn)


def pooled_arrays(
    X: ArrayLike, y: ArrayLike, X_trusted: ArrayLike, y_trusted: ArrayLike, seed: int
) -> Pooled:
    """The same of arrays; arguments as for `diw.diagnose`."""
    given, given_trusted = check_labels("y", y), check_labels("y_trusted", y_trusted, part=True)
    check_kinds(("y", given), ("y_trusted", given_trusted))
    names, numbers = np.unique(np.concatenate([given, given_trusted]), return_inverse=True)
    rows, rows_trusted = (
        _rows("X", X, len(given)),
        _rows("X_trusted", X_trusted, len(given_trusted)),
    )
    if rows.shape[1:] != rows_trusted.shape[1:]:
        raise UsageError(
            f"X_trusted: rows of shape {rows_trusted.shape[1:]}, those of X have {rows.shape[1:]}"
        )
    n, m = len(rows), len(rows_trusted)
    check_sizes(n, m)
    ours, theirs = some_rows(np.arange(n), seed), some_rows(np.arange(m), seed, MOST_TRUSTED)
    vectors = np.concatenate(
        [_vectors("X", rows[ours]), _vectors("X_trusted", rows_trusted[theirs])]
    )
    labels = numbers[np.concatenate([ours, n + theirs])].astype(np.int64)
    classes = tuple(map(str, names.tolist()))
    return Pooled(vectors, labels, len(theirs), classes, rows.ndim == 2)


def check_sizes(train: int, trusted: int) -> None:
    """Refuse too few rows to say anything."""
    if min(train, trusted) < FEWEST:
        raise UsageError(
            f"trusted: {train} training and {trusted} trusted samples; at least {FEWEST} "
            "of each are needed, apart from each other"
        )


def overlap(rows: Pooled) -> tuple[Bools, Ints]:
    """(n,) which training rows are trusted ones, too; (p, 2) pairs of places of the same row.

    A classifier that was fitted on a row's twin knows its label, so trusted labels would fit
    better than they should. Where values are few, rows coincide by chance, as often with each
    other as with trusted ones: then all of them stay. Pairs are of rows that occur once in each.
    """
    if rows.pairs is not None:
        return np.isin(np.arange(rows.train), rows.pairs[:, 0]), rows.pairs
    keys = np.array([hash((row + 0.0).tobytes()) for row in rows.vectors])
    ours, theirs = keys[: rows.train], keys[rows.train :]
    again = np.isin(ours, theirs)
    found = float(np.isin(theirs, ours).mean())
    _, number, counts = np.unique(ours, return_inverse=True, return_counts=True)
    chance = float((counts[number] > 1).mean())
    if not found - chance > 3 * np.sqrt(chance * (1 - chance) / rows.trusted):
        return np.zeros(len(ours), bool), np.empty((0, 2), np.int64)
    place = {int(key): at for at, key in enumerate(ours.tolist()) if counts[number[at]] == 1}
    pairs = [(place[key], at) for at, key in enumerate(theirs.tolist(), rows.train) if key in place]
    return again, np.array(pairs, np.int64).reshape(-1, 2)


def as_vectors(data: "Dataset", rows: Ints) -> Floats:
    """These rows (n,) of a data set as plain vectors (n, d)."""
    import torch

    pieces = [
        _flat(data.inputs.take(torch.from_numpy(rows[start : start + 512])).double().numpy())
        for start in range(0, len(rows), 512)
    ]
    return np.concatenate(pieces)


def some_rows(rows: Ints, seed: int, most: int = MOST_ROWS) -> Ints:
    """At most `most` of these rows, drawn at random, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(numpy_generator(seed, "rows to look at").permutation(rows)[:most])


def _rows(name: str, inputs: ArrayLike, n: int) -> NDArray[Any]:
    values = np.asarray(inputs)
    if values.ndim < 2 or values.dtype.kind not in "biuf":
        try:
            values = np.asarray(inputs, np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
    if values.ndim < 2:
        raise UsageError(
            f"{name}: expected rows of numbers (n, …); turn words into numbers first, and a sparse "
            "matrix into main components"
        )
    if len(values) != n:
        raise UsageError(f"{name}: has {len(values):,} rows for {n:,} labels")
    return values


def _vectors(name: str, rows: NDArray[Any]) -> Floats:
    """(b, d) in float64: time stamps and identifiers lose their differences in less."""
    values = np.asarray(rows, np.float64)
    if not np.isfinite(values).all():
        raise UsageError(f"{name}: holds NaN or infinite values; replace them first")
    return _flat(values)


def _flat(values: Floats) -> Floats:
    """(b, d) of any inputs; the squares of an image over which it is averaged are as small as fits.

    Averaging keeps what tells classes apart in most images, and costs little.
    """
    while values.ndim == 4 and values[0].size > MOST_NUMBERS and min(values.shape[2:]) >= 2:
        rows, channels, height, width = values.shape
        even = values[:, :, : height // 2 * 2, : width // 2 * 2]
        values = even.reshape(rows, channels, height // 2, 2, width // 2, 2).mean((3, 5))
    return values.reshape(len(values), -1)
