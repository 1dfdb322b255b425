"""What every report is made of: tables in each format, and the frame of an HTML page.

A terminal, plain text, Markdown, CSV and HTML are made from the same `Table`. A page is one file
that needs no network; its Content-Security-Policy allows none.
"""

import csv
import io
import json
import os
import sys
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TextIO

from diw._version import __version__

if TYPE_CHECKING:
    import rich.table

_DATA = {
    "embedded": "Fashion-MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "cifar-100": "CIFAR-100",
}

EMPTY = "–"
"""Shown where there is no number."""


@dataclass(frozen=True)
class Column:
    """A heading: `title` for readers, `key` for programs (CSV)."""

    key: str
    title: str
    align: Literal["left", "right"] = "right"


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
    link: str | None = None
    """Where the text leads to, in HTML."""
    shade: str = ""
    """Classes of the cell in HTML, for its colour."""


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, a caption above and notes below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()


Entry = tuple[Column, Cell]
"""A cell with its column, as `make_table` takes it."""


def make_table(
    rows: Iterable[Sequence[Entry]], caption: str = "", notes: Iterable[str] = ()
) -> Table:
    """A table of rows whose cells come with their columns: the same ones in every row."""
    listed = list(rows)
    columns = tuple(column for column, _ in listed[0])
    cells = tuple(tuple(cell for _, cell in row) for row in listed)
    return Table(columns, cells, caption, tuple(notes))


def text_cell(text: str) -> Cell:
    """A cell of words."""
    return Cell(text, text)


def number_cell(
    mean: float | None,
    std: float | None = None,
    *,
    scale: float = 1.0,
    digits: int = 2,
    strong: bool = False,
    show_spread: bool = True,
) -> Cell:
    """A cell `mean ± std` over trials, or a dash where there is no number.

    The shown numbers are multiplied by `scale` (100 for per cent); with `show_spread` off
    the deviation is kept, but not shown.
    """
    if mean is None:
        return Cell(EMPTY)
    text = f"{scale * mean:,.{digits}f}"
    if std is not None and show_spread:
        text += f" ± {scale * std:.{digits}f}"
    return Cell(text, mean, std, strong)


def difference_cell(difference: float | None, interval: tuple[float, float] | None) -> Cell:
    """`−2.3 [−4.1, −0.5]`, in points: a difference of two fractions and its 95% interval."""
    if difference is None or interval is None:
        return Cell(EMPTY)
    centre, low, high = (signed(100 * value, 1) for value in (difference, *interval))
    return Cell(f"{centre} [{low}, {high}]", difference)


def text_entry(key: str, title: str, text: str) -> Entry:
    """Words in a column that is aligned to the left."""
    return Column(key, title, "left"), text_cell(text)


def number_entry(
    key: str, title: str, mean: float | None, std: float | None = None, **options: Any
) -> Entry:
    """A number in its column; `options` are those of `number_cell`."""
    return Column(key, title), number_cell(mean, std, **options)


def count_entry(key: str, title: str, number: int) -> Entry:
    """A whole number in its column."""
    return Column(key, title), Cell(f"{number:,}", number)


def signed(value: float, digits: int) -> str:
    """A number with its sign, which is a real minus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def is_interactive(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that understands control codes."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(table: Table, stream: TextIO | None = None) -> None:
    """Print a table: styled in an interactive terminal, plain lines anywhere else."""
    out = stream or sys.stdout
    if is_interactive(out):
        from rich.console import Console

        console = Console(file=out)
        console.print(to_rich(table))
        for note in table.notes:
            console.print(note, style="dim", highlight=False, markup=False)
    else:
        out.write(to_plain(table))


def to_rich(table: Table) -> "rich.table.Table":
    """For a terminal, without the notes."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    styled = RichTable(
        title=Text(table.caption, style="bold") if table.caption else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for column in table.columns:
        styled.add_column(Text(column.title), justify=column.align)
    for row in table.rows:
        styled.add_row(*(Text(cell.text, style="bold" if cell.strong else "") for cell in row))
    return styled


def to_plain(table: Table) -> str:
    """Aligned columns without control codes; an asterisk stands for bold."""
    starred = [any(row[place].strong for row in table.rows) for place in _places(table)]
    lines = [[column.title for column in table.columns]]
    for row in table.rows:
        # Where one number of a column has an asterisk, the others keep its place free.
        stars = [(" *" if c.strong else "  ") * s for c, s in zip(row, starred, strict=True)]
        lines.append([cell.text + star for cell, star in zip(row, stars, strict=True)])
    widths = [max(len(line[place]) for line in lines) for place in _places(table)]
    aligned = [
        "  ".join(
            text.ljust(width) if column.align == "left" else text.rjust(width)
            for text, width, column in zip(line, widths, table.columns, strict=True)
        ).rstrip()
        for line in lines
    ]
    rule = "  ".join("-" * width for width in widths)
    parts = [table.caption, ""] if table.caption else []
    parts += [aligned[0], rule, *aligned[1:]]
    parts += ["", *table.notes] if table.notes else []
    return "\n".join(parts) + "\n"


def to_markdown(table: Table) -> str:
    """A pipe table with its caption above and its notes below."""

    def line(texts: list[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    head = line([column.title for column in table.columns])
    rule = "|" + "|".join("---" if c.align == "left" else "---:" for c in table.columns) + "|"
    body = [line([f"**{c.text}**" if c.strong else c.text for c in row]) for row in table.rows]
    parts = [table.caption, ""] if table.caption else []
    parts += [head, rule, *body]
    for note in table.notes:
        parts += ["", note]
    return "\n".join(parts) + "\n"


def to_csv(table: Table) -> str:
    """Keys as the header and full precision; `KEY_std` follows where trials have a spread."""
    spreads = [any(row[p].spread is not None for row in table.rows) for p in _places(table)]
    marks = any(cell.strong for row in table.rows for cell in row)
    header: list[str] = []
    for column, spread in zip(table.columns, spreads, strict=True):
        header += [column.key, f"{column.key}_std"] if spread else [column.key]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, "marked"] if marks else header)
    for row in table.rows:
        values: list[str | float | None] = []
        for cell, spread in zip(row, spreads, strict=True):
            values += [cell.value, cell.spread] if spread else [cell.value]
        if marks:
            named = zip(table.columns, row, strict=True)
            values.append(" ".join(column.key for column, cell in named if cell.strong))
        writer.writerow(values)
    return out.getvalue()


def to_html(table: Table) -> str:
    """A real table with scopes for screen readers; every text escaped."""
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(
        f'<th scope="col" class="{column.align}">{escape(column.title)}</th>'
        for column in table.columns
    )
    body = "\n".join(f"<tr>{_html_row(table, row)}</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="scroll" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>{notes}"
    )


def _html_row(table: Table, row: tuple[Cell, ...]) -> str:
    cells: list[str] = []
    for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
        tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
        text = f"<strong>{escape(cell.text)}</strong>" if cell.strong else escape(cell.text)
        if cell.link is not None:
            text = f'<a href="{escape(cell.link, quote=True)}">{text}</a>'
        kind = f"{column.align} {cell.shade}".strip()
        cells.append(f'<{tag}{scope} class="{kind}">{text}</{tag}>')
    return "".join(cells)


def _places(table: Table) -> range:
    return range(len(table.columns))


def count(number: int, thing: str) -> str:
    """`2 seeds`, `1 seed`, `10,000 samples`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def data_title(data: str) -> str:
    """A data set as readers know it; a path as it is."""
    return _DATA.get(data, data)


def inline_policy(scripts: Sequence[str], img: str = "data: blob:") -> str:
    """A Content-Security-Policy: these scripts may run, and nothing may be loaded.

    Whatever a spec or a file name has smuggled in is text.
    """
    hashes = " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src {img}; "
        "base-uri 'none'; form-action 'none'"
    )


def html_page(
    title: str,
    *,
    policy: str,
    header: str,
    body: str,
    style: str = "",
    scripts: str = "",
    made_from: str = "run records alone",
) -> str:
    """A page of HTML in the style of all reports.

    Args:
        title: As text; the other parts are markup.
        policy: What the page may load and run (Content-Security-Policy).
        header: The head of the page, with its h1.
        body: What follows.
        style: CSS after that of all pages.
        scripts: After everything else.
        made_from: What the page holds, for its last line.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>{asset("diw", "pages.css")}{style}</style>
</head>
<body>
<main>
<header>
{header}
</header>
{body}
<footer>Made by diw {escape(__version__)} from {escape(made_from)}.</footer>
</main>
{scripts}</body>
</html>
"""


def script_json(content: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asset(package: str, name: str) -> str:
    """A file of text beside a package's modules: its style or its script."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
