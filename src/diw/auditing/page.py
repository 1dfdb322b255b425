"""`audit.html`: one file, worst first, in which a person marks labels as wrong or right.

It needs no network, and its Content-Security-Policy allows none. Its marks are kept by the browser,
and saved as `corrections.csv`.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from diw.auditing.result import Audit
from diw.auditing.samples import Samples, shown_samples
from diw.auditing.sections import diagnosis_section
from diw.experiments.sources import training_contents
from diw.files import write_text
from diw.reports.page import html_page, inline_policy, script_json
from diw.reports.words import count, data_title
from diw.runs import Run, spec_hash

BINS = 50


def write_page(found: Audit, run: Run, path: Path, *, top: int = 500, samples: bool = True) -> None:
    """Write the page of an audit, atomically.

    Args:
        found: The audit.
        run: Its run; the samples are read from the run's data.
        path: The page.
        top: How many samples are in it, worst first.
        samples: Whether images and rows are in it, or only their names.
    """
    places = found.order[:top]
    shown = shown_samples(run, places) if samples else Samples(None, [], None)
    contents = training_contents(run.spec)(places.tolist())
    write_text(path, render(found, run, shown, contents))


def render(found: Audit, run: Run, shown: Samples, contents: Sequence[str]) -> str:
    """The page's HTML; `shown` are the worst samples, `contents` their fingerprints."""
    top = len(contents)
    data = data_title(run.spec.data)
    table = "" if shown.images is not None else " table"
    scripts = _asset("audit.js")
    style = _asset("audit.css")
    content = script_json(_content(found, run, shown, contents))
    header = f"""<p class="kicker">diw audit</p>
<h1>Which labels of {escape(Path(data).name)} look wrong?</h1>
<p class="finding">{escape(finding(found))}</p>
{_private(shown, top)}"""
    body = f"""{_plots(found)}
{diagnosis_section(found.diagnosis) if found.diagnosis is not None else ""}
<section aria-labelledby="check">
<h2 id="check">Check them</h2>
<p>Each sample has its given label, the most probable other one and the network's probability of
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
        f"Audit of {Path(data).name}",
        policy=inline_policy([scripts], img="data:"),
        header=header,
        body=body,
        style=style,
        scripts=f'<script type="application/json" id="audit">{content}</script>\n'
        f"<script>{scripts}</script>\n",
    )


def finding(found: Audit) -> str:
    """How many labels are wrong, in a sentence or two."""
    total = count(len(found.order), "training label")
    if found.wrong is None:
        return f"{count(found.count, 'suspect')} among {total}."
    wrong, low, high = found.wrong
    text = (
        f"About {wrong:,} of {total} are wrong (95% interval {low:,} to {high:,}, "
        "estimated from the trusted samples)."
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


def _content(found: Audit, run: Run, shown: Samples, contents: Sequence[str]) -> dict[str, Any]:
    """What the page's script reads."""
    rows: list[dict[str, Any]] = []
    places = found.order[: len(contents)].tolist()
    for place, row, content in zip(places, found.rows(len(places)), contents, strict=True):
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
        "id": spec_hash(run.spec.as_json()),
        "classes": list(found.classes),
        "total": len(ranked),
        "rows": rows,
        "images": shown.images,
        "columns": shown.columns,
        "cells": shown.cells,
        "threshold": float(np.floor(50 * ranked[found.count - 1]) / 50) if len(ranked) else 0.0,
        "histogram": {
            "edges": edges.round(4).tolist(),
            "counts": counts.tolist(),
            "wrong": None if wrong is None else wrong.tolist(),
        },
    }


def _asset(name: str) -> str:
    return files("diw.auditing").joinpath(name).read_text(encoding="utf-8")
