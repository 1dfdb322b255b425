"""What a person said of training labels, as `audit.html` saves it or a plain sheet holds it.

`corrections.csv` has the columns file, row, label, mark, correct and content: where a row is, its
given label, `wrong`, `right` or `drop`, for a wrong one its right label, and a fingerprint of what
the row holds. Corrections are applied after a simulated shift, because what was checked are the
labels as they were trained on. The same marks are verified rows: pairs of given and right label.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import torch

from diw.data.encoding import plain_name
from diw.data.split import Split
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
        dropped: How many rows of the file are marked to be dropped, and so verify nothing.
    """

    places: Ints
    given: Ints
    right: Ints
    dropped: int = 0


def read_verified(
    path: str | Path,
    keys: Sequence[Key],
    targets: npt.ArrayLike,
    classes: Sequence[str],
    contents: Contents | None = None,
) -> Verified:
    """The verified rows in a file: marks of the page (`wrong` or `right`), or a plain sheet.

    A sheet has a column `right` (the right label; empty where a row was not checked), `row`
    (counted from 0) or `file` or both, and if it likes `label`, the given label.

    Args:
        path: The CSV file.
        keys: (n,) file and row of each training row.
        targets: (n,) given labels as class numbers.
        classes: Names by class number.
        contents: Fingerprints of training rows, to be compared with those in the file.
    """
    marks = _read(Path(path), "verified")
    place_of, given = _finder(keys), np.asarray(targets, np.int64)
    placed: dict[int, Correction] = {}
    right: dict[int, int] = {}
    for key, one in marks.items():
        where = f"verified: line {one.line} of {path}: {_named(key) or 'a row without a number'}"
        place = place_of(key)
        if place is None:
            named = _named(keys[0])
            raise UsageError(f"{where} is not in the training data; rows are named like {named}")
        now = classes[int(given[place])]
        if one.label and plain_name(one.label) != plain_name(now):
            was = _short(one.label)
            raise UsageError(f"{where}: its label is {now!r}, and was {was} when checked")
        before = placed.setdefault(place, one)
        if one.right is not None:
            right[place] = _class_number(one.right, classes, where)
        if before.right != one.right:
            lines = f"lines {before.line} and {one.line} of {path}"
            raise UsageError(f"verified: {lines} disagree about {_named(key)}; keep one of them")
    _check_contents("verified", keys, placed, contents)
    places = np.array(sorted(right), np.int64)
    labels = np.array([right[place] for place in places.tolist()], np.int64)
    return Verified(places, given[places], labels, len(placed) - len(right))


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
        label, right = row.get("label", ""), row.get("right" if plain else "correct", "")
        mark = "wrong" if plain else row["mark"].lower()
        if mark not in MARKS or (mark == "wrong") != bool(right):
            raise UsageError(
                f"line {line} of {path}: the mark is wrong (with the right label in correct), "
                f"right or drop, not {_short(mark)} with {_short(right)}"
            )
        if right and plain_name(right) == plain_name(label):
            mark, right = "right", ""
        content = row.get("content", "")
        one = Correction(label, mark, right, content, line)
        key = row.get("file", ""), plain_name(row.get("row", ""))
        before = found.setdefault(key, one)
        if (before.mark, before.right, before.label) != (one.mark, one.right, one.label):
            raise UsageError(
                f"lines {before.line} and {line} of {path} disagree about {_named(key)}; "
                "keep one of them"
            )
    return found


def corrected(
    split: Split,
    keys: Sequence[Key],
    corrections: Mapping[Key, Correction],
    contents: Contents | None = None,
) -> tuple[Split, str]:
    """The split with corrected labels and without dropped rows, and what changed in words.

    Args:
        split: The data of a run.
        keys: (n,) file and row of each training row.
        corrections: From `read_corrections`.
        contents: Fingerprints of training rows, to be compared with those of the corrections.
    """
    train = split.train
    targets = train.targets.clone()
    trusted = set(split.trusted_index.tolist())
    keep = torch.ones(len(targets), dtype=torch.bool)
    changes: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    place_of = _finder(keys)
    marked = {place_of(key): one for key, one in corrections.items()}
    marked = {place: one for place, one in marked.items() if place is not None}
    if not marked:
        raise UsageError(
            f"corrections: none of their rows is in the training data; rows there are named like "
            f"{', '.join(filter(None, keys[0]))}"
        )
    _check_contents("corrections", keys, marked, contents)
    for place, one in marked.items():
        where = f"corrections: {_named(keys[place])}"
        given = train.classes[int(targets[place])]
        if place in trusted:
            raise UsageError(f"{where}: is a trusted row; correct it in its file")
        if plain_name(given) != plain_name(one.label):
            was = _short(one.label)
            raise UsageError(f"{where}: its label is {given!r}, and was {was} when checked")
        if one.mark == "wrong":
            targets[place] = _class_number(one.correct, train.classes, where)
            changes[given, one.correct] += 1
        keep[place] = one.mark != "drop"
        counts[one.mark] += 1
    words = _in_words(counts, changes, len(corrections) - sum(counts.values()))
    return _rebuilt(split, targets, keep, words), words


def _finder(keys: Sequence[Key]) -> Callable[[Key], int | None]:
    """Where a row stands, by its file and number; None if it is not there.

    A file is also known by the end of its path where that is enough to tell it: the data may have
    been named from another folder when they were checked. Without a file it is that of the data.
    """
    exact = {_normal(key): place for place, key in enumerate(keys)}
    ends = Counter(map(_end, keys))
    by_end = {end: place for place, key in enumerate(keys) if ends[end := _end(key)] == 1}

    def find(key: Key) -> int | None:
        key = (key[0] or keys[0][0], key[1])
        return exact.get(_normal(key), by_end.get(_end(key)))

    return find


def _normal(key: Key) -> Key:
    return os.path.normpath(key[0].replace("\\", "/")), key[1]


def _end(key: Key) -> Key:
    """The name of a table, or folder and name of an image, and the row."""
    parts = PurePosixPath(_normal(key)[0]).parts
    return "/".join(parts[-1:] if key[1] else parts[-2:]), key[1]


def _check_contents(
    what: str, keys: Sequence[Key], marked: Mapping[int, Correction], contents: Contents | None
) -> None:
    """Refuse marks of rows that hold something else than what was checked."""
    known = [place for place, one in marked.items() if one.content]
    if contents is None or not known:
        return
    for place, now in zip(known, contents(known), strict=True):
        if now and now != marked[place].content:
            raise UsageError(
                f"{what}: {_named(keys[place])}: holds something else than the row that was "
                "checked; were rows added, removed or sorted since? Audit the data again"
            )


def _class_number(name: str, classes: Sequence[str], where: str) -> int:
    """The number of a class; of a name that is none, the nearest class is suggested."""
    plain = [plain_name(one) for one in classes]
    if plain_name(name) in plain:
        return plain.index(plain_name(name))
    near = get_close_matches(name[:100], classes, 1)
    names = ", ".join(map(_short, classes[:5])) + (", …" if len(classes) > 5 else "")
    hint = f"is {near[0]!r} meant?" if near else f"classes are {names}"
    raise UsageError(f"{where}: {_short(name)} is not a class; {hint}")


def _named(key: Key) -> str:
    return ", ".join([*filter(None, key[:1]), *(f"row {row}" for row in filter(None, key[1:]))])


def _short(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")


def _rebuilt(split: Split, targets: torch.Tensor, keep: torch.Tensor, words: str) -> Split:
    places = torch.nonzero(keep).flatten()
    later = keep.long().cumsum(0) - 1  # where a kept row stands now

    def kept(values: torch.Tensor | None) -> torch.Tensor | None:
        return None if values is None else values[places]

    true = kept(split.true_labels)
    train = replace(split.train, targets=targets).subset(places)
    return replace(
        split,
        train=train,
        true_labels=true,
        flipped=None if true is None else train.targets != true,
        true_weights=kept(split.true_weights),
        trusted_index=later[split.trusted_index],
        rows=split.rows[places],
        facts={**split.facts, "corrections": words},
    )


def _in_words(counts: Counter[str], changes: Counter[tuple[str, str]], missing: int) -> str:
    """`12 labels changed (7 coat → shirt, …), 3 rows dropped, 40 confirmed`."""
    pairs = [f"{n} {a} → {b}" for (a, b), n in changes.most_common(5)]
    more = ", …" if len(changes) > 5 else ""
    detail = f" ({', '.join(pairs)}{more})" if pairs else ""
    text = (
        f"{counts['wrong']} labels changed{detail}, {counts['drop']} rows dropped, "
        f"{counts['right']} confirmed"
    )
    return text + (f"; {missing} are not training rows of this run" if missing else "")
