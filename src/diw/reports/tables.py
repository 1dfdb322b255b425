"""One table, told once: what a cell holds, apart from how any format shows it.

`formats.py` renders it for a terminal, a pipe, Markdown, LaTeX, CSV and HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Align = Literal["left", "right"]

EMPTY = "–"


@dataclass(frozen=True)
class Column:
    """A heading: `title` for readers, `key` for programs (CSV)."""

    key: str
    title: str
    align: Align = "right"


@dataclass(frozen=True)
class Cell:
    """A value as shown, and as it is."""

    text: str
    value: str | float | None = None
    """Full precision, for CSV."""
    spread: float | None = None
    """The standard deviation over trials, where there is one."""
    strong: bool = False
    """Best or comparable: bold where a format can, an asterisk where it cannot."""


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, a caption above and notes below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"rows: {len(row)} cells for {len(self.columns)} columns")


def text_cell(text: str) -> Cell:
    """A cell of words."""
    return Cell(text, text)


def number_cell(
    mean: float | None,
    std: float | None = None,
    *,
    scale: float = 1.0,
    digits: int = 2,
    unit: str = "",
    strong: bool = False,
    show_spread: bool = True,
) -> Cell:
    """A cell `mean ± std`, or a dash where there is no number.

    Args:
        mean: The value as it is.
        std: Its standard deviation over trials, or None.
        scale: What the shown numbers are multiplied by (100 for per cent).
        digits: Decimals shown.
        unit: Put after the number.
        strong: See `Cell.strong`.
        show_spread: Whether the deviation is shown, not only kept.
    """
    if mean is None:
        return Cell(EMPTY)
    text = f"{scale * mean:,.{digits}f}"
    if std is not None and show_spread:
        text += f" ± {scale * std:.{digits}f}"
    return Cell(text + unit, mean, std, strong)


def column_values(table: Table, key: str) -> Sequence[Cell]:
    """The cells under one heading, top to bottom."""
    place = [column.key for column in table.columns].index(key)
    return [row[place] for row in table.rows]
