"""A closer look at one run: accuracy per class, confusion matrix, the most suspicious labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from diw.reports.comparison import Comparison
from diw.reports.table import Cell, Column, make_table, number_cell, text_cell, to_html
from diw.runs import Run

MANY = 20
"""Classes up to which the confusion matrix is shown."""
CONTROLS = ("clean", "random", "truth")
"""Methods whose training says nothing of the labels."""


@dataclass(frozen=True)
class Suspect:
    """A training sample whose label looks wrong, as it is shown.

    Attributes:
        name: File and row.
        given: Its label.
        suggested: The most probable other label.
        probability: Of that label.
        image: A data URI, or None.
        cells: Names and texts of a row's cells; empty for images.
    """

    name: str
    given: str
    suggested: str
    probability: float
    image: str | None = None
    cells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Highlights:
    """What an audit adds to a report.

    Attributes:
        suspects: The first of them.
        finding: How many labels are wrong, in a sentence.
        diagnosis: Where the evidence of a shift points, in a sentence.
        audit: Link to the audit's page, relative to the report; None if there is none.
        samples: Whether images or rows are shown, or only their names.
        command: The command that makes one.
    """

    suspects: Sequence[Suspect]
    finding: str
    diagnosis: str
    audit: str | None
    samples: bool
    command: str


def closest_run(comparison: Comparison) -> Run | None:
    """The run that is looked at: of the best method that trains on the data as they are given."""
    for label, trials in comparison.methods.items():
        if label.split(" ")[0] not in CONTROLS:
            return trials[0].run
    return None


def classes_section(comparison: Comparison) -> str:
    """Accuracy per class and confusion matrix of the best method, over its seeds; or nothing."""
    for label, trials in comparison.methods.items():
        tables = [trial.run.arrays("confusion").get("counts") for trial in trials]
        counts = [table for table in tables if table is not None]
        names = _class_names(trials[0].run)
        if not counts or names is None or counts[0].shape != (len(names), len(names)):
            return ""
        total: NDArray[np.int64] = np.sum(counts, axis=0)
        note = f"{label}, {trials[0].scored_on} samples"
        if len(counts) > 1:
            note += f" of {len(counts)} seeds together"
        return (
            f"<section>\n<h2>Class by class</h2>\n<p>{escape(note)}: rows are true classes, "
            f"columns predicted ones.</p>\n{_confusion(total, names)}\n</section>"
        )
    return ""


def suspects_section(found: Highlights) -> str:
    """The first suspects with their images or rows, and where to go on."""
    cards = "\n".join(map(_card, found.suspects))
    command = f"<code>{escape(found.command)}</code>"
    further = (
        f'<a href="{escape(found.audit, quote=True)}">Check them all in the audit</a>.'
        if found.audit is not None
        else f"A page to check them all: {command}."
    )
    private = "These samples are of your data, and travel with this page."
    note = f'<p class="note">{private}</p>\n' if found.samples else ""
    return f"""<section aria-labelledby="suspects">
<h2 id="suspects">Labels that look wrong</h2>
<p>{escape(found.finding)} {further}</p>
<p>{escape(found.diagnosis)}</p>
<ul class="suspects">
{cards}
</ul>
{note}</section>"""


def _card(suspect: Suspect) -> str:
    if suspect.image is not None:
        shown = f'<img src="{suspect.image}" alt="Labelled {escape(suspect.given, quote=True)}">'
    else:
        pairs = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(text or '–')}</dd>" for name, text in suspect.cells
        )
        shown = f"<dl>{pairs}</dl>" if pairs else ""
    return (
        f"<li>{shown}<p><s>{escape(suspect.given)}</s> → <b>{escape(suspect.suggested)}</b> "
        f'{100 * suspect.probability:.0f}%</p><p class="where" '
        f'title="{escape(suspect.name, quote=True)}">{escape(suspect.name)}</p></li>'
    )


def _confusion(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    """Rows are true classes: their size and accuracy, then the counts, shaded by share."""
    shown = names if len(names) <= MANY else ()
    rows: list[list[tuple[Column, Cell]]] = []
    for true, name in enumerate(names):
        size = int(counts[true].sum())
        accuracy = counts[true, true] / size if size else None
        cells = [
            (Column("class", "class", "left"), text_cell(name)),
            (Column("rows", "rows"), Cell(f"{size:,}", size)),
            (Column("accuracy", "accuracy %"), number_cell(accuracy, scale=100, digits=1)),
        ]
        for place, other in enumerate(shown):
            number = int(counts[true, place])
            share = number / max(1, size)
            level = 0 if not number else int(np.ceil(5 * share))
            text = f"{number:,}" if number else "·"
            shade = f"level-{level} {'right-class' if place == true else 'wrong-class'}"
            cells.append((Column(other, other), Cell(text, number, shade=shade)))
        rows.append(cells)
    return to_html(make_table(rows, "Confusion matrix"))


def _class_names(run: Run) -> list[str] | None:
    """Class names as the run keeps them; None for a run without."""
    if not run.verified("encoding.json").exists():
        return None
    names = run.read("encoding.json").get("classes")
    return [str(name) for name in names] if isinstance(names, list) else None
