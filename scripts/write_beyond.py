"""Write docs/beyond.md and its figures: the default beside all other methods, from the kept runs.

    python -m scripts.write_beyond

Accuracies are those of results/cpu/beyond*/, costs those of benchmarks/results/steps.json. Where
runs are missing the page says how many. A test compares the page with the results.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from diw.config import DEFAULT_METHOD
from diw.pages import (
    Cell,
    Column,
    difference_cell,
    make_table,
    number_cell,
    text_cell,
    to_markdown,
)
from diw.reports import COLOURS, INK, MUTED, mean_and_std, paired_interval
from reproduction.catalogue import catalogue
from reproduction.plan import PlannedCell, plan

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "beyond.md"
FIGURES = ROOT / "docs" / "images"
TEXT = ROOT / "scripts" / "beyond_template.md"
STEPS = ROOT / "benchmarks" / "results" / "steps.json"

STUDY = ("beyond", "beyond-rivals")
NOISE = ("symmetric:0.4", "symmetric:0.5", "pair:0.3", "pair:0.45")
SETTINGS = {
    **{
        (shift, ""): title
        for shift, title in zip(NOISE, ("0.4 sym", "0.5 sym", "0.3 pair", "0.45 pair"), strict=True)
    },
    ("symmetric:0.4", "late fall"): "0.4 sym, late fall",
    ("instance:0.4", ""): "0.4 instance",
    ("none", ""): "no noise",
    ("prior:0.2,100", ""): "prior 100:1",
}
COVARIATE = {("covariate:1", ""): "covariate"}
SUPPORT = {
    ("support:0.2", ""): "classes",
    ("support:0.2", "trusted kept out"): "classes, trusted kept out",
    ("region:0.2", ""): "region",
}
SIZES = (20, 50, 100, 500, 1000)
WRONG = (0, 2, 5, 10)
TRUSTED = {
    **{("symmetric:0.4", f"{size:,} trusted"): f"{size:,}" for size in SIZES},
    **{("symmetric:0.4", f"500 trusted, {share}% wrong"): f"{share}% wrong" for share in WRONG[1:]},
}

NEAR = 1.2
"""Methods that cost less have their names in one column of the figure."""

Setting = tuple[str, str]
"""Shift and variant."""
Trials = Mapping[Setting, Mapping[str, Mapping[int, Mapping[str, Any]]]]
"""What was measured, by setting, method and seed."""


def main() -> None:
    """Write the page and draw the figures."""
    PAGE.write_text(page(), encoding="utf-8")
    draw_costs(read(STUDY), FIGURES / "accuracy-and-cost.png")
    draw_trusted(read(["beyond-trusted"]), FIGURES / "trusted-samples.png")


def page() -> str:
    """The page's text: the template with tables and counts from the kept results."""
    study, support = read(STUDY), read(["beyond-support"])
    covariate, trusted = read(["beyond-covariate"]), read(["beyond-trusted"])
    parts = {
        "accuracy": table(study, SETTINGS, "last10_accuracy", cost=True),
        "best": table(study, SETTINGS, "best_accuracy"),
        "calibration": table(study, SETTINGS, "last10_calibration_error", lowest=True),
        "differences": differences(study),
        "covariate": table(covariate, COVARIATE, "last10_accuracy"),
        "trusted": table(trusted, TRUSTED, "last10_accuracy"),
        "support": table(support, SUPPORT, "last10_accuracy"),
        "runs": runs(),
        "missing": missing(),
        "claims": claims(),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part.strip("\n"))
    return text


def read(names: Sequence[str]) -> Trials:
    """The kept results of several experiments, together."""
    found: dict[Setting, dict[str, dict[int, Any]]] = {}
    for name in names:
        for row in _rows(name):
            by_method = found.setdefault((row["shift"], row["variant"]), {})
            by_method.setdefault(row["label"], {})[row["seed"]] = row
    return found


def _kept(name: str) -> dict[str, Any]:
    path = ROOT / "results" / "cpu" / name / f"{name}.json"
    empty = {"results": [], "verdicts": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else empty


def _rows(name: str) -> list[dict[str, Any]]:
    return _kept(name)["results"]


def costs() -> dict[str, float]:
    """A step of each method in steps of plain training, LeNet-5 on one core."""
    return json.loads(STEPS.read_text(encoding="utf-8"))["step over uniform"]


def cost_of(label: str) -> float:
    """The cost of a method of the study, whatever it says of its solver."""
    return costs()[label.split(",")[0]]


def table(
    trials: Trials,
    settings: Mapping[Setting, str],
    measure: str,
    *,
    cost: bool = False,
    lowest: bool = False,
) -> str:
    """Means in per cent by method and setting; the best of several seeds (not `truth`) is bold."""
    shown = {setting: title for setting, title in settings.items() if setting in trials}
    if not shown:
        return "*Not run yet.*"
    labels = dict.fromkeys(label for setting in shown for label in trials[setting])
    means = {
        setting: {
            label: mean_and_std([100 * row[measure] for row in by_seed.values()])
            for label, by_seed in trials[setting].items()
            if all(row[measure] is not None for row in by_seed.values())
        }
        for setting in shown
    }
    best = {
        setting: (min if lowest else max)(
            (mean for label, (mean, std) in values.items() if label != "truth" and std is not None),
            default=None,  # one seed makes no best
        )
        for setting, values in means.items()
    }

    def cell(label: str, setting: Setting) -> Cell:
        if label not in means[setting]:
            return Cell("–")
        mean, std = means[setting][label]
        return number_cell(mean, std, digits=1, strong=mean == best[setting] and std is not None)

    lines: list[list[tuple[Column, Cell]]] = []
    for label in labels:
        line = [(Column("method", "method", "left"), text_cell(label))]
        if cost:
            line.append((Column("cost", "cost"), number_cell(cost_of(label))))
        line += [(Column(title, title), cell(label, setting)) for setting, title in shown.items()]
        lines.append(line)
    return to_markdown(make_table(lines))


def differences(trials: Trials) -> str:
    """The default minus each other method, with its 95% interval over the seeds that both have."""
    shown = {setting: title for setting, title in SETTINGS.items() if setting in trials}
    labels = dict.fromkeys(label for setting in shown for label in trials[setting])
    lines: list[list[tuple[Column, Cell]]] = []
    for label in labels:
        if label == DEFAULT_METHOD:
            continue
        line = [(Column("method", "the default minus", "left"), text_cell(label))]
        for setting, title in shown.items():
            line.append((Column(title, title), _difference(trials[setting], label)))
        lines.append(line)
    return to_markdown(make_table(lines))


def _difference(trials: Mapping[str, Mapping[int, Mapping[str, Any]]], label: str) -> Cell:
    ours, other = trials.get(DEFAULT_METHOD, {}), trials.get(label, {})
    seeds = sorted(ours.keys() & other.keys())
    if len(seeds) < 2:
        return difference_cell(None, None)
    a, b = ([values[seed]["last10_accuracy"] for seed in seeds] for values in (ours, other))
    low, high = paired_interval(a, b)
    cell = difference_cell(mean_and_std(a)[0] - mean_and_std(b)[0], (low, high))
    return replace(cell, strong=low > 0 or high < 0)


def runs() -> str:
    """How many runs of each result are there, and how many it has."""
    lines: list[list[tuple[Column, Cell]]] = []
    for name, cells in _planned():
        there, of = (sum(counts) for counts in zip(*(_counts(cell) for cell in cells), strict=True))
        lines.append(
            [
                (Column("name", "result", "left"), text_cell(f"`{name}`")),
                (Column("title", "what", "left"), text_cell(catalogue()[name].title)),
                (Column("runs", "runs kept"), text_cell(f"{there} of {of}")),
            ]
        )
    return to_markdown(make_table(lines))


def missing() -> str:
    """What is not run, by result and method: how many runs of which setting."""
    lines: list[str] = []
    for name, cells in _planned():
        by_method: dict[str, list[str]] = {}
        for cell in cells:
            there, of = _counts(cell)
            if there < of:
                setting = ", ".join(part for part in (cell.shift, cell.variant) if part)
                by_method.setdefault(cell.entry.label, []).append(
                    f"{setting} ({of - there} of {of})"
                )
        lines += [f"- `{name}`, `{label}`: {'; '.join(of)}" for label, of in by_method.items()]
    return "\n".join(lines) or "Nothing."


def _planned() -> Iterator[tuple[str, list[PlannedCell]]]:
    """The results of this page, and what each of them asks."""
    for name, experiment in catalogue().items():
        if _is_ours(name) and experiment.data["cpu"]:
            yield name, plan(experiment, "cpu")


def _counts(cell: PlannedCell) -> tuple[int, int]:
    """How many runs of a cell are kept, and how many it asks."""
    there = sum(spec.run(ROOT).folder.name in _all_kept() for spec in cell.specs)
    return there, len(cell.specs)


@cache
def _all_kept() -> frozenset[str]:
    """The runs of all results of this page; results share some."""
    return frozenset(row["run"] for name in catalogue() if _is_ours(name) for row in _rows(name))


def claims() -> str:
    """What was expected, and what the runs say of it."""
    verdicts = [one for name in catalogue() if _is_ours(name) for one in _kept(name)["verdicts"]]
    lines = [
        f"- {one['claim']} **{one['outcome'].capitalize()}**: {one['finding']}" for one in verdicts
    ]
    return "\n".join(lines)


def _is_ours(name: str) -> bool:
    return name.startswith("beyond")


def draw_costs(trials: Trials, path: Path) -> None:
    """Mean accuracy under label noise against the cost of a step."""
    import matplotlib.pyplot as plt

    from reproduction.style import DPI, WIDTH, styled

    points = noise_points(trials)
    if not points:
        return
    with styled():
        figure, axis = plt.subplots(figsize=(WIDTH, 3.0), layout="constrained")
        heights = label_heights(points)
        for label, (cost, accuracy) in points.items():
            known = label == DEFAULT_METHOD
            axis.scatter(
                cost,
                accuracy,
                s=42 if known else 22,
                color=COLOURS[0] if known else MUTED,
                zorder=3,
            )
            axis.annotate(
                label,
                (cost, accuracy),
                xytext=(1.13 if cost < NEAR else 1.05 * cost, heights[label]),
                arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkB": 3},
                va="center",
                color=INK,
                bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                fontweight="bold" if known else "normal",
            )
        axis.set_xscale("log")
        ticks = (1, 1.5, 2, 3, 4)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xlim(0.95, 5.2)
        axis.set_ylim(top=max(heights.values()) + 1)
        axis.set_xlabel("time of a step, in steps of plain training")
        axis.set_ylabel("accuracy under label noise, %")
        figure.savefig(path, dpi=DPI)


def label_heights(points: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Where the names stand: at their points, those of methods of like cost far enough apart."""
    heights = {label: accuracy for label, (_, accuracy) in points.items()}
    gap = 0.055 * (max(heights.values()) - min(heights.values()))
    columns: dict[float, list[str]] = {}
    for label, (cost, _) in points.items():
        columns.setdefault(1.0 if cost < NEAR else round(cost, 1), []).append(label)
    for column in columns.values():
        for below, above in pairwise(sorted(column, key=heights.__getitem__)):
            heights[above] = max(heights[above], heights[below] + gap)
    return heights


def noise_points(trials: Trials) -> dict[str, tuple[float, float]]:
    """Cost and mean accuracy over the four kinds of label noise, of methods that have them all."""
    settings = [(shift, "") for shift in NOISE]
    if not all(setting in trials for setting in settings):
        return {}
    common = set.intersection(*(set(trials[setting]) for setting in settings))
    points: dict[str, tuple[float, float]] = {}
    for label in trials[settings[0]]:
        if label in common:
            means = [
                mean_and_std([row["last10_accuracy"] for row in trials[s][label].values()])[0]
                for s in settings
            ]
            points[label] = (cost_of(label), 100 * sum(means) / len(means))
    return points


def draw_trusted(trials: Trials, path: Path) -> None:
    """Accuracy against the number of trusted samples, and against the share of wrong ones."""
    import matplotlib.pyplot as plt

    from reproduction.style import DPI, WIDTH, styled

    few = {float(size): f"{size:,} trusted" for size in SIZES}
    bad = {float(share): f"500 trusted, {share}% wrong" for share in WRONG}
    bad[0.0] = few[500.0]
    with styled():
        figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.6), sharey=True, layout="constrained")
        for axis, variants in zip(axes, (few, bad), strict=True):
            for label, colour in ((DEFAULT_METHOD, COLOURS[0]), ("uniform", MUTED)):
                points = {
                    place: mean_and_std([100 * row["last10_accuracy"] for row in seeds.values()])
                    for place, variant in variants.items()
                    if (seeds := trials.get(("symmetric:0.4", variant), {}).get(label))
                }
                means = [mean for mean, _ in points.values()]
                spreads = [std or 0.0 for _, std in points.values()]
                axis.errorbar(list(points), means, spreads, color=colour, marker="o", label=label)
        axes[0].set_xscale("log")
        axes[0].set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axes[0].minorticks_off()
        axes[0].set_xlabel("trusted samples")
        axes[0].set_ylabel("accuracy, %")
        axes[1].set_xticks(WRONG)
        axes[1].set_xlabel("wrong labels among 500 trusted samples, %")
        axes[1].legend()
        figure.savefig(path, dpi=DPI)


if __name__ == "__main__":
    main()
