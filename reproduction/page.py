"""What a reader gets: an experiment's files, and one HTML page with all of them in it."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from diw.files import write_json, write_text
from diw.pages import html_page, to_csv, to_html, to_markdown
from reproduction.claims import Verdict, verdicts
from reproduction.figures import drawings
from reproduction.results import Sheet
from reproduction.tables import SCALE_NOTES, detail_table, matrix_table, metrics_of, to_latex

NO_FIGURES = (
    "figures need matplotlib and scikit-learn; install them with: pip install --group paper"
)

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


@dataclass(frozen=True)
class Section:
    """What an experiment has come to, for the page and the terminal."""

    sheet: Sheet
    verdicts: Sequence[Verdict]
    pictures: Sequence[tuple[Path, str]]
    """The PNG file and the caption of each figure; its PDF has the same name."""
    notes: Sequence[str]


def write_sheet(sheet: Sheet) -> Section:
    """Write all files of an experiment into its folder; the same records give the same files."""
    found = verdicts(sheet)
    if metrics_of(sheet):
        write_text(sheet.folder / f"{sheet.name}.tex", to_latex(matrix_table(sheet)))
        write_text(sheet.folder / f"{sheet.name}.csv", to_csv(detail_table(sheet)))
    try:
        pictures = [(one.save(sheet.folder), one.caption) for one in drawings(sheet)]
        notes: list[str] = []
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("matplotlib", "sklearn"):
            raise
        pictures, notes = [], [NO_FIGURES]
    section = Section(sheet, found, pictures, notes)
    write_text(sheet.folder / f"{sheet.name}.md", to_text(section))
    write_json(sheet.folder / f"{sheet.name}.json", _as_json(section))
    return section


def read_section(sheet: Sheet) -> Section | None:
    """What `write_sheet` wrote before, without drawing anything anew; None if it did not."""
    path = sheet.folder / f"{sheet.name}.json"
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    pictures = [(sheet.folder / f["file"], f["caption"]) for f in content["figures"]]
    pictures = [(path, caption) for path, caption in pictures if path.is_file()]
    verdicts = [Verdict(**verdict) for verdict in content["verdicts"]]
    return Section(sheet, verdicts, pictures, content["notes"])


def to_text(section: Section) -> str:
    """The whole section in Markdown: verdicts, tables, figures and how it was made."""
    sheet = section.sheet
    facts = sheet.facts
    parts = [f"# {facts['title']}", f"{facts['source']}. {facts['about']}"]
    parts += ["\n".join(f"- {verdict.line}" for verdict in section.verdicts)]
    if metrics_of(sheet):
        parts += [to_markdown(matrix_table(sheet)).strip()]
    parts += [f"![{caption}]({path.name})" for path, caption in section.pictures]
    if metrics_of(sheet):
        parts += ["## Every cell", to_markdown(detail_table(sheet)).strip()]
    parts += ["## How it was made", *_provenance(sheet)]
    parts += [f"Note: {note}." for note in section.notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def _provenance(sheet: Sheet) -> list[str]:
    made = sheet.facts["made"]
    lines = "\n".join(f"- {name}: {value}" for name, value in made.items() if value)
    seeds = sorted({trial.seed for result in sheet.results for trial in result.trials})
    return [f"- seeds: {', '.join(map(str, seeds)) or 'none finished'}\n{lines}"]


def _as_json(section: Section) -> dict[str, Any]:
    """Every finished run's numbers: small enough to be kept with a publication."""
    sheet = section.sheet
    return {
        "name": sheet.name,
        "scale": sheet.scale,
        "made": sheet.facts["made"],
        "verdicts": [asdict(verdict) for verdict in section.verdicts],
        "figures": [{"file": p.name, "caption": text} for p, text in section.pictures],
        "notes": list(section.notes),
        "results": [
            {
                "data": result.setting.data,
                "shift": result.setting.shift,
                "variant": result.setting.variant,
                "label": result.method,
                "synthetic": result.synthetic,
                **trial.as_json(),
                "run": trial.run.folder.name,
            }
            for result in sheet.results
            for trial in result.trials
        ],
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
