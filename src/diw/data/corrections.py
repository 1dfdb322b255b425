"""Corrections of training labels, as `audit.html` saves them, applied to the rows of a run.

`corrections.csv` has the columns file, row, label, mark and correct: where a row is, its given
label, `wrong`, `right` or `drop`, and for a wrong one its right label. They are applied after a
simulated shift, because what was checked are the labels as they were trained on.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from diw.data.split import Split
from diw.errors import UsageError

COLUMNS = ("file", "row", "label", "mark", "correct")
MARKS = ("wrong", "right", "drop")

Key = tuple[str, str]
"""File and row; the row is empty for an image."""


@dataclass(frozen=True)
class Correction:
    """What a person said of one row: its given label, the mark, and the right label if wrong."""

    label: str
    mark: str
    correct: str


def read_corrections(path: str | Path) -> dict[Key, Correction]:
    """The corrections in a file, by row."""
    found: dict[Key, Correction] = {}
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            lacking = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if lacking:
                raise UsageError(
                    f"corrections: {path} has no column {lacking[0]!r}; save it from audit.html"
                )
            for number, row in enumerate(table):
                one = Correction(row["label"] or "", row["mark"] or "", row["correct"] or "")
                if one.mark not in MARKS or (one.mark == "wrong") != bool(one.correct):
                    raise UsageError(
                        f"corrections: row {number} of {path}: the mark is wrong (with the right "
                        f"label in correct), right or drop, not {one.mark!r} with {one.correct!r}"
                    )
                found[row["file"] or "", row["row"] or ""] = one
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"corrections: {path}: {reason}") from None
    if not found:
        raise UsageError(f"corrections: {path} marks no row")
    return found


def corrected(
    split: Split, keys: Sequence[Key], corrections: Mapping[Key, Correction]
) -> tuple[Split, str]:
    """The split with corrected labels and without dropped rows, and what changed in words.

    Args:
        split: The data of a run.
        keys: (n,) file and row of each training row.
        corrections: From `read_corrections`.
    """
    train, number = split.train, {name: k for k, name in enumerate(split.train.classes)}
    targets = train.targets.clone()
    trusted = set(split.trusted_places.tolist())
    keep = torch.ones(len(targets), dtype=torch.bool)
    changes: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    for place, key in enumerate(keys):
        one = corrections.get(key)
        if one is None:
            continue
        where = f"corrections: {key[0]}{f', row {key[1]}' if key[1] else ''}"
        given = train.classes[int(targets[place])]
        if place in trusted:
            raise UsageError(f"{where}: is a trusted row; correct it in its file")
        if given != one.label:
            raise UsageError(f"{where}: its label is {given!r}, and was {one.label!r} when checked")
        if one.mark == "wrong" and one.correct not in number:
            raise UsageError(f"{where}: {one.correct!r} is not a class")
        if one.mark == "wrong":
            targets[place] = number[one.correct]
            changes[given, one.correct] += 1
        keep[place] = one.mark != "drop"
        counts[one.mark] += 1
    if not counts:
        raise UsageError(
            f"corrections: none of their rows is in the training data; rows there are named like "
            f"{', '.join(filter(None, keys[0]))}"
        )
    words = _in_words(counts, changes, len(corrections) - sum(counts.values()))
    return _rebuilt(split, targets, keep, words), words


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
