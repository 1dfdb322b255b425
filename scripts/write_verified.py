"""Write docs/verified.md and its picture: what verified rows give, from the kept benchmarks.

python -m scripts.write_verified

The numbers are those of benchmarks/results/label-*.json. A test compares the page with them.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from diw.reports import COLOURS
from reproduction.style import WIDTH, styled

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "verified.md"
PICTURE = ROOT / "docs" / "images" / "verified-rows.png"
TEXT = ROOT / "scripts" / "verified_template.md"

ERRORS = {
    "digits symmetric": "at random",
    "digits pair": "to the next class",
    "digits annotator": "of a weak annotator",
    "questions rules": "of rules",
}
DPI = 150
RIVALS = "given", "weighted 5", "verified alone", "CleanLearning"


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(page(), encoding="utf-8")
    draw(results("rows"), PICTURE)
    print(f"{PAGE}\n{PICTURE}")


def results(name: str) -> dict[str, Any]:
    """What a benchmark has kept."""
    path = ROOT / "benchmarks" / "results" / f"label-{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def page() -> str:
    """The page's text: the template with tables from the kept results."""
    model, share = results("model")["cells"], results("share")["cells"]
    parts = {
        "seeds": seeds(results("rows")["cells"]),
        "accuracy": accuracy(model),
        "accuracy-verdict": accuracy_verdict(model),
        "detection": detection(model),
        "detection-verdict": detection_verdict(model),
        "share": shares(share),
        "share-verdict": share_verdict(share),
        "images": images(results("images")["runs"]),
        "speed": speed(results("speed")["results"]),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part.strip("\n"))
    return text


def seeds(cells: Mapping[str, Any]) -> str:
    """How many draws the picture shows."""
    count = min(len(cell) for cell in cells.values())
    return "One draw" if count == 1 else f"Means of {count} draws"


def accuracy(cells: Mapping[str, Any]) -> str:
    """Each cell beside its rivals."""
    head = ["data, errors, learner, verified", "draws", "ours", *RIVALS, "right labels", "ahead"]
    rows = [
        [
            _named(name),
            str(cell["seeds"]),
            f"**{cell['ours']:.1f}**",
            *(f"{cell[rival]:.1f}" for rival in RIVALS),
            f"{cell['right']:.1f}",
            f"{cell['ahead of the mean']:+.1f}"
            + ("" if cell["asked"] is None else f" (asked {cell['asked']:.1f})"),
        ]
        for name, cell in sorted(cells.items())
    ]
    return _table(head, rows)


def accuracy_verdict(cells: Mapping[str, Any]) -> str:
    """Where the asked figures are missed, and by how much."""
    noisy = {name: cell for name, cell in cells.items() if cell["asked"] is not None}
    short = {
        name: cell["asked"] - cell["ahead of the mean"]
        for name, cell in noisy.items()
        if cell["ahead of the mean"] < cell["asked"]
    }
    behind = {
        name: cell["clearly behind"] for name, cell in cells.items() if cell["clearly behind"]
    }
    text = f"As far ahead as asked in {len(noisy) - len(short)} of {len(noisy)} cells with errors"
    if short:
        missed = (f"{_named(name)} by {gap:.1f}" for name, gap in sorted(short.items()))
        text += f"; short of it: {'; '.join(missed)}"
    text += f". Clearly behind a rival by more than a point in {len(behind)} of {len(cells)} cells"
    if behind:
        text += ": " + "; ".join(f"{_named(name)} ({', '.join(b)})" for name, b in behind.items())
    few = sum(cell["seeds"] < 20 for cell in cells.values())
    single = sum(cell["seeds"] == 1 for cell in cells.values())
    text += f". In {few} cells there are fewer than the 20 draws that were asked" if few else ""
    text += f", in {single} there is one, which says nothing of being clearly behind" * (single > 0)
    return text + "."


def detection(cells: Mapping[str, Any]) -> str:
    """AUROC of each cell with errors."""
    head = ["data, errors, learner, verified", "ours", "cleanlab's score"]
    rows = [
        [_named(name), f"**{cell['auroc']:.3f}**", f"{cell['cleanlab auroc']:.3f}"]
        for name, cell in sorted(cells.items())
        if "auroc" in cell
    ]
    return _table(head, rows)


def detection_verdict(cells: Mapping[str, Any]) -> str:
    """Where cleanlab's score of the same probabilities is better."""
    found = {name: cell for name, cell in cells.items() if "auroc" in cell}
    behind = [_named(name) for name, cell in found.items() if cell["auroc clearly behind"]]
    where = f": {'; '.join(behind)}" if behind else ""
    questions = [f"{c['auroc']:.3f}" for n, c in sorted(found.items()) if n.startswith("questions")]
    asked = f" On questions 0.87 was asked: {', '.join(questions)}." if questions else ""
    return f"Clearly behind by 0.01 in {len(behind)} of {len(found)} cells{where}.{asked}"


def shares(cells: Mapping[str, Any]) -> str:
    """Coverage and width of each cell."""
    head = ["data, errors, verified", "draws", "held the truth", "width", "Wilson's", "ratio"]
    rows = [
        [
            _named(name),
            f"{cell['draws']:,}",
            f"{100 * cell['held'] / cell['draws']:.1f}%",
            f"{100 * cell['width'] / cell['draws']:.1f}",
            f"{100 * cell['wilson'] / cell['draws']:.1f}",
            f"{cell['width'] / cell['wilson']:.2f}",
        ]
        for name, cell in cells.items()
        if cell["draws"]
    ]
    return _table(head, rows)


def share_verdict(cells: Mapping[str, Any]) -> str:
    """The least and the mean coverage, and how much narrower the intervals are."""
    found = {name: cell for name, cell in cells.items() if cell["draws"]}
    held = {name: cell["held"] / cell["draws"] for name, cell in found.items()}
    ratio = np.mean([c["width"] / c["wilson"] for n, c in found.items() if n.endswith(" 200")])
    least = min(held, key=lambda name: held[name])
    return (
        f"On average {100 * np.mean(list(held.values())):.1f}% held the truth, the least "
        f"{100 * held[least]:.1f}% ({_named(least)}). At 200 rows the intervals are "
        f"{100 * (1 - ratio):.0f}% narrower than Wilson's on average."
    )


def images(runs: Mapping[str, Any]) -> str:
    """The audit of runs on the embedded images."""
    rows = [
        [
            name,
            f"{run['auroc']:.3f}",
            f"{100 * run['wrong']:.1f}%",
            "{:.1f}% ({:.1f} to {:.1f}%)".format(*(100 * value for value in run["share"])),
        ]
        for name, run in runs.items()
    ]
    held = sum(run["held"] for run in runs.values())
    good = sum(run["auroc"] >= 0.9 for run in runs.values())
    table = _table(["run", "AUROC", "wrong labels", "as estimated"], rows)
    return (
        f"{table}\n\nAUROC of at least 0.90 in {good} of {len(runs)} runs; the interval held the "
        f"share in {held} of {len(runs)}."
    )


def speed(cases: Mapping[str, Mapping[str, float]]) -> str:
    """Seconds and memory of each case."""
    rows = [
        [name, ", ".join(f"{value:,g} {unit}" for unit, value in figures.items())]
        for name, figures in cases.items()
    ]
    return _table(["case", "takes"], rows)


def draw(kept: Mapping[str, Any], path: Path) -> None:
    """One column of panels for each kind of errors: accuracy, AUROC, width of the interval."""
    cells = {name: kept["cells"][name] for name in ERRORS if name in kept["cells"]}
    with styled():
        figure, axes = plt.subplots(
            3, len(cells), figsize=(WIDTH, 4.2), sharex=True, sharey="row", layout="constrained"
        )
        for column, (name, cell) in zip(axes.T, cells.items(), strict=True):
            _panels(column, list(cell.values()))
            column[0].set_title(f"{name.partition(' ')[0]}, errors\n{ERRORS[name]}")
            column[2].set_xlabel("verified rows")
        for axis, label in zip(
            axes[:, 0], ("accuracy (%)", "AUROC", "width (points)"), strict=True
        ):
            axis.set_ylabel(label)
        axes[2, 0].set_ylim(bottom=0)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        figure.savefig(path, dpi=DPI)
        plt.close(figure)


def _panels(axes: Any, runs: Sequence[Mapping[str, Any]]) -> None:
    """The three panels of one kind of errors, means of the draws."""
    counts = sorted(int(name) for name in runs[0] if name.isdecimal())

    def mean(key: str) -> list[float]:
        return [float(np.mean([run[str(m)][key] for run in runs])) for m in counts]

    def level(key: str) -> list[float]:
        return [float(np.mean([run[key] for run in runs]))] * len(counts)

    grey, blue, vermilion, green = COLOURS[6], COLOURS[0], COLOURS[1], COLOURS[2]
    for values, label, colour, line in (
        (mean("ours"), "ours", blue, "-"),
        (mean("verified alone"), "verified rows alone", vermilion, "--"),
        (level("CleanLearning"), "cleanlab", green, "-."),
        (level("right"), "all labels right", grey, ":"),
    ):
        axes[0].plot(counts, values, line, color=colour, label=label)
    axes[1].plot(counts, mean("auroc"), "-", color=blue)
    axes[1].plot(counts, mean("cleanlab auroc"), "-.", color=green)
    axes[2].plot(counts, mean("width"), "-", color=blue)
    axes[2].set_xscale("log")
    axes[2].set_xticks(counts, [str(count) for count in counts])
    axes[2].minorticks_off()


def _named(name: str) -> str:
    """A cell in words: `digits pair logistic 60` as "digits, pair, logistic, 60"."""
    return ", ".join(name.split())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
