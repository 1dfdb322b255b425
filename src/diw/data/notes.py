"""Notes for the user on how files were read; on the screen, one line per file."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
