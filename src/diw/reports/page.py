"""The report page: one HTML file that needs no network, made from records alone.

The same records give the same bytes: nothing here reads a clock.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.auditing.page import finding as audit_finding
from diw.auditing.page import write_audit
from diw.auditing.result import Audit
from diw.auditing.samples import NOTHING
from diw.outputs import create_text
from diw.pages import (
    Cell,
    Column,
    Entry,
    asset,
    count,
    count_entry,
    data_title,
    html_page,
    inline_policy,
    make_table,
    number_entry,
    script_json,
    text_entry,
    to_html,
)
from diw.reports.comparison import Comparison, compare_table, finding, runs_table
from diw.reports.figures import (
    WEIGHTS_LEGEND,
    Chart,
    Look,
    accuracy_chart,
    ess_chart,
    looks,
    weight_charts,
)
from diw.reports.learners import Learners, learners_table
from diw.reports.words import describe
from diw.runs import Run

AUDIT = "audit"
"""The folder of the audit, beside the report."""
FIRST = 12
"""Suspects in the report; its audit has more."""
MOST_CELLS = 8
"""Cells of a suspicious row that are shown."""
MANY = 20
"""Classes up to which the confusion matrix is shown."""

HOW_TO_READ = """
<dl>
<dt>Last accuracy</dt>
<dd>Test accuracy after the final epoch: what you get without looking at the test set.</dd>
<dt>Best accuracy</dt>
<dd>The highest of any epoch. Choosing it needs the test set, so it is an upper limit. A last
accuracy far below the best one is what memorised noise looks like.</dd>
<dt>Weights</dt>
<dd>Weight of each training sample, averaged over the last ten epochs in which the method weighed
(one mini-batch alone is noisy). Their mean is one in each mini-batch; unweighted training gives
every sample the weight one, the dotted line.</dd>
<dt>Weight AUROC</dt>
<dd>The probability that a sample with an intact label weighs more than a mislabelled one:
1 is perfect separation, 0.5 none.</dd>
<dt>Effective sample size (ESS)</dt>
<dd>How many equally weighted samples would inform as much, as a share of all (Kish). A low value
means that few samples carry the training.</dd>
<dt>To the best, and the verdict</dt>
<dd>The difference from the best mean in points, with its 95% confidence interval over seeds. For
each seed the methods share data, noise and initialisation, so they are compared in pairs. With
three seeds or more: worse where the interval excludes zero, otherwise no clear difference. That is
not the same as equal: with few seeds the interval is wide. It supposes differences as of a normal
distribution; where a method fails in some seeds, look at these.</dd>
</dl>
"""


def write_report(
    comparisons: Sequence[Comparison],
    path: Path,
    learners: Sequence[Learners] = (),
    audit: Audit | None = None,
    *,
    samples: bool = True,
    force: bool = False,
) -> None:
    """Write the report on `comparisons` to `path`, atomically, and the audit beside it.

    Args:
        comparisons: The methods, a section for each comparison.
        path: The page.
        learners: For each comparison, other learners on the same rows; empty where there are none.
        audit: That of a run of the first comparison; None where there is none.
        samples: Whether images and rows of suspects are shown, or only their names.
        force: Whether files that diw did not make are replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if audit is not None:
        (path.parent / AUDIT).mkdir(exist_ok=True)
        write_audit(audit, path.parent / AUDIT, samples=samples, force=force)
    page = render(comparisons, learners, audit, path.parent, samples=samples)
    create_text(path, page, force=force)


def render(
    comparisons: Sequence[Comparison],
    learners: Sequence[Learners] = (),
    audit: Audit | None = None,
    folder: Path | None = None,
    *,
    samples: bool = True,
) -> str:
    """The whole page; arguments as for `write_report`, and the folder that links start from."""
    from plotly.offline import get_plotlyjs

    scripts = (get_plotlyjs(), asset("diw.reports", "page.js"))
    styles = looks(label for comparison in comparisons for label in comparison.methods)
    charts: list[dict[str, Any]] = []
    page = _Page(styles, charts, folder)
    others = [*learners, *[{}] * len(comparisons)]
    suspects = "" if audit is None else _suspects_section(audit, samples=samples)
    sections = [
        _section(comparison, others[place], "" if place else suspects, page)
        for place, comparison in enumerate(comparisons)
    ]
    if len(comparisons) == 1:
        title, lede, body = _title(comparisons[0]), _lede(comparisons[0]), sections[0]
    else:
        title, lede = f"{count(len(comparisons), 'comparison')} of weighting methods", ""
        body = "\n".join(map(_framed, comparisons, sections))
    return html_page(
        title,
        policy=inline_policy(scripts),
        header=f"""<p class="kicker">diw report</p>
<h1>{escape(title)}</h1>
{lede}""",
        body=f"""{body}
<section aria-labelledby="how">
<h2 id="how">How to read this</h2>
{HOW_TO_READ}
</section>""",
        scripts=f"""<script type="application/json" id="drawings">{script_json(charts)}</script>
<script>{scripts[0]}</script>
<script>{scripts[1]}</script>
""",
    )


def _lede(comparison: Comparison) -> str:
    _, protocol = describe(comparison.spec)
    samples = comparison.trials[0].run.samples()
    if "targets" in samples:
        protocol += f", {count(len(samples['targets']), 'training sample')}"
    seeds = ", ".join(map(str, comparison.seeds))
    protocol += f", {'seeds' if len(comparison.seeds) > 1 else 'seed'} {seeds}."
    return (
        f'<p class="finding">{escape(finding(comparison))}</p>\n'
        f'<p class="protocol">{escape(protocol)}</p>'
    )


def _title(comparison: Comparison) -> str:
    """What a person would write over it."""
    spec, methods = comparison.spec, list(comparison.methods)
    if data_title(spec.data) != spec.data or spec.shift != "none":
        return describe(spec)[0]
    name = Path(spec.data).name
    if len(methods) == 1:
        return f"{name}, trained with {methods[0]}"
    return f"{name}: {count(len(methods), 'way')} to train on it"


def _framed(comparison: Comparison, section: str) -> str:
    title = _title(comparison)
    return (
        f'<article class="comparison">\n<h2 class="setting">{escape(title)}</h2>\n'
        f"{_lede(comparison)}\n{section}\n</article>"
    )


@dataclass(frozen=True)
class _Page:
    """What the sections of a page share."""

    styles: dict[str, Look]
    charts: list[dict[str, Any]]
    folder: Path | None


def _section(comparison: Comparison, others: Learners, suspects: str, page: _Page) -> str:
    styles, charts = page.styles, page.charts
    weights = weight_charts(comparison)
    sizes = ess_chart(comparison, styles)
    parts = [f"<section>\n<h2>Results</h2>\n{to_html(compare_table(comparison))}\n</section>"]
    if others:
        table = to_html(learners_table(comparison, others))
        parts.append(f"<section>\n<h2>Other learners</h2>\n{table}\n</section>")
    if suspects:
        parts.append(suspects)
    parts.append(_figure_section(accuracy_chart(comparison, styles), charts))
    parts.append(_classes_section(comparison))
    if weights:
        panels = "\n".join(
            _figure(c, charts, "panel", f"<h3>{escape(c.title)}</h3>\n") for c in weights
        )
        parts.append(
            f"<section>\n<h2>Where the weights went</h2>\n<p>{escape(WEIGHTS_LEGEND)}</p>\n"
            f'<div class="panels">\n{panels}\n</div>\n</section>'
        )
    if sizes is not None:
        parts.append(_figure_section(sizes, charts))
    runs = to_html(runs_table(comparison, page.folder))
    parts.append(
        f"<details>\n<summary>Every run</summary>\n{runs}\n</details>\n"
        "<details>\n<summary>What all runs share</summary>\n"
        f"<pre>{escape(json.dumps(comparison.shared, indent=2))}</pre>\n</details>"
    )
    return "\n".join(parts)


def _figure_section(chart: Chart, charts: list[dict[str, Any]]) -> str:
    heading = f"<h2>{escape(chart.title)}</h2>"
    return f"<section>\n{heading}\n{_figure(chart, charts, 'wide')}\n</section>"


def _figure(chart: Chart, charts: list[dict[str, Any]], kind: str, heading: str = "") -> str:
    """The figure's place in the page; the drawing itself joins `charts`."""
    name = f"figure-{len(charts)}"
    charts.append({"id": name, "data": chart.data, "layout": chart.layout})
    return (
        f'<figure class="{kind}">\n{heading}'
        f'<div id="{name}" class="drawing" role="img" '
        f'aria-label="{escape(chart.description, quote=True)}"></div>\n'
        f"<noscript><p>{escape(chart.description)}</p></noscript>\n"
        f"<figcaption>{escape(chart.caption)}</figcaption>\n</figure>"
    )


def _classes_section(comparison: Comparison) -> str:
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


def _suspects_section(found: Audit, *, samples: bool) -> str:
    """The first suspects with their images or rows, and where to go on."""
    places = found.order[:FIRST]
    shown = found.origin.show(places) if samples and found.origin is not None else NOTHING
    cards: list[str] = []
    for number, row in enumerate(found.rows(len(places))):
        name = row["file"] if row["row"] is None else f"{row['file']}, row {row['row']}"
        content = ""
        if shown.images is not None:
            label = escape(row["label"], quote=True)
            content = f'<img src="{shown.images[number]}" alt="Labelled {label}">'
        elif shown.cells is not None:
            pairs = zip(shown.columns[:MOST_CELLS], shown.cells[number], strict=False)
            terms = (f"<dt>{escape(key)}</dt><dd>{escape(text or '–')}</dd>" for key, text in pairs)
            content = f"<dl>{''.join(terms)}</dl>"
        cards.append(
            f"<li>{content}<p><s>{escape(row['label'])}</s> → <b>{escape(row['suggested'])}</b> "
            f'{100 * row["probability"]:.0f}%</p><p class="where" '
            f'title="{escape(name, quote=True)}">{escape(name)}</p></li>'
        )
    listed = "\n".join(cards)
    diagnosis = "" if found.diagnosis is None else found.diagnosis.sentence
    private = "These samples are of your data, and travel with this page."
    note = f'<p class="note">{private}</p>\n' if samples else ""
    return f"""<section aria-labelledby="suspects">
<h2 id="suspects">Labels that look wrong</h2>
<p>{escape(audit_finding(found))} <a href="{AUDIT}/audit.html">Check them all in the audit</a>.</p>
<p>{escape(diagnosis)}</p>
<ul class="suspects">
{listed}
</ul>
{note}</section>"""


def _confusion(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    """Rows are true classes: their size and accuracy, then the counts, shaded by share."""
    shown = names if len(names) <= MANY else ()
    rows: list[list[Entry]] = []
    for true, name in enumerate(names):
        size = int(counts[true].sum())
        accuracy = counts[true, true] / size if size else None
        cells = [
            text_entry("class", "class", name),
            count_entry("rows", "rows", size),
            number_entry("accuracy", "accuracy %", accuracy, scale=100, digits=1),
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
