"""What the user should know: notes on how files were read, and checks before training.

Checked are rows in two parts (leaks), classes without rows, and small classes. A note is one line
per file on the screen.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import torch

from diw.errors import UsageError

if TYPE_CHECKING:
    from diw.data.dataset import Dataset

_CHUNK = 1 << 20
"""Numbers read at a time while rows are compared."""

MOST = 1 << 29
"""Numbers (rows times their size) beyond which rows are not compared: a pass would take minutes."""

NAMED = 3
"""Columns that a line on the screen names; of more it gives the number."""


@dataclass(frozen=True)
class Note:
    """One thing that the user should know about the data.

    Attributes:
        source: The file; empty for what concerns several.
        text: In full.
        column: The column it is about, if it is about one.
        kind: What several columns of a file may have in common, for one line on all of them.
    """

    source: str
    text: str
    column: str | None = None
    kind: str = ""

    def __str__(self) -> str:
        about = [self.source] if self.source else []
        about += [] if self.column is None else [f"column {self.column!r}"]
        return ": ".join([*about, self.text])


def brief(notes: Iterable[Note]) -> list[str]:
    """One line per file, and one for each note that concerns several files."""
    by_source: dict[str, list[Note]] = {}
    lines: list[str] = []
    for note in dict.fromkeys(notes):
        if note.source:
            by_source.setdefault(note.source, []).append(note)
        else:
            lines.append(str(note))
    return [_line(source, about) for source, about in by_source.items()] + lines


def _line(source: str, notes: list[Note]) -> str:
    if len(notes) == 1:
        return str(notes[0])
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(note.kind or note.text, []).append(note)
    return f"{source}: " + "; ".join(_together(kind, about) for kind, about in kinds.items())


def _together(kind: str, notes: list[Note]) -> str:
    if len(notes) == 1:
        return str(replace(notes[0], source=""))
    names = [repr(note.column) for note in notes]
    shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return f"{kind} in {len(names)} columns ({shown})"


def check_parts(
    train: "Dataset",
    trusted: "Dataset | None",
    test: "Dataset | None",
    *,
    allow_leaks: bool = False,
) -> tuple[Note, ...]:
    """Notes for the user about classes and leaks in trusted and test rows from files of their own.

    Test rows that are also in the training or trusted data are refused unless `allow_leaks`.
    """
    texts = [*_class_notes(train, trusted), *_leak_notes(train, trusted, test, allow_leaks)]
    return tuple(Note("", text) for text in texts)


def _class_notes(train: "Dataset", trusted: "Dataset | None") -> list[str]:
    notes: list[str] = []
    counts = train.class_counts
    if trusted is not None:
        for having, lacking, words in (
            (trusted.class_counts, counts, "trusted data but not in the training data"),
            (counts, trusted.class_counts, "training data but not in the trusted data"),
        ):
            names = [train.classes[c] for c in torch.nonzero((having > 0) & (lacking == 0)).ravel()]
            if names:
                notes.append(f"classes in the {words}: {_first(names)}")
    few = [
        f"{name} ({int(count)})"
        for name, count in zip(train.classes, counts, strict=True)
        if 0 < count < 10
    ]
    if few:
        notes.append(f"classes with fewer than 10 training rows: {_first(few)}")
    return notes


def _first(names: list[str], most: int = 10) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _leak_notes(
    train: "Dataset", trusted: "Dataset | None", test: "Dataset | None", allow_leaks: bool
) -> list[str]:
    """Rows that appear in two parts; inputs are compared, labels are not."""
    if trusted is None and test is None:
        return []
    given = (("training", train), ("trusted", trusted), ("test", test))
    parts = {name: part for name, part in given if part is not None}
    if sum(len(part) * _size(part) for part in parts.values()) > MOST:
        return ["the data are too large to look for rows that appear in two parts"]
    rows = {name: _digests(part) for name, part in parts.items()}
    notes: list[str] = []
    if trusted is not None:
        shared = _shared(rows["trusted"], rows["training"])
        if shared:
            notes.append(
                f"{shared} of {len(trusted)} trusted rows are also in the training data; with "
                "both trained on, they count twice"
            )
            if test is None:
                notes.append(
                    "leak: trusted rows that are held out to be scored may be among these, seen in "
                    "training; remove them from the training data or give a test set"
                )
    for other in ("training", "trusted"):
        if test is None or other not in rows:
            continue
        shared = _shared(rows["test"], rows[other])
        if shared and not allow_leaks:
            raise UsageError(
                f"test: {shared} of {len(test)} test rows are also in the {other} data, so the "
                "score would be too good; remove them or allow leaks"
            )
        if shared:
            notes.append(f"leak: {shared} of {len(test)} test rows are also in the {other} data")
    return notes


def _size(part: "Dataset") -> int:
    return max(1, prod(part.shape))


def _digests(part: "Dataset") -> list[bytes]:
    """One short digest per row, read in chunks."""
    digests: list[bytes] = []
    step = max(1, _CHUNK // _size(part))
    for start in range(0, len(part), step):
        rows = part.inputs.take(torch.arange(start, min(start + step, len(part))))
        # Adding zero makes -0.0 and 0.0 the same bytes.
        flat = (rows.flatten(1) + 0.0).contiguous().numpy()
        digests += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in flat]
    return digests


def _shared(some: list[bytes], others: list[bytes]) -> int:
    known = set(others)
    return sum(digest in known for digest in some)
