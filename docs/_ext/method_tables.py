"""The numbers on the pages of the methods, as Markdown, from the code and the kept results."""

import json
import tomllib
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from diw.methods import describe, find

ROOT = Path(__file__).parents[2]
STEPS = ROOT / "benchmarks" / "results" / "steps.json"
PUBLISHED = ROOT / "reproduction" / "specs" / "published.toml"
RESULTS = (
    *("paper/label-noise", "cpu/label-noise", "cpu/ablation", "cpu/class-prior"),
    *("cpu/beyond", "cpu/beyond-covariate", "cpu/beyond-rivals", "cpu/beyond-support"),
)
DATA = {"fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10", "cifar-100": "CIFAR-100"}


def fields_table(name: str) -> str:
    """Every field of a method with its default and meaning, from its class."""
    fields = describe(find(name))
    if not fields:
        return f"`{name}` has no fields."
    rows = [
        f"| `{field.name}` | `{field.default!r}` | {' '.join(_cell(field.text).split())} |"
        for field in fields
    ]
    first = fields[0].name
    made = f"`diw.methods.make({name!r}, {{{first!r}: …}})`"
    how = f"Set them with `--set {name}.{first}=…` or {made}."
    return "\n".join([how, "", "| field | default | meaning |", "|---|---|---|", *rows])


def cost_line(name: str) -> str:
    """What a step costs, relative to plain training, as benchmarked."""
    measured = json.loads(STEPS.read_text(encoding="utf-8"))
    ratio = measured["step over uniform"][name]
    return (
        f"A step takes **{ratio:.1f} times** as long as one of plain training "
        "(LeNet-5, batches and trusted batches of 256, one thread of a processor of the kind "
        f"{measured['machine']['model']}; `python -m benchmarks steps`)."
    )


def figures_table(name: str) -> str:
    """Test accuracy in the committed results, beside what the paper published."""
    rows: list[str] = []
    seen: set[str] = set()
    for folder in RESULTS:
        path = ROOT / "results" / folder / f"{Path(folder).name}.json"
        if not path.exists():
            continue
        for (data, shift), runs in _runs_of(path, name).items():
            same = {run["run"] for run in runs}
            if same <= seen:  # tables share runs
                continue
            seen |= same
            cells = (
                DATA.get(data, data),
                f"`{shift}`",
                f"[{path.stem}, {Path(folder).parts[0]}](../../results/{folder}/{path.stem}.md)",
                str(len(runs)),
                _spread([100 * run["last_accuracy"] for run in runs]),
                _spread([100 * run["best_accuracy"] for run in runs]),
                _published(path.stem, data, shift, name),
            )
            rows.append("| " + " | ".join(cells) + " |")
    if not rows:
        return ""
    head = "| data | shift | result, scale | seeds | last % | best % † | paper's last % |"
    note = (
        "Test accuracy of the last epoch, mean (standard deviation); † of the best epoch, which "
        "peeks at the test set. The paper's numbers are of its whole protocol; at `cpu` scale "
        "training is far shorter, so compare methods with each other, not with the paper."
    )
    return "\n".join([head, "|---|---|---|---:|---:|---:|---:|", *rows, "", note])


def _runs_of(path: Path, name: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The runs of a method as its protocol has it, by data and shift."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for run in json.loads(path.read_text(encoding="utf-8"))["results"]:
        if run["method"] == run["label"] == name and not run["variant"] and not run["synthetic"]:
            found[run["data"], run["shift"]].append(run)
    return found


def _published(result: str, data: str, shift: str, name: str) -> str:
    tables = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    for row in tables.get(result, []):
        if (row["data"], row["shift"]) == (data, shift) and name in row:
            return f"{row[name][0]:.2f} ({row[name][1]:.2f})"
    return "–"


def _spread(values: list[float]) -> str:
    return f"{mean(values):.2f}" + (f" ({stdev(values):.2f})" if len(values) > 1 else "")


def _cell(text: str) -> str:
    """Text that stands in a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("docs/estimators.md", "[estimators](../estimators.md)")
