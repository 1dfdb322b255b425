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

import torch

from diw.data.encoding import plain_name
from diw.data.split import Split
from diw.data.tables import open_csv
from diw.errors import DIWWarning, UsageError

COLUMNS = ("file", "row", "label", "mark", "correct")
MARKS = ("wrong", "right", "drop")

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


def read_corrections(path: str | Path, what: str = "corrections") -> dict[Key, Correction]:
    """The corrections in a file, by row; two that disagree about a row are refused.

    Args:
        path: A file saved by the page, or by a spreadsheet since (semicolons, a mark of UTF-8,
            empty cells and lines at the end).
        what: The argument that named it, for messages.
    """
    try:
        return _read(Path(path), what)
    except UsageError as error:
        text = str(error)
        raise UsageError(text if text.startswith(what) else f"{what}: {text}") from None


def _read(path: Path, what: str) -> dict[Key, Correction]:
    found: dict[Key, Correction] = {}
    with open_csv(path) as file:
        names = file.names
        lacking = [name for name in COLUMNS if name not in names]
        if lacking:
            raise UsageError(f"{path} has no column {lacking[0]!r}; save it from audit.html")
        for line, cells in file.lines:
            row = dict(zip(names, cells, strict=True))
            values = (row["label"], row["mark"].lower(), row["correct"], row.get("content", ""))
            one = Correction(*values, line)
            if one.mark not in MARKS or (one.mark == "wrong") != bool(one.correct):
                raise UsageError(
                    f"line {line} of {path}: the mark is wrong (with the right label in correct), "
                    f"right or drop, not {_short(one.mark)} with {_short(one.correct)}"
                )
            if one.correct == one.label:
                one = replace(one, mark="right", correct="")
            key = row["file"], plain_name(row["row"])
            before = found.setdefault(key, one)
            if (before.mark, before.right, before.label) != (one.mark, one.right, one.label):
                raise UsageError(
                    f"lines {before.line} and {line} of {path} disagree about {_named(key)}; "
                    "keep one of them"
                )
    if not found:
        raise UsageError(f"{path} marks no row")
    if "content" not in names:
        warnings.warn(
            f"{what}: {path} has no column 'content', by which rows are known again: if rows were "
            "added or removed since, audit the data again",
            DIWWarning,
            stacklevel=4,
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
    trusted = set(split.trusted_places.tolist())
    keep = torch.ones(len(targets), dtype=torch.bool)
    changes: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    marked = _placed(keys, corrections)
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
        if given != one.label:
            was = _short(one.label)
            raise UsageError(f"{where}: its label is {given!r}, and was {was} when checked")
        if one.mark == "wrong":
            targets[place] = _class_number(one.correct, train.classes, where)
            changes[given, one.correct] += 1
        keep[place] = one.mark != "drop"
        counts[one.mark] += 1
    words = _in_words(counts, changes, len(corrections) - sum(counts.values()))
    return _rebuilt(split, targets, keep, words), words


def _placed(keys: Sequence[Key], marks: Mapping[Key, Correction]) -> dict[int, Correction]:
    """The marks by the place of their row.

    A file is also known by the end of its path where that is enough to tell it: the data may have
    been named from another folder when they were checked.
    """
    exact = {_normal(key): place for place, key in enumerate(keys)}
    ends = Counter(map(_end, keys))
    by_end = {end: place for place, key in enumerate(keys) if ends[end := _end(key)] == 1}
    placed: dict[int, Correction] = {}
    for key, one in marks.items():
        place = exact.get(_normal(key), by_end.get(_end(key)))
        if place is not None:
            placed[place] = one
    return placed


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
    if name in classes:
        return classes.index(name)
    near = get_close_matches(name[:100], classes, 1)
    hint = f"; is {near[0]!r} meant?" if near else ""
    raise UsageError(f"{where}: {_short(name)} is not a class{hint}")


def _named(key: Key) -> str:
    return ", row ".join(filter(None, key))


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
        trusted_places=later[split.trusted_places],
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
