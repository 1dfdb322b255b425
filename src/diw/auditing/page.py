"""`audit.html`: one file, worst first, in which a person marks labels as wrong or right.

It needs no network, and its Content-Security-Policy allows none. Its marks are kept by the browser,
and saved as `corrections.csv`.
"""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diw.auditing.result import Audit
from diw.auditing.samples import NOTHING, Origin, Samples
from diw.errors import UsageError
from diw.labels import Share
from diw.outputs import create_text
from diw.pages import (
    EMPTY,
    Cell,
    Column,
    Table,
    asset,
    count,
    html_page,
    inline_policy,
    make_table,
    number_cell,
    script_json,
    text_cell,
    to_html,
)

if TYPE_CHECKING:
    from diw.auditing.diagnosis import Diagnosis

BINS = 50
MANY = 20
"""Classes up to which transitions are shown."""

TESTS = {
    "features": "inputs differ (MMD)",
    "labels": "class shares differ",
    "losses": "training labels fit worse, or better",
}


SUSPECTS, PAGE = FILES = ("suspects.csv", "audit.html")
"""What is written of an audit."""


def write_audit(
    found: Audit, folder: Path, *, top: int = 500, samples: bool = True, force: bool = False
) -> None:
    """Write `suspects.csv` and `audit.html` into a folder that exists.

    Args:
        found: The audit, of a run or a table.
        folder: Where to.
        top: How many samples are in the page, worst first.
        samples: Whether images and rows are in it, or only their names.
        force: Whether files that diw did not make are replaced.
    """
    create_text(folder / SUSPECTS, found.to_csv(), force=force)
    create_text(folder / PAGE, render(found, top, samples=samples), force=force)


def render(found: Audit, top: int = 500, *, samples: bool = True) -> str:
    """The page's HTML; arguments as for `write_audit`."""
    if found.origin is None:
        raise UsageError("audit: of arrays has no page; its .suspects are a table")
    places = found.order[:top]
    shown = found.origin.show(places) if samples else NOTHING
    top, name = len(places), escape(Path(found.origin.name).name)
    table = "" if shown.images is not None else " table"
    scripts = asset("diw.auditing", "audit.js")
    style = asset("diw.auditing", "audit.css")
    content = script_json(_content(found, found.origin, shown, top))
    header = f"""<p class="kicker">diw audit</p>
<h1>Which labels of {name} look wrong?</h1>
<p class="finding">{escape(finding(found))}</p>
{_private(shown, top)}"""
    body = f"""{_plots(found)}
{diagnosis_section(found.diagnosis) if found.diagnosis is not None else ""}
{_verified_section(found)}
<section aria-labelledby="check">
<h2 id="check">Check them</h2>
<p>Each sample has its given label, the most probable other one and {_whose(found)} probability of
it. Mark labels that are wrong (and choose the right one), right, or samples to drop; then save,
and train again with <code>--corrections corrections.csv</code>.
<span id="kept">Marks are kept in this browser.</span></p>
<p class="note keys">Keys on a sample: <kbd>w</kbd> wrong, as suggested; <kbd>0</kbd>–<kbd>9</kbd>
wrong, and the number of the right class (the first is 0); <kbd>r</kbd> right; <kbd>d</kbd> drop;
<kbd>u</kbd> undo; arrows move.</p>
<div class="toolbar">
{_chooser("given", "Given", found.classes)}
{_chooser("suggested", "Suggested", found.classes)}
<label>Show <select id="state"><option value="">all</option>
<option value="unmarked">unmarked</option><option value="marked">marked</option></select></label>
<progress id="bar" value="0" max="1" aria-label="Marked"></progress>
<output id="done"></output>
<button type="button" id="save">Save corrections.csv</button>
</div>
<p class="note" id="found" role="status"></p>
<ul class="gallery{table}" id="gallery"></ul>
<div id="end"></div>
<noscript><p>This page needs JavaScript, all of which is inside it. The same samples are in
suspects.csv.</p></noscript>
</section>"""
    return html_page(
        f"Audit of {Path(found.origin.name).name}",
        policy=inline_policy([scripts], img="data:"),
        header=header,
        body=body,
        style=style,
        scripts=f'<script type="application/json" id="audit">{content}</script>\n'
        f"<script>{scripts}</script>\n",
    )


def finding(found: Audit) -> str:
    """How many labels are wrong, in a sentence or two."""
    total = count(found.total, "label" if found.diagnosis is None else "training label")
    if found.wrong_rows is None:
        text = f"{count(found.count, 'suspect')} among {total}."
    else:
        wrong, low, high = found.wrong_rows
        text = (
            f"About {wrong:,} of {total} are wrong (95% interval {low:,} to {high:,}, "
            f"estimated from {found.known_from})."
        )
    quality = found.quality()
    if quality is None or found.flipped is None:
        return text
    return (
        f"{text} These are simulated: {int(found.flipped[found.order].sum()):,} are. The score "
        f"finds them with AUROC {quality['auroc']:.3f}, "
        f"average precision {quality['average_precision']:.3f}."
    )


def _private(shown: Samples, top: int) -> str:
    if shown.images is None and shown.cells is None:
        return (
            '<p class="private">This file names samples and holds none of them '
            "(<code>--no-samples</code>).</p>"
        )
    what = count(top, "image" if shown.images is not None else "row")
    return (
        f'<p class="private"><b>This file holds {what} of your data.</b> They travel with it: '
        "share it only with those who may see them, or make it with <code>--no-samples</code>.</p>"
    )


def _whose(found: Audit) -> str:
    return "the network's" if found.model is None and found.diagnosis is not None else "the model's"


def _verified_section(found: Audit) -> str:
    """What verified rows say of the labels, or that none are verified."""
    if found.model is None:
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in found.notes)
        return f"<section>\n{notes}\n</section>" if notes else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in found.notes)
    tables = [by_class_table(found), *([pairs_table(found)] if found.model.pairs else [])]
    return (
        '<section aria-labelledby="verified">\n<h2 id="verified">What the verified rows say</h2>\n'
        f"<ul>{notes}</ul>\n<details>\n<summary>Wrong labels by class</summary>\n"
        + "\n".join(map(to_html, tables))
        + "\n</details>\n</section>"
    )


def by_class_table(found: Audit) -> Table:
    """The share of wrong labels among those given as each class."""
    assert found.model is not None
    counts = np.bincount(found.labels, minlength=len(found.classes))
    shares = found.model.by_class or (None,) * len(found.classes)

    def row(number: int) -> list[tuple[Column, Cell]]:
        return [
            (Column("given", "given as", "left"), text_cell(found.classes[number])),
            (Column("rows", "rows"), Cell(f"{counts[number]:,}", int(counts[number]))),
            *_share_cells(shares[number], "wrong", "wrong %"),
        ]

    return make_table(map(row, range(len(found.classes))))


def pairs_table(found: Audit) -> Table:
    """Which class is given for which, most often first."""
    assert found.model is not None
    pairs = sorted(found.model.pairs.items(), key=lambda item: -item[1].value)[:MANY]
    return make_table(
        [
            (Column("given", "given as", "left"), text_cell(found.classes[given])),
            (Column("right", "right class", "left"), text_cell(found.classes[right])),
            *_share_cells(share, "share", "of the rows given so, %"),
        ]
        for (right, given), share in pairs
    )


def _share_cells(share: Share | None, key: str, title: str) -> list[tuple[Column, Cell]]:
    interval = EMPTY if share is None else f"{100 * share.low:.1f} to {100 * share.high:.1f}"
    value = None if share is None else share.value
    return [
        (Column(key, title), number_cell(value, scale=100, digits=1)),
        (Column("interval", "95% interval"), Cell(interval, None)),
    ]


def _plots(found: Audit) -> str:
    simulated = found.quality() is not None
    keys = (
        '<span class="key all"></span>all samples <span class="key wrong"></span>mislabelled. '
        if simulated
        else ""
    )
    panels = f"""<figure class="panel">
<h3>Scores of all training samples</h3>
<svg class="plot" id="histogram" viewBox="0 0 1000 200" preserveAspectRatio="none" role="img"
aria-label="Histogram of the scores"></svg>
<input type="range" id="threshold" min="0" max="1" step="0.02" value="0" aria-label="Least score">
<p class="scale"><span>0: surely right</span><span>score</span><span>1: surely wrong</span></p>
<figcaption>{keys}<span id="above" role="status"></span> Move the threshold to show only samples
above it. Heights are square roots of counts.</figcaption>
</figure>"""
    curve = found.precision_recall()
    if curve is not None:
        points = " ".join(
            f"{1000 * recall:.0f},{200 - 200 * precision:.0f}" for recall, precision in curve
        )
        panels += f"""
<figure class="panel">
<h3>Precision and recall</h3>
<svg class="plot" viewBox="0 0 1000 200" preserveAspectRatio="none" role="img"
aria-label="Precision against recall"><rect class="frame" width="1000" height="200"/>
<polyline class="curve" points="{points}"/></svg>
<p class="scale"><span>recall 0</span><span>1</span></p>
<figcaption>Upwards from 0 to 1: the share of samples above a threshold that is mislabelled. To the
right: the share of all mislabelled samples that is above it. Known because the noise is
simulated.</figcaption>
</figure>"""
    return f'<section>\n<div class="panels plots">\n{panels}\n</div>\n</section>'


def _chooser(name: str, title: str, classes: tuple[str, ...]) -> str:
    options = "".join(
        f'<option value="{number}">{escape(text)}</option>' for number, text in enumerate(classes)
    )
    every = '<option value="">any</option>'
    return f'<label>{title} <select id="{name}">{every}{options}</select></label>'


def _content(found: Audit, origin: Origin, shown: Samples, top: int) -> dict[str, Any]:
    """What the page's script reads."""
    rows: list[dict[str, Any]] = []
    places = found.order[:top].tolist()
    contents = origin.contents(places)
    for place, row, content in zip(places, found.rows(top), contents, strict=True):
        probability = row["probability"]
        rows.append(
            {
                "key": f"{row['file']}\n{'' if row['row'] is None else row['row']}",
                "file": row["file"],
                "row": row["row"],
                "content": content,
                "given": int(found.labels[place]),
                "suggested": int(found.suggested[place]),
                "probability": None if np.isnan(probability) else probability,
                "score": row["score"],
                "weight": row["weight"],
            }
        )
    ranked = found.score[found.order]
    counts, edges = np.histogram(ranked.clip(0, 1), BINS, (0.0, 1.0))
    wrong = None
    if found.flipped is not None:
        wrong = np.histogram(ranked[found.flipped[found.order]].clip(0, 1), BINS, (0.0, 1.0))[0]
    return {
        "id": origin.key,
        "classes": list(found.classes),
        "total": len(ranked),
        "rows": rows,
        "images": shown.images,
        "columns": shown.columns,
        "cells": shown.cells,
        "threshold": float(np.floor(50 * ranked[found.count - 1]) / 50) if found.count else 0.0,
        "histogram": {
            "edges": edges.round(4).tolist(),
            "counts": counts.tolist(),
            "wrong": None if wrong is None else wrong.tolist(),
        },
    }


def tests_table(found: "Diagnosis") -> Table:
    """The three tests with their p-values."""
    return make_table(
        [
            (Column("test", "test", "left"), text_cell(TESTS[name])),
            (Column("p", "p-value"), _p(found.p_values[name])),
            (Column("adjusted", "adjusted (Holm)"), _p(found.adjusted[name])),
        ]
        for name in found.p_values
    )


def ratios_table(found: "Diagnosis") -> Table:
    """Trusted over training share of each class."""

    def row(number: int) -> list[tuple[Column, Cell]]:
        ratio, low, high = (float(value) for value in found.ratios[number])
        return [
            (Column("class", "class", "left"), text_cell(found.classes[number])),
            (Column("ratio", "trusted : training"), Cell(f"{ratio:.2f}", ratio)),
            (Column("interval", "95% interval"), Cell(f"{low:.2f} to {high:.2f}", None)),
        ]

    return make_table(map(row, range(len(found.classes))))


def transitions_table(found: "Diagnosis") -> Table:
    """The estimated share of each class that is labelled as each class, in per cent."""

    def row(number: int) -> list[tuple[Column, Cell]]:
        cells = [(Column("class", "class", "left"), text_cell(found.classes[number]))]
        for name, value in zip(found.classes, found.noise.transitions[number], strict=True):
            text = f"{100 * value:.0f}" if value >= 0.005 else "·"
            cells.append((Column(name, f"as {name}"), Cell(text, float(value))))
        return cells

    return make_table(map(row, range(len(found.classes))))


def facts(found: "Diagnosis") -> list[str]:
    """What else was estimated, in lines."""
    noise = found.noise
    share, low, high = found.outside
    wrong = "wrong labels: trusted samples do not tell; verify some rows of the training data"
    if found.verified:
        wrong = "wrong labels: rows that were picked do not tell how many; draw some at random"
    if found.share_known:
        wrong = (
            f"wrong labels: {100 * noise.share:.1f}% "
            f"(95% interval {100 * noise.low:.1f} to {100 * noise.high:.1f}%)"
        )
        if found.verified:
            wrong += f", from {count(found.verified, 'row')} of which both labels are known"
    again = f"training samples left out because they are trusted, too: {found.overlap:,}"
    return [
        wrong,
        *([again] if found.overlap else []),
        f"trusted samples outside the training samples: {100 * share:.1f}% "
        f"({100 * low:.1f} to {100 * high:.1f}%; 1% is what no shift gives)",
    ]


def diagnosis_section(found: "Diagnosis") -> str:
    """The diagnosis as HTML."""
    lines = "".join(f"<li>{escape(line[0].upper() + line[1:])}</li>" for line in facts(found))
    parts = [to_html(tests_table(found))]
    if len(found.classes) <= MANY and found.share_known:
        parts.append(
            "<details><summary>Which labels were given for which classes, in per cent</summary>\n"
            f"{to_html(transitions_table(found))}</details>"
        )
    parts.append(
        "<details><summary>Class shares, trusted against training labels</summary>\n"
        f"{to_html(ratios_table(found))}</details>"
    )
    return (
        '<section aria-labelledby="shift">\n<h2 id="shift">Which shift is it?</h2>\n'
        f"<p>{escape(found.sentence)}</p>\n"
        "<details>\n<summary>The evidence</summary>\n"
        f"{parts[0]}\n<ul>{lines}</ul>\n</details>\n{''.join(parts[1:])}\n</section>"
    )


def _p(value: float) -> Cell:
    return Cell(f"{value:.3f}", value, strong=value <= 0.05)
