"""Rows for the tools that people label with, and what those give back.

Label Studio imports tasks and exports them with annotations; Argilla reads and writes records as
JSON; anything else can have JSON Lines. A tool keeps what it is given beside a row, so the row is
known again by the same names as in a sheet.
"""

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from diw.auditing.samples import Samples
from diw.errors import UsageError
from diw.trust.draw import Draw

TOOLS = {
    "label-studio": ("label-studio.json", "label-studio.xml"),
    "argilla": ("argilla.json",),
    "jsonl": ("check.jsonl",),
}
"""What is written for each tool."""
QUESTION, SAMPLE = "right", "sample"
GIVEN = "given label"
"""Who says what a prediction says."""

Row = dict[str, str]


def write_tool(
    tool: str,
    draw: Draw,
    shown: Samples,
    drawn: Sequence[float],
    *,
    text: int | None = None,
    show_given: bool = False,
) -> dict[str, str]:
    """Texts by the name of their file, for one of `TOOLS`.

    Args:
        tool: Its name.
        draw: What was drawn.
        shown: What those rows hold.
        drawn: (m,) the probabilities with which they were drawn.
        text: The number of the column that is a text; None for none.
        show_given: Whether the given labels are there as predictions, which a tool shows.
    """
    rows = [_row(draw, place, drawn[place]) for place in range(len(draw.rows))]
    seen = [_seen(shown, place) for place in range(len(rows))]
    given = [draw.classes[number] for number in draw.given]
    if tool == "label-studio":
        numbered = [_numbered(cells) for cells in seen]
        made: list[Any] = [{"data": row | cells} for row, cells in zip(rows, numbered, strict=True)]
        for task, label in zip(made, given if show_given else [], strict=False):
            names = {"from_name": QUESTION, "to_name": SAMPLE, "type": "choices"}
            result = {**names, "value": {"choices": [label]}}
            task["predictions"] = [{"model_version": GIVEN, "result": [result]}]
        texts = _json(made), _config(draw, shown, text)
        return dict(zip(TOOLS[tool], texts, strict=True))
    if tool == "argilla":
        made = [
            {"id": row["content"], "fields": cells, "metadata": row, "suggestions": {}}
            for row, cells in zip(rows, seen, strict=True)
        ]
        for record, label in zip(made, given if show_given else [], strict=False):
            record["suggestions"] = {QUESTION: {"value": label, "score": None, "agent": GIVEN}}
        return {TOOLS[tool][0]: _json([{**one, "responses": {}, "vectors": {}} for one in made])}
    empty = {"right": "", "note": ""}
    flat = [row | empty | cells for row, cells in zip(rows, seen, strict=True)]
    if show_given:
        flat = [row | {"label": label} for row, label in zip(flat, given, strict=True)]
    lines = [json.dumps(row, ensure_ascii=False) for row in flat]
    return {TOOLS[tool][0]: "\n".join(lines) + "\n"}


def read_tool(path: Path) -> dict[str, list[tuple[int, Row]]]:
    """The rows in a file of a tool with their number, as a sheet has them, by who checked them.

    Args:
        path: The JSON export of Label Studio, records of Argilla, or JSON Lines with `right`.
    """
    try:
        whole = path.read_text(encoding="utf-8-sig")
        lines = whole.splitlines() if path.suffix.lower() == ".jsonl" else []
        records: Any = [json.loads(one) for one in lines if one.strip()] or json.loads(whole)
        found: dict[str, list[tuple[int, Row]]] = {}
        for number, record in enumerate(records, 1):
            for person, row in _said(record):
                found.setdefault(person, []).append((number, row))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise UsageError(
            f"{path}: is neither JSON of Label Studio or Argilla nor JSON Lines ({error!r})"
        ) from None
    if not found:
        raise UsageError(f"{path}: no row is checked yet")
    return found


def _said(record: dict[str, Any]) -> Iterator[tuple[str, Row]]:
    """What each person said of a row."""
    if "annotations" in record:
        for one in record["annotations"]:
            person = str(one.get("completed_by", ""))
            values = [part["value"].get("choices", []) for part in one["result"]]
            names = [name for value in values for name in value]
            right = names[0] if len(names) == 1 and not one.get("was_cancelled") else "?"
            yield person, {**_plain(record["data"]), "right": right}
    elif "responses" in record:
        for one in record["responses"].get(QUESTION, []):
            row = {**_plain(record["metadata"]), "right": str(one["value"])}
            yield str(one.get("user_id", "")), row
    else:
        yield "", _plain(record)


def _plain(row: dict[str, Any]) -> Row:
    return {name: "" if value is None else str(value).strip() for name, value in row.items()}


def _row(draw: Draw, place: int, chance: float) -> Row:
    file, row = draw.places[place]
    where = {"file": file, "row": "" if row is None else str(row)}
    return {**where, "drawn": f"{chance:.6g}", "content": draw.contents[place]}


def _seen(shown: Samples, place: int) -> Row:
    """The cells of a row, named as nothing else is; or its image."""
    if shown.images is not None:
        return {"image": shown.images[place]}
    cells = [] if shown.cells is None else shown.cells[place]
    return {f"data_{name}": cell for name, cell in zip(shown.columns, cells, strict=True)}


def _numbered(cells: Row) -> Row:
    """With names that Label Studio can refer to, whatever the columns are called."""
    if "image" in cells:
        return cells
    return {f"column{number}": cell for number, cell in enumerate(cells.values())}


def _config(draw: Draw, shown: Samples, text: int | None) -> str:
    """The labelling interface: what is seen, and a choice of classes."""
    seen = [f'<Image name="{SAMPLE}" value="$image"/>'] if shown.images is not None else []
    for number, column in enumerate(shown.columns):
        name = SAMPLE if number == (text or 0) else f"seen{number}"
        seen.append(f'<Header value="{escape(column)}" size="5"/>')
        seen.append(f'<Text name="{name}" value="$column{number}"/>')
    choices = [f'<Choice value="{escape(name)}"/>' for name in draw.classes]
    asked = f'<Choices name="{QUESTION}" toName="{SAMPLE}" choice="single">'
    return "\n".join(["<View>", *seen, asked, *choices, "</Choices>", "</View>"]) + "\n"


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
