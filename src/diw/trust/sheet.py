"""The sheet that a person fills in, and reading it back as any spreadsheet has saved it.

A sheet has a line for each row that was drawn: where it is, `right` for its right label, `note` for
what cannot be said by a label, what the row holds, the probability with which it was drawn, and a
fingerprint by which it is known again. The page saves the same without what the row holds.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from diw.auditing.samples import Samples
from diw.data.encoding import plain_name
from diw.data.tables import open_csv
from diw.errors import UsageError
from diw.files import plain_text
from diw.trust.draw import Draw
from diw.trust.tools import Row, read_tool

SHEET, CHECKED = "check.csv", "verified.csv"
FIRST, LAST = ("file", "row", "right", "note"), ("drawn", "content")
RESERVED = {*FIRST, *LAST, "label", "given", "mark", "correct"}
"""Columns that mean something to who reads the sheet; those of the data are named differently."""
UNSURE, CANNOT, DROP = ("unsure", "cannot tell", "drop")
TRANSLATED = {"wahr": "true", "falsch": "false", "vrai": "true", "faux": "false"}
"""What spreadsheets make of words that they take for truth values."""

Numbered = Callable[[str], int | None]
"""The number of a class by its name as somebody wrote it."""


@dataclass(frozen=True)
class Answer:
    """What somebody said of a row.

    Attributes:
        right: The number of its right class; None if that cannot be said.
        note: `unsure`, `cannot tell`, `drop` or nothing.
        line: Where that is in the sheet.
    """

    right: int | None
    note: str
    line: int


Answers = Mapping[int, Answer]
"""By the place of the row among those that were drawn."""


def write_sheet(
    draw: Draw, start: int, shown: Samples, drawn: Sequence[float], *, show_given: bool = False
) -> str:
    """The text of a sheet to fill in, safe from being taken for formulas.

    Args:
        draw: What was drawn.
        start: The first of the rows that are in the sheet; those before were in another one.
        shown: What all drawn rows hold.
        drawn: (m,) the probabilities of all rows that were drawn.
        show_given: Whether the given label is in the sheet.
    """
    names = [f"{name} (data)" if name in RESERVED else name for name in shown.columns]
    given = ["label"] * show_given
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\r\n")
    table.writerow([plain_text(name) for name in [*FIRST, *given, *names, *LAST]])
    for place in range(start, len(draw.rows)):
        file, row = draw.places[place]
        cells = [] if shown.cells is None else shown.cells[place]
        label = [draw.classes[draw.given[place]]] * show_given
        line = [file, "" if row is None else str(row), "", "", *label, *cells]
        line += [f"{drawn[place]:.6g}", draw.contents[place]]
        table.writerow([plain_text(cell) for cell in line])
    return "\ufeff" + out.getvalue()


def write_verified(draw: Draw, answers: Answers, drawn: Sequence[float]) -> str:
    """The text of `verified.csv`: rows with their given and right label, for all verbs."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["file", "row", "label", "right", "note", "drawn", "content"])
    for place, one in sorted(answers.items()):
        file, row = draw.places[place]
        right = "" if one.right is None else draw.classes[one.right]
        given, chance = draw.classes[draw.given[place]], f"{drawn[place]:.6g}"
        where = [file, "" if row is None else row]
        table.writerow([*where, given, right, one.note, chance, draw.contents[place]])
    return out.getvalue()


def read_sheets(paths: Sequence[Path], draw: Draw) -> dict[str, Answers]:
    """The answers of each sheet by its name, and of each person where a tool names several.

    Args:
        paths: Sheets, or files of a tool: see `read_tool`.
        draw: What was drawn.
    """
    found: dict[str, Answers] = {}
    for path in paths:
        if path.suffix.lower() not in (".json", ".jsonl"):
            found[str(path)] = read_sheet(path, draw)
            continue
        people = read_tool(path)
        for person, rows in people.items():
            name = str(path) if len(people) == 1 else f"{path} ({person})"
            found[name] = _answers(rows, path, draw)
    return found


def read_sheet(path: Path, draw: Draw) -> Answers:
    """The answers in a sheet, by the place of the row among those that were drawn.

    Args:
        path: As the page saved it, or as a spreadsheet did: with semicolons, columns and lines in
            any order, lines missing.
        draw: What was drawn.
    """
    with open_csv(path) as file:
        lacking = {"right"} - set(file.names)
        if lacking or not {"file", "row", "content"} & set(file.names):
            lacks = "right" if lacking else "row"
            raise UsageError(f"{path}: has no column {lacks!r}; is it a sheet of diw trust draw?")
        rows = ((line, dict(zip(file.names, cells, strict=True))) for line, cells in file.lines)
        return _answers(rows, path, draw)


def _answers(rows: Iterable[tuple[int, Row]], path: Path, draw: Draw) -> Answers:
    find, numbered = _finder(draw), _numbered(draw.classes)
    found: dict[int, Answer] = {}
    empty, strangers = 0, list[str]()
    for line, row in rows:
        where = f"{path}: line {line}"
        place = find(row)
        if place is None:
            strangers.append(_stranger(where, row, draw))
            continue
        label = row.get("label", "")
        given = draw.classes[draw.given[place]]
        if label and numbered(label) != draw.given[place]:
            raise UsageError(f"{where}: its label is {given!r} in the data, and {label!r} here")
        said = row.get("right", ""), row.get("note", "")
        right, note = _answer(*said, numbered, draw.classes, where)
        if right is None and note not in (CANNOT, DROP):
            empty += 1
            continue
        one = Answer(right, note, line)
        before = found.setdefault(place, one)
        if (before.right, before.note) != (one.right, one.note):
            raise UsageError(
                f"{path}: lines {before.line} and {line} say different things of the same row; "
                "keep one of them"
            )
    if strangers and not found and not empty:
        raise UsageError(f"{path}: is a sheet of other data: no row of it was drawn here")
    if strangers:
        raise UsageError(strangers[0])
    if not found:
        raise UsageError(f"{path}: no row is checked yet: fill in the column 'right'")
    return found


def _stranger(where: str, row: Mapping[str, str], draw: Draw) -> str:
    """That a line is not of a row that was drawn."""
    name = ", ".join(filter(None, [row.get("file", ""), f"row {row['row']}" * ("row" in row)]))
    return f"{where}: {name or 'this row'} was not drawn from {draw.source}, or has changed since"


def _finder(draw: Draw) -> Callable[[Mapping[str, str]], int | None]:
    """Where a line's row stands among those drawn: by its fingerprint, and among equals by name."""
    counts = Counter(draw.contents)
    by_content = {content: place for place, content in enumerate(draw.contents)}
    by_name = {
        (_end(file) if row is None else str(row)): place
        for place, (file, row) in enumerate(draw.places)
    }

    def find(row: Mapping[str, str]) -> int | None:
        content = row.get("content", "")
        number = plain_name(row.get("row", ""))
        named = by_name.get(number or _end(row.get("file", "")))
        if not content:
            return named
        if named is not None and draw.contents[named] == content:
            return named
        return by_content.get(content) if counts[content] == 1 else None

    return find


def _end(file: str) -> str:
    """Folder and name of an image: the data may have been named from another folder."""
    return "/".join(file.replace("\\", "/").split("/")[-2:])


def _numbered(classes: Sequence[str]) -> Numbered:
    """The numbers of classes by name, also as spreadsheets write them: TRUE, 01 as 1."""

    def forms(name: str) -> list[str]:
        plain = plain_name(name.strip().removeprefix("'"))
        folded = TRANSLATED.get(plain.casefold(), plain.casefold())
        try:
            return [plain, folded, f"{float(folded.replace(',', '.')):g}"]
        except ValueError:
            return [plain, folded]

    known: list[dict[str, int | None]] = [{}, {}, {}]
    for number, name in enumerate(classes):
        for level, form in enumerate(forms(name)):
            known[level][form] = None if form in known[level] else number

    def numbered(name: str) -> int | None:
        if name in classes:
            return classes.index(name)
        found = (level.get(form) for level, form in zip(known, forms(name), strict=False))
        return next((number for number in found if number is not None), None)

    return numbered


def _answer(
    right: str, note: str, numbered: Numbered, classes: Sequence[str], where: str
) -> tuple[int | None, str]:
    """The right class and the note of a line; what no class is called is refused."""
    note = note.casefold()
    number = numbered(right) if right else None
    if right and number is None:
        said = right.casefold()
        if said in (CANNOT, "?", DROP):
            return None, DROP if said == DROP else CANNOT
        near = get_close_matches(right[:100], classes, 1)
        names = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
        hint = f"is {near[0]!r} meant?" if near else f"classes are {names}"
        raise UsageError(f"{where}: {right[:60]!r} is not a class; {hint}")
    if note in (CANNOT, DROP):
        return None, note
    return number, UNSURE if note == UNSURE else ""
