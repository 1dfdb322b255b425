"""An experiment's files: Markdown, LaTeX and CSV tables, JSON results, PNG and PDF figures."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diw.files import write_json, write_text
from diw.pages import to_csv, to_markdown
from reproduction.claims import Verdict, verdicts
from reproduction.figures import drawings
from reproduction.results import Sheet
from reproduction.tables import detail_table, matrix_table, metrics_of, to_latex

NO_FIGURES = (
    "figures need matplotlib and scikit-learn; install them with: pip install --group paper"
)


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
