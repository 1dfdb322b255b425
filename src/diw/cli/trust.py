"""`diw trust`: draw rows to check, and say what the checked ones know."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diw.cli.options import COUNT, FILE, FOLDER, PATH, SEED, Reading, Results, say, say_next, takes
from diw.errors import UsageError
from diw.runs import find_run

if TYPE_CHECKING:
    from diw.trust import Draw, Items, Known

EXAMPLES = """
\b
Examples:
  diw trust draw train.csv --label status -n 100 --out check
  diw trust draw photos -n 100 --out check
  diw trust draw train.csv --label status --from model -n 50 --out check
  diw trust read check/verified.csv
  diw trust read check/check.csv --out verified.csv
  diw trust read anna.csv ben.csv --draw check
"""

WAYS = click.Choice(["stratified", "random"])


@click.group(epilog=EXAMPLES)
def trust() -> None:
    """Get labels that one can trust: draw rows, check them, see what they say.

    `draw` writes a page (check.html) and a sheet (check.csv) to check rows with; `read` says how
    many labels are wrong, and how sure that is. The rows are then what --verified of the other
    verbs takes.
    """


@trust.command()
@click.argument("data")
@click.option("--label", metavar="COLUMN", help="Column, array or file with the given labels.")
@click.option(
    "-n", "--rows", type=COUNT, default=100, show_default=True, help="How many rows to draw."
)
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for the page and the sheet; a second draw into it goes on from the first.",
)
@click.option(
    "--way",
    type=WAYS,
    default="stratified",
    show_default=True,
    help="In proportion to the given classes, at least two of each; or at random from all.",
)
@click.option(
    "--from",
    "run",
    type=PATH,
    metavar="RUN",
    help="Draw half of the rows where this run on DATA doubts the label.",
)
@click.option(
    "--probabilities",
    type=FILE,
    metavar="TABLE",
    help="The same by class probabilities of any model, p_CLASS as `diw predict` writes them.",
)
@click.option(
    "--to",
    "tool",
    type=click.Choice(["label-studio", "argilla", "jsonl"]),
    help="Also write the rows for this tool; `read` takes what it exports.",
)
@click.option("--text", metavar="COLUMN", help="A column to be shown as a text.")
@click.option(
    "--show-given",
    is_flag=True,
    help="Show the given label before one has chosen: people then tend to agree with it.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Decides which rows.")
@takes
def draw(
    data: str,
    label: str | None,
    rows: int,
    out: Path,
    way: str,
    run: Path | None,
    probabilities: Path | None,
    tool: str | None,
    text: str | None,
    show_given: bool,
    seed: int,
    reading: Reading,
    results: Results,
) -> None:
    """Draw rows of DATA to check, with known probabilities.

    DATA is a table, arrays or a folder of images with a subfolder for each class. OUT gets
    check.html, a page to check them with, which saves verified.csv; check.csv, a sheet for those
    who prefer a spreadsheet; and draw.json, what was drawn. A second draw continues the first, and
    draws no row twice.
    """
    import numpy as np

    from diw.outputs import create_json, create_text
    from diw.trust import Draw, draw_rows, read_items
    from diw.trust.draw import INFORMED, STATE
    from diw.trust.informed import worth, wrong_labels
    from diw.trust.items import text_column
    from diw.trust.page import PAGE, render
    from diw.trust.sheet import CHECKED, SHEET, read_sheet, write_sheet
    from diw.trust.tools import TOOLS, write_tool

    if run is not None and probabilities is not None:
        raise UsageError("from: give either --from RUN or --probabilities TABLE")
    trained = None if run is None else find_run(run)
    reads = [Path(data), out / CHECKED, *([probabilities] if probabilities else [])]
    outputs = results.outputs(*reads, runs=[trained] if trained else [])
    goes_on = (out / STATE).exists()
    before = Draw.load(out) if goes_on else None
    number = 1 if before is None else len(before.rounds) + 1
    sheet = SHEET if number == 1 else SHEET.replace(".", f"-{number}.")
    folder = outputs.folder(out, sheet, PAGE, STATE, *TOOLS.get(tool or "", ()))
    items = read_items(data, label, reading.text_encoding)
    if before is None:
        home, counts = os.path.relpath(Path.cwd(), folder), np.bincount(items.given).tolist()
        before = Draw(data, home, label, reading.text_encoding, items.classes, tuple(counts))
    else:
        before.check(items)
    saved = folder / CHECKED
    answers = read_sheet(saved, before) if saved.exists() and before.rows else {}
    wrong, source = None, trained or probabilities
    if source is not None:
        right = {before.rows[place]: one.right for place, one in answers.items()}
        checked = {row: label for row, label in right.items() if label is not None}
        wrong = wrong_labels(source, items, checked)
    new = draw_rows(
        items.given,
        len(items.classes),
        rows,
        way=way if wrong is None else INFORMED,
        before=before.rows,
        wrong=wrong,
        seed=seed,
    )
    drawn = before.continued(items, new)
    chances = drawn.drawn(np.ones(len(drawn.rows), bool)).tolist()
    shown = items.show(drawn.rows)
    column = text_column(shown, text)
    look: dict[str, Any] = {"text": column, "show_given": show_given}
    files = {
        PAGE: render(drawn, shown, chances, answers=answers, **look),
        sheet: write_sheet(drawn, len(before.rows), shown, chances, show_given=show_given),
        **({} if tool is None else write_tool(tool, drawn, shown, chances, **look)),
    }
    for name, content in files.items():
        create_text(folder / name, content, force=results.force)
    create_json(folder / STATE, drawn.as_json(), force=results.force)
    _say_drawn(drawn, len(new.rows), items)
    if wrong is not None:
        same = worth(wrong, np.array(new.chance), np.array(new.rows))
        click.echo(f"of how many labels are wrong they tell as much as {same:.0f} drawn at random")
    click.echo("\n".join(str(folder / name) for name in files))
    results.write({"rows": drawn.rows, "drawn": chances})


def _say_drawn(drawn: "Draw", new: int, items: "Items") -> None:
    more = f", {len(drawn.rows):,} with those before" if new < len(drawn.rows) else ""
    click.echo(f"{new:,} of {len(items):,} rows drawn{more}")


@trust.command()
@click.argument("sheets", nargs=-1, required=True, type=FILE)
@click.option(
    "--draw", "folder", type=FOLDER, help="The folder of the draw, where the sheet is not in it."
)
@click.option("--out", type=FILE, help="Write what all sheets say together as one sheet.")
@takes
def read(sheets: tuple[Path, ...], folder: Path | None, out: Path | None, results: Results) -> None:
    """Say what checked rows know: how many labels are wrong, and how sure that is.

    SHEETS are verified.csv, as the page saved it, or a filled check.csv as any spreadsheet saved
    it. Rows in several sheets are held against each other: how far they agree, and which to talk
    about.
    """
    import numpy as np

    from diw.outputs import create_text
    from diw.trust import Draw, known, read_items, read_sheets
    from diw.trust.draw import STATE
    from diw.trust.sheet import write_verified

    missing = [sheet for sheet in sheets if not sheet.is_file()]
    if missing:
        raise UsageError(f"{missing[0]}: no such file; save it from check.html, or fill check.csv")
    folder = sheets[0].parent if folder is None else folder
    if not (folder / STATE).exists():
        raise UsageError(f"{folder}: holds no {STATE}; name the folder of the draw with --draw")
    drawn = Draw.load(folder)
    data = _data_of(drawn, folder)
    outputs = results.outputs(*sheets, folder / STATE, data)
    if out is not None:
        outputs.file(out)
    answers = read_sheets(sheets, drawn)
    if data.exists():
        items = read_items(str(data), drawn.label, drawn.text_encoding)
        drawn.check(items)
    else:
        say([f"{data} is not here, so the sheet was not compared with the data"])
    found = known(drawn, list(answers.values()))
    _say_known(found, list(answers))
    if out is not None:
        rows = [place in found.answers for place in range(len(drawn.rows))]
        chances = drawn.drawn(np.array(rows)).tolist()
        create_text(out, write_verified(drawn, found.answers, chances), force=results.force)
        click.echo(str(out))
    results.write(found.as_json())
    _say_next(drawn, sheets, out, folder)


def _data_of(drawn: "Draw", folder: Path) -> Path:
    """Where the data are, as seen from here."""
    return Path(os.path.normpath(folder / drawn.home / drawn.source))


def _say_known(found: "Known", sheets: list[str]) -> None:
    """The share of wrong labels, how sure it is, and what stands behind it."""
    from diw.pages import show
    from diw.trust.report import class_table, pair_table, sentences, talk_table

    for line in sentences(found, sheets):
        click.echo(line)
    for table in (class_table(found), pair_table(found), talk_table(found)):
        if table is not None:
            click.echo("")
            show(table)


def _say_next(drawn: "Draw", sheets: tuple[Path, ...], out: Path | None, folder: Path) -> None:
    verified = out or (sheets[0] if len(sheets) == 1 else None)
    data = str(_data_of(drawn, folder))
    label = [] if drawn.label is None else ["--label", drawn.label]
    left = min(50, sum(drawn.counts) - len(drawn.rows))
    draw = ["trust", "draw", data, *label, "-n", str(left), "--out", str(folder)]
    more = [draw] * bool(left)
    if verified is None:
        say_next(["trust", "read", *map(str, sheets), "--out", "verified.csv"], *more)
    else:
        train = ["train", "--data", data, *label, "--verified", str(verified), "--out", "model"]
        say_next(train, *more)
