"""Numbers as people and spreadsheets write them: 1234.5, 1,234.5, 1.234,5, 1 234,5, 1'234.5.

A comma or a point is a decimal mark or separates thousands. Most numbers show which: 0,5 and 1234,5
have decimal commas, and 1,234,567 and 12,34,567 (as in India) have thousands. Of 1,234 alone nobody
can tell.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from diw.data.tables import Cells, TableFile
from diw.errors import UsageError

Mark = Literal[".", ","]
"""A decimal mark."""

Shown = Literal["", ".", ",", "?.", "?,"]
"""What a number shows of its decimal mark: nothing, one, or a mark that may separate thousands."""

UNITS = "$€£¥₹%"
"""Signs that all numbers of a column may begin or end with."""

SAMPLE = 1000
"""Cells of a column that are looked at for the decimal mark of a table."""

_NUMBER = re.compile(r"[+-]?(\d[\d.,' ]*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)
_OTHER: dict[str, Mark] = {".": ",", ",": "."}
_SAME = str.maketrans("−’\u00a0\u202f\u2009", "-'   ")


def numbers_of(table: TableFile, name: str) -> NDArray[np.float64] | None:
    """(n,) numbers, NaN where missing; None when a cell is neither a number nor missing.

    Whether a comma or a point is the decimal mark is decided by the column, where its numbers show
    it, else by the other columns, else by the delimiter of the file. A column of which neither
    tells is refused.
    """
    cells = table.columns[name]
    if not isinstance(cells, list):
        return cells
    try:
        values = np.array([np.nan if word is None else float(word) for word in cells], np.float64)
    except ValueError:
        values = None
    if values is not None and not any(word and "_" in word for word in cells):
        if table.delimiter != ";" and _decimal_mark(table) != ",":
            return values
        if "." in (found := shown_marks(cells)) or "?." not in found:
            return values
    words = without_unit(cells)
    shown = shown_marks(words)
    if None in shown or {".", ","} <= shown or {"?.", "?,"} <= shown:
        return None
    return as_floats(words, _mark_of(table, name, words, shown))


def _mark_of(
    table: TableFile, name: str, words: Sequence[str | None], shown: set[Shown | None]
) -> Mark:
    """The decimal mark of a column that shows `shown`."""
    if "." in shown or shown <= {""}:
        return "."
    if "," in shown:
        return ","
    elsewhere = _decimal_mark(table)
    if elsewhere is not None:
        return elsewhere
    # Next to commas between cells, a comma within one separates thousands.
    if table.delimiter == "," or (table.delimiter == "\t" and "?." in shown):
        return "."
    row = next(row for row, word in enumerate(words) if word and shown_mark(word))
    plain = re.sub("[.,]", "", words[row] or "")
    raise UsageError(
        f"{table.source}: column {name!r}: {words[row]} in row {row} may be {plain} or a number "
        f"with three decimals; write {plain}, or one decimal more ({words[row]}0)"
    )


def _decimal_mark(table: TableFile) -> Mark | None:
    """The decimal mark that columns of the table show, if they agree."""
    if "mark" not in table.facts:
        marks: set[Any] = set()
        for cells in table.columns.values():
            if isinstance(cells, list):
                shown = shown_marks(without_unit(cells[:SAMPLE]))
                marks |= set() if None in shown else shown & {".", ","}
        table.facts["mark"] = marks.pop() if len(marks) == 1 else None
    return table.facts["mark"]


def words_of(cells: Cells) -> list[str | None]:
    """The column as words; whole numbers of a typed file without a point."""
    if isinstance(cells, list):
        return cells
    return [
        None if np.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
        for value in cells.tolist()
    ]


def usual(word: str) -> str:
    """The number with plain blanks, apostrophe and minus in front: 5-, (5) and −5 are -5."""
    word = word.translate(_SAME)
    if word.endswith("-") and word[0] not in "+-(":
        return "-" + word[:-1].rstrip()
    if word.startswith("(") and word.endswith(")"):
        return "-" + word[1:-1].strip()
    return word


def shown_mark(word: str) -> Shown | None:
    """What a cell shows of the decimal mark of its column; None if it is no number."""
    found = _NUMBER.fullmatch(usual(word))
    if found is None:
        return None
    body, exponent = found[1], found[2]
    marks = re.findall(r"[.,' ]", body)
    if not marks:
        return ""
    parts = re.split(r"[.,' ]", body)
    last, before = marks[-1], set(marks[:-1])
    if last in "' " or last in before:
        if before - {last} or not _grouped(parts):
            return None
        return "" if last in "' " else _OTHER[last]
    if before:
        return last if len(before) == 1 and _grouped(parts[:-1]) else None
    thousands = len(parts[1]) == 3 and 1 <= len(parts[0]) <= 3 and parts[0][0] != "0"
    if thousands and not exponent:
        return "?." if last == "." else "?,"
    return "." if last == "." else ","


def _grouped(parts: Sequence[str]) -> bool:
    """Whether digits stand in groups of three, or of two before the last three."""
    first, *middle, last = parts
    three = 1 <= len(first) <= 3 and all(len(part) == 3 for part in middle)
    two = 1 <= len(first) <= 2 and all(len(part) == 2 for part in middle)
    return len(last) == 3 and (three or two) and first[0] != "0"


def shown_marks(words: Iterable[str | None]) -> set[Shown | None]:
    """What the cells of a column show, up to the first that is no number; a missing one nothing."""
    found: set[Shown | None] = set()
    for word in set(words) - {None}:
        found.add(shown_mark(word or ""))
        if None in found:
            break
    return found


def without_unit(words: Sequence[str | None]) -> Sequence[str | None]:
    """The column without a sign that all of its numbers begin or end with, such as €."""
    first = next((word for word in words if word), "")
    for unit in {first[:1], first[-1:]} & set(UNITS):
        front = first.startswith(unit)
        if all(word is None or (word[:1] if front else word[-1:]) == unit for word in words):
            cut = slice(1, None) if front else slice(None, -1)
            return [None if word is None else word[cut].strip() for word in words]
    return words


def as_floats(words: Sequence[str | None], decimal: Mark) -> NDArray[np.float64]:
    """(n,) the numbers of a column with this decimal mark, NaN where a cell is missing."""
    drop = str.maketrans({_OTHER[decimal]: None, "'": None, " ": None, decimal: "."})
    return np.array(
        [np.nan if word is None else float(usual(word).translate(drop)) for word in words],
        np.float64,
    )
