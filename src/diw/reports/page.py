"""The report page: one HTML file that needs no network, made from records alone.

The same records give the same bytes: nothing here reads a clock.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from diw._version import __version__
from diw.records import Run, replacing
from diw.reports.compare_table import compare_table
from diw.reports.comparison import Comparison, compare_runs
from diw.reports.figures import Figure, accuracy_figure, ess_figure
from diw.reports.findings import finding
from diw.reports.histograms import LEGEND, weight_figures
from diw.reports.palette import Look, looks
from diw.reports.runs_table import runs_table
from diw.reports.table import to_html
from diw.reports.words import Description, count, describe

# The page may run what it contains and load nothing, whatever a spec has smuggled in.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)

HOW_TO_READ = """
<dl>
<dt>Last accuracy</dt>
<dd>Test accuracy after the final epoch: what one gets without looking at the test set.</dd>
<dt>Best accuracy</dt>
<dd>The highest of any epoch. Choosing it needs the test set, so it is an upper limit. A last
accuracy far below the best one is what memorised noise looks like.</dd>
<dt>Weights</dt>
<dd>Each training sample's weight, averaged over the last ten epochs in which the method weighed
(one mini-batch alone is noisy). They have mean one in a mini-batch; unweighted training gives every
sample the weight one, the dotted line.</dd>
<dt>Weight AUROC</dt>
<dd>The chance that a sample with an intact label weighs more than a mislabelled one:
1 tells them apart perfectly, 0.5 not at all.</dd>
<dt>Effective sample size (ESS)</dt>
<dd>How many equally weighted samples would inform as much, as a share (Kish). Low values
mean that few samples carry the training.</dd>
<dt>Best and comparable</dt>
<dd>From three seeds on: the best mean, and the methods that a paired t-test at 5% does not tell
from it. Methods share data, noise and initialisation seed by seed, so the pairing is fair.</dd>
</dl>
"""


def write_report(runs: Iterable[Run], path: Path) -> None:
    """Write the report on the finished runs among `runs` to `path`, atomically."""
    page = render_page(compare_runs(runs))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def render_page(comparisons: Sequence[Comparison]) -> str:
    """The whole page; a section for each comparison."""
    from plotly.offline import get_plotlyjs

    styles = looks(label for comparison in comparisons for label in comparison.methods)
    drawings: list[dict[str, Any]] = []
    sections = [_section(comparison, styles, drawings) for comparison in comparisons]
    words = describe(comparisons[0].spec)
    alone = len(comparisons) == 1
    title = (
        words.title if alone else f"{count(len(comparisons), 'comparison')} of weighting methods"
    )
    body = sections[0] if alone else "\n".join(map(_framed, comparisons, sections))
    lede = _lede(comparisons[0], words) if alone else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>{_asset("page.css")}</style>
</head>
<body>
<main>
<header>
<p class="kicker">diw report</p>
<h1>{escape(title)}</h1>
{lede}
</header>
{body}
<section aria-labelledby="how">
<h2 id="how">How to read this</h2>
{HOW_TO_READ}
</section>
<footer>Made by diw {escape(__version__)} from run records alone.</footer>
</main>
<script type="application/json" id="drawings">{_script_json(drawings)}</script>
<script>{get_plotlyjs()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def _lede(comparison: Comparison, words: Description) -> str:
    return (
        f'<p class="finding">{escape(finding(comparison))}</p>\n'
        f'<p class="protocol">{escape(_protocol(comparison, words))}</p>'
    )


def _protocol(comparison: Comparison, words: Description) -> str:
    samples = comparison.trials[0].run.samples()
    parts = [words.protocol] if words.protocol else []
    if "targets" in samples:
        parts.append(count(len(samples["targets"]), "training sample"))
    seeds = ", ".join(map(str, comparison.seeds))
    parts.append(f"{'seeds' if len(comparison.seeds) > 1 else 'seed'} {seeds}")
    return ", ".join(parts) + "."


def _framed(comparison: Comparison, section: str) -> str:
    words = describe(comparison.spec)
    return (
        f'<article class="comparison">\n<h2 class="setting">{escape(words.title)}</h2>\n'
        f"{_lede(comparison, words)}\n{section}\n</article>"
    )


def _section(
    comparison: Comparison, styles: dict[str, Look], drawings: list[dict[str, Any]]
) -> str:
    weights = weight_figures(comparison)
    sizes = ess_figure(comparison, styles)
    parts = [f"<section>\n<h2>Results</h2>\n{to_html(compare_table(comparison))}\n</section>"]
    parts.append(_figure_section(accuracy_figure(comparison, styles), drawings))
    if weights:
        panels = "\n".join(_figure(figure, drawings, "panel", "h3") for figure in weights)
        parts.append(
            f"<section>\n<h2>Where the weights went</h2>\n<p>{escape(LEGEND)}</p>\n"
            f'<div class="panels">\n{panels}\n</div>\n</section>'
        )
    if sizes is not None:
        parts.append(_figure_section(sizes, drawings))
    parts.append(
        f"<details>\n<summary>Every run</summary>\n{to_html(runs_table(comparison))}\n</details>\n"
        "<details>\n<summary>What all runs share</summary>\n"
        f"<pre>{escape(json.dumps(comparison.shared, indent=2))}</pre>\n</details>"
    )
    return "\n".join(parts)


def _figure_section(figure: Figure, drawings: list[dict[str, Any]]) -> str:
    heading = f"<h2>{escape(figure.title)}</h2>"
    return f"<section>\n{heading}\n{_figure(figure, drawings, 'wide', None)}\n</section>"


def _figure(figure: Figure, drawings: list[dict[str, Any]], kind: str, heading: str | None) -> str:
    """The figure's place in the page; the drawing itself joins `drawings`."""
    name = f"figure-{len(drawings)}"
    drawings.append({"id": name, **figure.as_json()})
    title = f"<{heading}>{escape(figure.title)}</{heading}>\n" if heading else ""
    return (
        f'<figure class="{kind}">\n{title}'
        f'<div id="{name}" class="drawing" role="img" '
        f'aria-label="{escape(figure.description, quote=True)}"></div>\n'
        f"<noscript><p>{escape(figure.description)}</p></noscript>\n"
        f"<figcaption>{escape(figure.caption)}</figcaption>\n</figure>"
    )


def _script_json(content: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("diw.reports").joinpath(name).read_text(encoding="utf-8")
