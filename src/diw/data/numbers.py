"""Numbers as people and spreadsheets write them: 1234.5, 1,234.5, 1.234,5, 1 234,5, 1'234.5.

A comma or a point is a decimal mark or separates thousands. Most numbers show which: 0,5 and 1234,5
have decimal commas, and 1,234,567 and 12,34,567 (as in India) have thousands. Of 1,234 alone nobody
can tell.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Mark = Literal[".", ","]
"""A decimal mark."""

Shown = Literal["", ".", ",", "?.", "?,"]
"""What a number shows of its decimal mark: nothing, one, or a mark that may separate thousands."""

UNITS = "$€£¥₹%"
"""Signs that all numbers of a column may begin or end with."""

_NUMBER = re.compile(r"[+-]?(\d[\d.,' ]*|[.,]\d+)(e[+-]?\d+)?", re.IGNORECASE)
_OTHER: dict[str, Mark] = {".": ",", ",": "."}
_SAME = str.maketrans("−’\u00a0\u202f\u2009", "-'   ")


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
