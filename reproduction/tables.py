"""The paper's tables: a matrix in its layout, ours above theirs, and every number of each cell."""

from collections.abc import Sequence

from diw.pages import EMPTY, Cell, Column, Table, make_table, number_cell, signed, text_cell
from diw.reports import Standing, mean_and_std
from reproduction.catalogue import Published
from reproduction.results import FEWEST, FilledCell, Metric, Setting, Sheet, lower_is_better

NAMES: dict[Metric, str] = {
    "accuracy": "accuracy %",
    "last10": "accuracy % of the last ten epochs",
    "best": "accuracy % of the best epoch †",
    "balanced": "balanced accuracy %",
    "calibration": "calibration error %",
    "mae": "MAE",
    "rmse": "RMSE",
}

SCALE_NOTES = {
    "smoke": "Smoke scale: only shows that everything runs; the numbers mean nothing.",
    "cpu": "CPU scale: less data and fewer epochs than in the paper, so differences of level are "
    "expected; compare the order of the methods.",
    "paper": "Paper scale: the paper's protocol.",
}


PEEKS = "† The highest of any epoch: it peeks at the test set."

_LATEX = {
    **{character: rf"\{character}" for character in "{}%&#$_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "†": r"$\dagger$",
    "×": r"$\times$",
}


def metrics_of(sheet: Sheet) -> list[Metric]:
    """Which numbers an experiment's tables hold."""
    metrics: list[Metric] = []
    for output in sheet.outputs:
        if output == "distance":
            metrics.extend(("mae", "rmse"))
        elif output in NAMES:
            metrics.append(output)
    return metrics


def matrix_table(sheet: Sheet) -> Table:
    """The paper's layout: settings by methods; ours, the paper's and the difference in turn."""
    columns = [
        Column("data", "data", "left"),
        Column("setting", "setting", "left"),
        Column("whose", "", "left"),
        *(Column(method, method) for method in sheet.methods),
    ]
    rows: list[tuple[Cell, ...]] = []
    for setting in sheet.settings:
        for metric in metrics_of(sheet):
            rows += _rows(sheet, setting, metric)
    return Table(tuple(columns), tuple(rows), _caption(sheet), tuple(_notes(sheet)))


def detail_table(sheet: Sheet) -> Table:
    """One row per cell with everything known of it: for spreadsheets and for the curious."""
    rows = [
        _detail(sheet, setting, metric, method)
        for setting in sheet.settings
        for metric in metrics_of(sheet)
        for method in sheet.methods
    ]
    notes = [PEEKS] if {"accuracy", "best"} & set(sheet.outputs) else []
    return make_table(rows, f"{_caption(sheet)}: every cell", notes)


def _rows(sheet: Sheet, setting: Setting, metric: Metric) -> list[tuple[Cell, ...]]:
    places = sheet.standings(setting, metric)
    results = [sheet.at[setting, method] for method in sheet.methods]
    published = [result.published.get(metric) for result in results]
    ours = [_ours(result, places.get(result.method)) for result in results]
    suffix = f", {NAMES[metric]}" if metric != "accuracy" else ""
    head = (text_cell(sheet.data_title(setting)), text_cell(setting.label + suffix))
    if not any(published):
        return [(*head, text_cell("ours"), *ours)]
    blank = (Cell(""), Cell(""))
    theirs = [_theirs(number) for number in published]
    apart = [
        _difference(result, places.get(result.method), number)
        for result, number in zip(results, published, strict=True)
    ]
    return [
        (*head, text_cell("ours"), *ours),
        (*blank, text_cell("paper"), *theirs),
        (*blank, text_cell("difference"), *apart),
    ]


def _detail(
    sheet: Sheet, setting: Setting, metric: Metric, method: str
) -> list[tuple[Column, Cell]]:
    result, place = sheet.at[setting, method], sheet.standings(setting, metric).get(method)
    number = result.published.get(metric)
    printed = ("best or comparable" if number.best else "worse") if number else ""
    cells = [
        (Column("data", "data", "left"), text_cell(sheet.data_title(setting))),
        (Column("setting", "setting", "left"), text_cell(setting.label)),
        (Column("metric", "metric", "left"), text_cell(NAMES[metric])),
        (Column("method", "method", "left"), text_cell(method)),
        (Column("state", "state", "left"), text_cell(_state(result))),
        (Column("trials", "trials"), Cell(str(len(result.trials)), len(result.trials))),
        (Column("ours", "ours"), _ours(result, place)),
        (Column("verdict", "t-test", "left"), text_cell((place.mark if place else None) or "")),
        (Column("p_value", "p"), number_cell(place.p_value if place else None, digits=3)),
    ]
    if "accuracy" in sheet.outputs:
        cells.append((Column("last10", "last ten"), _mean(result, "last10")))
        cells.append((Column("best", "best †"), _mean(result, "best")))
    return [
        *cells,
        (Column("paper", "paper"), _theirs(number)),
        (Column("paper_verdict", "paper's test", "left"), text_cell(printed)),
        (Column("difference", "difference"), _difference(result, place, number)),
    ]


def _ours(result: FilledCell, place: Standing | None) -> Cell:
    if place is None:
        return Cell(_state(result))
    return _number(place.mean, place.std, strong=place.mark in ("best", "comparable"))


def _theirs(number: Published | None) -> Cell:
    if number is None:
        return Cell(EMPTY)
    return _number(number.mean, number.std, strong=number.best)


def _difference(result: FilledCell, place: Standing | None, number: Published | None) -> Cell:
    """Ours minus theirs; generated images have nothing to be compared with."""
    if place is None or number is None or result.synthetic:
        return Cell(EMPTY)
    gap = place.mean - number.mean
    return Cell(signed(gap, 2), gap)


def _mean(result: FilledCell, metric: Metric) -> Cell:
    values = list(result.values(metric).values())
    return _number(*mean_and_std(values)) if values else Cell(EMPTY)


def _number(mean: float, std: float | None, *, strong: bool = False) -> Cell:
    """As the paper writes it: mean (standard deviation)."""
    text = f"{mean:.2f}" if std is None else f"{mean:.2f} ({std:.2f})"
    return Cell(text, mean, std, strong)


def _state(result: FilledCell) -> str:
    if result.state != "planned":
        return "n/a" if result.state == "absent" else result.state
    return "done" if result.trials else "not run"


def _caption(sheet: Sheet) -> str:
    return f"{sheet.facts['title']} ({sheet.facts['source']}), {sheet.scale} scale"


def _notes(sheet: Sheet) -> list[str]:
    notes = [SCALE_NOTES[sheet.scale]]
    if "best" in sheet.outputs:
        notes.append(PEEKS)
    counts = sorted({len(result.trials) for result in sheet.results if result.trials})
    if counts:
        notes.append(_statistics_note(counts, lower=all(map(lower_is_better, metrics_of(sheet)))))
    if sheet.resolution and "accuracy" in metrics_of(sheet):
        notes.append(
            f"Runs that differ in rounding alone end {sheet.resolution / 2:.2f} points apart "
            f"(standard deviation): means closer than {sheet.resolution:.1f} are not "
            "distinguishable, and marked like the best."
        )
    if any(result.synthetic for result in sheet.results):
        notes.append("Synthetic: generated images replace missing data; nothing can be compared.")
    reasons = {r.reason for r in sheet.results if r.state == "no data" and r.reason}
    notes += [f"No data: {reason}." for reason in sorted(reasons)]
    absent = {r.reason for r in sheet.results if r.state == "absent"}
    notes += [f"n/a: {reason}." for reason in sorted(absent)]
    if any(result.state == "planned" and not result.trials for result in sheet.results):
        notes.append("Not run: no trial is finished.")
    return notes


def _statistics_note(counts: Sequence[int], *, lower: bool) -> str:
    if counts[-1] < FEWEST:
        return "Ours: one trial, so no test is claimed; the paper's: mean (standard deviation)."
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    few = f"; below {FEWEST} trials no test is claimed" if counts[0] < FEWEST else ""
    return (
        f"Ours: mean (standard deviation) over {span} trials. Bold or *: the "
        f"{'lowest' if lower else 'best'}, and what a paired t-test at 5% cannot distinguish "
        f"from it{few}."
    )


def to_latex(table: Table) -> str:
    """A `table` environment; needs the booktabs package."""
    shape = "".join("l" if column.align == "left" else "r" for column in table.columns)
    parts = [r"\begin{table}", r"\centering"]
    parts += [rf"\caption{{{_latex(table.caption)}}}"] if table.caption else []
    parts += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    parts += [" & ".join(_latex(column.title) for column in table.columns) + r" \\", r"\midrule"]
    for row in table.rows:
        texts = [rf"\textbf{{{_latex(c.text)}}}" if c.strong else _latex(c.text) for c in row]
        parts.append(" & ".join(texts) + r" \\")
    parts += [r"\bottomrule", r"\end{tabular}"]
    parts += [rf"\par\smallskip{{\footnotesize {_latex(note)}}}" for note in table.notes]
    return "\n".join([*parts, r"\end{table}"]) + "\n"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
