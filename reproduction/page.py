"""The reproduction's report: one HTML file with every table, figure and verdict in it."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path

from diw.files import write_text
from diw.pages import html_page, to_html
from reproduction.claims import Verdict
from reproduction.tables import SCALE_NOTES, detail_table, matrix_table, metrics_of
from reproduction.write import Section

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_CSS = """
main { max-width: 78rem; } table { font-size: 0.85rem; } th, td { padding: 0.3rem 0.5rem; }
.verdicts { padding-left: 1.2rem; } .verdicts li { margin: 0.35rem 0; max-width: 80ch; }
.holds { color: #00664b; } .part { color: #7a5200; } .against { color: #a33b00; }
.untested { color: var(--muted); }
figure { margin: 1.5rem 0; } figure img { max-width: min(100%, 56rem); height: auto; }
"""

_CLASSES = {
    "holds": "holds",
    "holds in part": "part",
    "does not hold": "against",
    "not tested": "untested",
}


def write_page(sections: Sequence[Section], path: Path) -> None:
    """Write the page of these experiments to `path`, atomically; it loads and runs nothing."""
    scale = sections[0].sheet.scale if sections else "smoke"
    links = "".join(
        f'<li><a href="#{escape(s.sheet.name)}">{escape(str(s.sheet.facts["title"]))}</a></li>'
        for s in sections
    )
    page = html_page(
        f"Reproduction, {scale} scale",
        policy=_POLICY,
        style=_CSS,
        header=f"""<p class="kicker">python -m reproduction</p>
<h1>Dynamic importance weighting, reproduced</h1>
<p>Fang et al. 2020, ours beside the published numbers. {escape(SCALE_NOTES[scale])}</p>
<nav aria-label="Results"><ul>{links}</ul></nav>""",
        body="\n".join(map(_section, sections)),
    )
    write_text(path, page)


def _section(section: Section) -> str:
    facts = section.sheet.facts
    parts = [
        f'<section id="{escape(section.sheet.name)}">',
        f"<h2>{escape(str(facts['title']))}</h2>",
        f'<p class="protocol">{escape(facts["source"])}. {escape(facts["about"])}</p>',
    ]
    if section.verdicts:
        parts.append(f'<ul class="verdicts">{"".join(map(_verdict, section.verdicts))}</ul>')
    if metrics_of(section.sheet):
        parts.append(to_html(matrix_table(section.sheet)))
    parts += [_picture(path, caption) for path, caption in section.pictures]
    parts += [f'<p class="note">{escape(note)}</p>' for note in section.notes]
    if metrics_of(section.sheet):
        parts.append(_details("Every cell", to_html(detail_table(section.sheet))))
    parts.append(_details("How it was made", _made(section)))
    return "\n".join([*parts, "</section>"])


def _verdict(verdict: Verdict) -> str:
    return (
        f"<li>{escape(verdict.claim)} "
        f'<strong class="{_CLASSES[verdict.outcome]}">{escape(verdict.outcome.capitalize())}:'
        f"</strong> {escape(verdict.finding)}</li>"
    )


def _picture(path: Path, caption: str) -> str:
    data = b64encode(path.read_bytes()).decode("ascii")
    caption = escape(caption)
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _made(section: Section) -> str:
    facts = section.sheet.facts
    made = "".join(
        f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>"
        for name, value in facts["made"].items()
        if value
    )
    rules = "".join(f"<li>{escape(reason)}</li>" for reason in facts["protocol"])
    return f"<dl>{made}</dl><p>The protocol, and where its values come from:</p><ul>{rules}</ul>"


def _details(title: str, content: str) -> str:
    return f"<details>\n<summary>{escape(title)}</summary>\n{content}\n</details>"
