"""Rows that somebody has looked at: the file that `audit.html` saves, or a plain sheet.

`corrections.csv` has the columns file, row, label, mark, correct and content: where a row is, its
given label, `wrong`, `right` or `drop`, for a wrong one its right label, and a fingerprint of what
the row holds. `diw.data.corrections` applies them. The same marks, or a sheet with row and right,
are verified rows: pairs of given and right label. No torch is needed to read them.
"""

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from diw.data.encoding import plain_name
from diw.data.tables import CsvFile, open_csv
from diw.errors import DIWWarning, UsageError

COLUMNS = ("file", "row", "label", "mark", "correct")
MARKS = ("wrong", "right", "drop")

Ints = npt.NDArray[np.int64]

Key = tuple[str, str]
"""File and row; the row is empty for an image."""

Contents = Callable[[Sequence[int]], Sequence[str]]
"""Fingerprints (m,) of the training rows at m places; empty where there is none."""


@dataclass(frozen=True)
class Correction:
    """What a person said of one row.

    Attributes:
        label: Its given label; empty in a sheet without.
        mark: `wrong`, `right` or `drop`.
        correct: The right label if the mark is `wrong`.
        content: A fingerprint of the row, see `diw.data.read.fingerprints`; empty if not known.
        line: Where that is in the file.
    """

    label: str
    mark: str
    correct: str
    content: str = ""
    line: int = 0
    drawn: float = 0.0
    """The probability with which the row was drawn; 0 where it was picked, NaN if not known."""

    @property
    def right(self) -> str | None:
        """The right label; None of a row to drop."""
        return {"wrong": self.correct, "right": self.label}.get(self.mark)


def read_corrections(path: str | Path) -> dict[Key, Correction]:
    """The corrections in a file, by row; two that disagree about a row are refused.

    The file is as the page saved it, or as a spreadsheet did since (semicolons, a mark of UTF-8,
    empty cells and lines at the end).
    """
    return _read(Path(path), "corrections")


@dataclass(frozen=True)
class Verified:
    """Rows of the training data whose right labels somebody knows: pairs of given and right label.

    Attributes:
        places: (m,) where the rows stand in the training data, ascending.
        given: (m,) their given labels, as class numbers.
        right: (m,) their right labels.
        drawn: (m,) the probability with which each row was drawn, 0 where it was picked, as the
            marks of an audit's page are; None where they were drawn at random, all alike.
        dropped: How many rows of the file are marked to be dropped, and so verify nothing.
    """

    places: Ints
    given: Ints
    right: Ints
    drawn: npt.NDArray[np.float64] | None = None
    dropped: int = 0

    def only(self, kept: npt.NDArray[np.bool_]) -> "Verified":
        """Those of the rows, a mask (m,)."""
        drawn = None if self.drawn is None else self.drawn[kept]
        places, given, right = self.places[kept], self.given[kept], self.right[kept]
        return Verified(places, given, right, drawn, self.dropped)


def read_verified(
    verified: str | Path | Mapping[Any, Any],
    keys: Sequence[Key],
    targets: npt.ArrayLike,
    classes: Sequence[str],
    contents: Contents | None = None,
) -> Verified:
    """The verified rows in a file: marks of the page (`wrong` or `right`), or a plain sheet.

    A sheet has a column `right` (the right label; empty where a row was not checked), `row`
    (counted from 0) or `file` or both, and if it likes `given` (the given label, then compared) and
    `drawn` (the probability with which the row was drawn).

    Args:
        verified: The CSV file, or a mapping from row number or image to right label.
        keys: (n,) file and row of each training row.
        targets: (n,) given labels as class numbers.
        classes: Names by class number.
        contents: Fingerprints of training rows, to be compared with those in the file.
    """
    mapped = isinstance(verified, Mapping)
    marks = _of_mapping(verified) if mapped else _read(Path(verified), "verified")
    place_of, given = finder(keys), np.asarray(targets, np.int64)
    placed: dict[int, Correction] = {}
    right: dict[int, int] = {}
    for key, one in marks.items():
        line = "" if mapped else f"line {one.line} of {verified}: "
        where = f"verified: {line}{named(key) or 'a row without a number'}"
        place = place_of(key)
        if place is None:
            there = f"which have {len(keys):,} rows, named like {named(keys[0])}"
            raise UsageError(f"{where} is not in the training data, {there}")
        check_label(one, classes[int(given[place])], where)
        before = placed.setdefault(place, one)
        if one.right is not None:
            right[place] = class_number(one.right, classes, where)
        if before.right != one.right:
            lines = "two" if mapped else f"lines {before.line} and {one.line} of {verified}"
            raise UsageError(f"verified: {lines} disagree about {named(key)}; keep one of them")
    check_contents("verified", keys, placed, contents)
    places = np.array(sorted(right), np.int64)
    labels = np.array([right[place] for place in places.tolist()], np.int64)
    drawn = np.array([placed[place].drawn for place in places.tolist()])
    known = None if np.isnan(drawn).any() else drawn
    return Verified(places, given[places], labels, known, len(placed) - len(right))


def _of_mapping(verified: Mapping[Any, Any]) -> dict[Key, Correction]:
    """Marks of rows by number, or of images by name."""
    found: dict[Key, Correction] = {}
    for row, label in verified.items():
        key = (row, "") if isinstance(row, str) else ("", str(row))
        if label is None or label != label:
            raise UsageError(f"verified: {named(key)} has no label; leave such rows out")
        found[key] = Correction("", "wrong", plain_name(str(label)), drawn=math.nan)
    if not found:
        raise UsageError("verified: holds no row; give some, or leave it out")
    return found


def _read(path: Path, what: str) -> dict[Key, Correction]:
    try:
        with open_csv(path) as file:
            found = _marks(file, path, what)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    if not found:
        raise UsageError(f"{what}: {path} marks no row")
    if "mark" in file.names and "content" not in file.names:
        warnings.warn(
            f"{what}: {path} has no column 'content', by which rows are known again: if rows were "
            "added or removed since, audit the data again",
            DIWWarning,
            stacklevel=4,
        )
    return found


def _marks(file: CsvFile, path: Path, what: str) -> dict[Key, Correction]:
    """The marks in a file, by row."""
    plain = what == "verified" and "mark" not in file.names
    needed = ("right",) if plain else COLUMNS
    lacking = [name for name in needed if name not in file.names]
    if lacking or not {"row", "file"} & set(file.names):
        lacks = (lacking or ["row"])[0]
        hint = "save it from audit.html" + (", or give row and right" if plain else "")
        raise UsageError(f"{path} has no column {lacks!r}; {hint}")
    found: dict[Key, Correction] = {}
    for line, cells in file.lines:
        row = dict(zip(file.names, cells, strict=True))
        if plain and not row["right"]:
            continue
        label = row.get("label", "") or row.get("given", "")
        right = row.get("right" if plain else "correct", "")
        mark = "wrong" if plain else row["mark"].lower()
        if mark not in MARKS or (mark == "wrong") != bool(right):
            raise UsageError(
                f"line {line} of {path}: the mark is wrong (with the right label in correct), "
                f"right or drop, not {short(mark)} with {short(right)}"
            )
        if right and plain_name(right) == plain_name(label):
            mark, right = "right", ""
        drawn = _probability(row.get("drawn", ""), f"line {line} of {path}") if plain else 0.0
        one = Correction(label, mark, right, row.get("content", ""), line, drawn)
        key = row.get("file", ""), plain_name(row.get("row", ""))
        before = found.setdefault(key, one)
        if (before.mark, before.right, before.label) != (one.mark, one.right, one.label):
            raise UsageError(
                f"lines {before.line} and {line} of {path} disagree about {named(key)}; "
                "keep one of them"
            )
    return found


def _probability(text: str, where: str) -> float:
    try:
        value = float(text.replace(",", ".") or "nan")  # as spreadsheets write it in many countries
    except ValueError:
        value = -1.0
    if value <= 0 or value > 1:
        raise UsageError(f"{where}: drawn is {short(text)}, which is no probability")
    return value


def finder(keys: Sequence[Key]) -> Callable[[Key], int | None]:
    """Where a row stands, by its file and number; None if it is not there.

    A file is also known by the end of its path where that is enough to tell it: the data may have
    been named from another folder when they were checked. Without a file it is that of the data.
    """
    exact = {(_normal(file), row): place for place, (file, row) in enumerate(keys)}
    ends = Counter(map(_end, keys))
    by_end = {end: place for place, key in enumerate(keys) if ends[end := _end(key)] == 1}

    def find(key: Key) -> int | None:
        key = (key[0] or keys[0][0], key[1])
        return exact.get((_normal(key[0]), key[1]), by_end.get(_end(key)))

    return find


@lru_cache(maxsize=1 << 16)
def _normal(file: str) -> str:
    return os.path.normpath(file.replace("\\", "/"))


@lru_cache(maxsize=1 << 16)
def _last(file: str, parts: int) -> str:
    return "/".join(PurePosixPath(_normal(file)).parts[-parts:])


def _end(key: Key) -> Key:
    """The name of a table, or folder and name of an image, and the row."""
    return _last(key[0], 1 if key[1] else 2), key[1]


def check_label(one: Correction, now: str, where: str) -> None:
    """Refuse a mark of a row whose given label is another one now."""
    if one.label and plain_name(one.label) != plain_name(now):
        was = short(one.label)
        raise UsageError(f"{where}: its label is {now!r}, and was {was} when checked")


def check_contents(
    what: str, keys: Sequence[Key], marked: Mapping[int, Correction], contents: Contents | None
) -> None:
    """Refuse marks of rows that hold something else than what was checked."""
    known = [place for place, one in marked.items() if one.content]
    if contents is None or not known:
        return
    for place, now in zip(known, contents(known), strict=True):
        if now and now != marked[place].content:
            raise UsageError(
                f"{what}: {named(keys[place])}: holds something else than the row that was "
                "checked; were rows added, removed or sorted since? Audit the data again"
            )


def class_number(name: str, classes: Sequence[str], where: str) -> int:
    """The number of a class; of a name that is none, the nearest class is suggested."""
    plain = [plain_name(one) for one in classes]
    if plain_name(name) in plain:
        return plain.index(plain_name(name))
    near = get_close_matches(name[:100], classes, 1)
    names = ", ".join(map(short, classes[:5])) + (", …" if len(classes) > 5 else "")
    hint = f"is {near[0]!r} meant?" if near else f"classes are {names}"
    raise UsageError(f"{where}: {short(name)} is not a class; {hint}")


def named(key: Key) -> str:
    """A row in words: its file and number."""
    return ", ".join([*filter(None, key[:1]), *(f"row {row}" for row in filter(None, key[1:]))])


def short(text: str, most: int = 60) -> str:
    """A text of a user's in quotes, cut where it is long."""
    return repr(text if len(text) <= most else text[:most] + "…")
