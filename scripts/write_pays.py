"""Write docs/pays.md: the default beside what one would do otherwise, from the kept benchmark.

    python scripts/write_pays.py

The numbers are those of benchmarks/results/does-it-pay.json, which
`python -m benchmarks.does_it_pay --save` writes. A test compares the page with them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diw.config import DEFAULT_METHOD
from diw.pages import Cell, Column, difference_cell, make_table, text_cell, to_markdown
from diw.reports.statistics import paired_interval

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "pays.md"
RESULTS = ROOT / "benchmarks" / "results" / "does-it-pay.json"
TEXT = ROOT / "scripts" / "pays_template.md"

NETWORKS = (DEFAULT_METHOD, "uniform", "clean", "random", "reweight")
LEARNERS = ("logistic regression", "gradient boosting", "SVC")
WEIGHTS, SUSPECTS = f"weights of {DEFAULT_METHOD}", f"without suspects of {DEFAULT_METHOD}"
ROWS = {
    "all rows": "all rows",
    "trusted rows": "trusted rows",
    "cleanlab": "cleanlab",
    WEIGHTS: "our weights",
    SUSPECTS: "without our suspects",
}
"""What a learner is fitted to, and the column's title."""
OURS = (DEFAULT_METHOD, *(f"{name}, {rows}" for name in LEARNERS for rows in (WEIGHTS, SUSPECTS)))

Trials = Mapping[str, Mapping[str, float]]
"""Values by contender and seed."""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page's text: the template with tables and lists from the kept results."""
    cells = json.loads(RESULTS.read_text(encoding="utf-8"))["cells"]
    parts = {
        "verdicts": verdicts(cells),
        "learners": learners(cells),
        "networks": networks(cells),
        "detection": detection(cells),
        "summary": summary(cells),
        "network-behind": _list(cells, lambda found: _behind(found, [DEFAULT_METHOD])),
        "clean-ahead": _list(cells, _clean_ahead),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part.strip("\n"))
    return text


def verdicts(cells: Mapping[str, Any]) -> str:
    """For each column of results: the best of ours, the best of the others, the difference."""

    def rows(cell: str, measure: str, title: str) -> list[tuple[Column, Cell]]:
        found = _complete(cells[cell][measure])
        ours, other = _best(found, OURS), _best(found, [n for n in found if n not in OURS])
        words, interval = _verdict(found, ours, other)
        return [
            (Column("cell", "data and wrong labels", "left"), text_cell(cell + title)),
            (Column("ours", "best of ours", "left"), text_cell(_named(ours))),
            (Column("accuracy", "%"), text_cell(_mean(found[ours]))),
            (Column("other", "best of the others", "left"), text_cell(_named(other))),
            (Column("other_accuracy", "% "), text_cell(_mean(found[other]))),
            (Column("difference", "difference"), text_cell(interval)),
            (Column("verdict", "ours is", "left"), text_cell(words)),
        ]

    lines = [rows(*line) for line in _columns(cells)]
    return to_markdown(make_table(lines))


def learners(cells: Mapping[str, Any]) -> str:
    """Each learner on each choice of rows; the best of a line is bold."""
    lines: list[list[tuple[Column, Cell]]] = []
    for cell, found in cells.items():
        for learner in LEARNERS:
            trials = {rows: found["accuracy"].get(f"{learner}, {rows}") for rows in ROWS}
            if all(trials.values()):
                names = [
                    (Column("cell", "data and wrong labels", "left"), text_cell(cell)),
                    (Column("learner", "learner", "left"), text_cell(learner)),
                ]
                lines.append([*names, *_means(trials, ROWS)])
    return to_markdown(make_table(lines))


def networks(cells: Mapping[str, Any]) -> str:
    """The network trained by each method; the best of a line is bold."""
    lines: list[list[tuple[Column, Cell]]] = []
    for cell, found in cells.items():
        trials = {name: found["accuracy"].get(name) for name in NETWORKS}
        name = (Column("cell", "data and wrong labels", "left"), text_cell(cell))
        lines.append([name, *_means(trials, {n: n for n in NETWORKS})])
    return to_markdown(make_table(lines))


def detection(cells: Mapping[str, Any]) -> str:
    """AUROC of wrong against right labels; the best of a line is bold."""
    lines: list[list[tuple[Column, Cell]]] = []
    for cell, found in cells.items():
        trials = {"audit": found["detection"].get(DEFAULT_METHOD)}
        trials["weights"] = found.get("weights", {}).get(DEFAULT_METHOD)
        for learner in LEARNERS:
            trials[learner] = found["detection"].get(f"{learner}, cleanlab")
        titles = {"audit": "`diw audit`", "weights": f"weights of {DEFAULT_METHOD}"}
        titles |= {learner: f"cleanlab, {learner}" for learner in LEARNERS}
        name = (Column("cell", "data and wrong labels", "left"), text_cell(cell))
        rivals = [learner for learner in LEARNERS if trials[learner]]
        known = {who: values for who, values in trials.items() if values}
        lead = _verdict(known, "audit", _best(known, rivals))[1] if rivals else "–"
        column = Column("lead", "audit − best cleanlab, × 100")
        line = [name, *_means(trials, titles, scale=1, digits=3), (column, text_cell(lead))]
        lines.append(line)
    return to_markdown(make_table(lines))


def summary(cells: Mapping[str, Any]) -> str:
    """How many columns end how, in a sentence."""
    found: list[tuple[str, str, str]] = []
    for cell, measure, added in _columns(cells):
        trials = _complete(cells[cell][measure])
        others = [name for name in trials if name not in OURS]
        words, interval = _verdict(trials, _best(trials, OURS), _best(trials, others))
        found.append((words, interval, cell + added))
    words = [entry[0] for entry in found]
    told = ", ".join(
        f"{word} in {words.count(word)}" for word in ("better", "no clear difference", "worse")
    )
    _, interval, cell = min(found, key=lambda entry: _number(entry[1]))
    return (
        f"Ours against the best of the others, in {len(words)} columns: {told}. "
        f"The largest deficit is that of *{cell}*: {interval} points."
    )


def _number(interval: str) -> float:
    """The difference at the front of `−3.2 [−6.9, +0.4]`."""
    return float(interval.split()[0].replace("−", "-"))


def _columns(cells: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Cell, measure and what is added to its name."""
    found: list[tuple[str, str, str]] = []
    for cell in cells:
        found.append((cell, "accuracy", ""))
        if cell.startswith("imbalanced"):
            found.append((cell, "balanced", " (balanced accuracy)"))
    return found


def _complete(trials: Trials) -> Trials:
    """Contenders with as many seeds as any."""
    most = max(map(len, trials.values()))
    return {name: values for name, values in trials.items() if len(values) == most}


def _best(trials: Trials, names: Sequence[str]) -> str:
    known = [name for name in names if name in trials]
    return max(known, key=lambda name: float(np.mean(list(trials[name].values()))))


def _verdict(trials: Trials, ours: str, other: str) -> tuple[str, str]:
    """In a word, and the paired difference with its 95% interval, times a hundred."""
    seeds = sorted(trials[ours].keys() & trials[other].keys())
    a, b = ([trials[name][seed] for seed in seeds] for name in (ours, other))
    low, high = paired_interval(a, b)
    word = "better" if low > 0 else "worse" if high < 0 else "no clear difference"
    return word, difference_cell(float(np.mean(a) - np.mean(b)), (low, high)).text


def _behind(found: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether the best of these is clearly worse than the best contender that is not ours."""
    trials = _complete(found["accuracy"])
    others = [name for name in trials if name not in OURS]
    return _verdict(trials, _best(trials, names), _best(trials, others))[0] == "worse"


def _clean_ahead(found: Mapping[str, Any]) -> bool:
    """Whether trusted rows alone, by some learner, are better than all rows by any of them."""
    trials = _complete(found["accuracy"])
    alone = [name for name in trials if name == "clean" or name.endswith("trusted rows")]
    noisy = [name for name in trials if name not in (*alone, *OURS)]
    means = {name: float(np.mean(list(trials[name].values()))) for name in trials}
    return max(map(means.__getitem__, alone), default=0.0) > max(map(means.__getitem__, noisy))


def _list(cells: Mapping[str, Any], test: Callable[[Mapping[str, Any]], bool]) -> str:
    names = [cell for cell, found in cells.items() if test(found)]
    return "; ".join(names) or "none"


def _means(
    trials: Mapping[str, Mapping[str, float] | None],
    titles: Mapping[str, str],
    *,
    scale: int = 100,
    digits: int = 1,
) -> list[tuple[Column, Cell]]:
    """A cell per title; the best of those with all seeds is bold, others say their number."""
    seeds = {name: len(t) for name, t in trials.items() if t}
    means = {name: float(np.mean(list(t.values()))) for name, t in trials.items() if t}
    most = max(seeds.values())
    best = max(mean for name, mean in means.items() if seeds[name] == most)

    def cell(name: str) -> Cell:
        if name not in means:
            return Cell("–")
        text = f"{scale * means[name]:.{digits}f}"
        if seeds[name] < most:
            return Cell(f"{text} ({seeds[name]})")
        return Cell(text, strong=means[name] == best)

    return [(Column(name, title), cell(name)) for name, title in titles.items()]


def _mean(values: Mapping[str, float]) -> str:
    return f"{100 * float(np.mean(list(values.values()))):.1f}"


def _named(contender: str) -> str:
    """A contender as the tables' columns name it."""
    if contender == DEFAULT_METHOD or contender in NETWORKS:
        return f"network, {contender}"
    for rows, title in ROWS.items():
        contender = contender.replace(f", {rows}", f", {title}")
    return contender


if __name__ == "__main__":
    main()
