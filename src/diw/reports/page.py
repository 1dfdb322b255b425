"""The report page: one HTML file that needs no network, made from records alone.

The same records give the same bytes: nothing here reads a clock.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from diw._version import __version__
from diw.files import write_text
from diw.reports.closer import Highlights, classes_section, suspects_section
from diw.reports.comparison import Comparison, compare_table, finding, runs_table
from diw.reports.figures import WEIGHTS_LEGEND, Chart, accuracy_chart, ess_chart, weight_charts
from diw.reports.learners import Learners, learners_table
from diw.reports.palette import Look, looks
from diw.reports.table import to_html
from diw.reports.words import count, data_title, describe

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
not the same as equal: with few seeds the interval is wide.</dd>
</dl>
"""


def write_report(
    comparisons: Sequence[Comparison],
    path: Path,
    learners: Sequence[Learners] = (),
    highlights: Sequence[Highlights | None] = (),
) -> None:
    """Write the report on `comparisons` to `path`, atomically.

    Args:
        comparisons: The methods, a section for each comparison.
        path: The page.
        learners: For each comparison, other learners on the same rows; empty where there are none.
        highlights: For each comparison, what an audit found; None where there was none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, render(comparisons, learners, highlights, path.parent))


def render(
    comparisons: Sequence[Comparison],
    learners: Sequence[Learners] = (),
    highlights: Sequence[Highlights | None] = (),
    folder: Path | None = None,
) -> str:
    """The whole page; arguments as for `write_report`, and the folder that links start from."""
    from plotly.offline import get_plotlyjs

    scripts = (get_plotlyjs(), _asset("page.js"))
    styles = looks(label for comparison in comparisons for label in comparison.methods)
    charts: list[dict[str, Any]] = []
    page = _Page(styles, charts, folder)
    others = [*learners, *[{}] * len(comparisons)]
    audits = [*highlights, *[None] * len(comparisons)]
    sections = [
        _section(comparison, others[place], audits[place], page)
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
    title: str, *, policy: str, header: str, body: str, style: str = "", scripts: str = ""
) -> str:
    """A page of HTML in the style of all reports.

    Args:
        title: As text; the other parts are markup.
        policy: What the page may load and run (Content-Security-Policy).
        header: The head of the page, with its h1.
        body: What follows.
        style: CSS after that of all pages.
        scripts: After everything else.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>{_asset("page.css")}{style}</style>
</head>
<body>
<main>
<header>
{header}
</header>
{body}
<footer>Made by diw {escape(__version__)} from run records alone.</footer>
</main>
{scripts}</body>
</html>
"""


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


def _section(
    comparison: Comparison, others: Learners, found: Highlights | None, page: _Page
) -> str:
    styles, charts = page.styles, page.charts
    weights = weight_charts(comparison)
    sizes = ess_chart(comparison, styles)
    parts = [f"<section>\n<h2>Results</h2>\n{to_html(compare_table(comparison))}\n</section>"]
    if others:
        table = to_html(learners_table(comparison, others))
        parts.append(f"<section>\n<h2>Other learners</h2>\n{table}\n</section>")
    if found is not None:
        parts.append(suspects_section(found))
    parts.append(_figure_section(accuracy_chart(comparison, styles), charts))
    parts.append(classes_section(comparison))
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


def script_json(content: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("diw.reports").joinpath(name).read_text(encoding="utf-8")
