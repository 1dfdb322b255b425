"""The committed results: tables are what their records say, on the page on the paper too."""

import csv
import json
import re
import runpy
from collections import defaultdict
from pathlib import Path
from statistics import mean

import pytest

from diw.runs import RunSpec, spec_hash
from reproduction.catalogue import catalogue
from reproduction.kept import rows_of
from reproduction.plan import plan

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "results").glob("*/*/records.json"))
ACCURACY = {"accuracy %": 1, "accuracy % of the last ten epochs": 10}
"""How many epochs, from the last one back, each measure of a table is the mean of."""
TABLES = [
    path
    for path in KEPT
    if (table := path.with_name(f"{path.parent.name}.csv")).exists()
    and any(f",{measure}," in table.read_text(encoding="utf-8") for measure in ACCURACY)
]


def name_of(path: Path) -> str:
    return "/".join(path.parent.parts[-2:])


@pytest.mark.parametrize("path", KEPT, ids=name_of)
def test_a_result_says_what_made_it(path: Path) -> None:
    numbers = json.loads((path.parent / f"{path.parent.name}.json").read_text(encoding="utf-8"))
    made = numbers["made"]
    assert made["command"].startswith(("diw reproduce ", "python -m reproduction "))
    assert made["commit"]
    assert "dirty" not in made["commit"]
    assert made["processor"]
    runs = json.loads(path.read_text(encoding="utf-8"))
    seeds = {run["spec"]["seed"] for run in runs}
    assert seeds == set(range(min(seeds), max(seeds) + 1)), "no seed is left out"
    assert max(seeds) < 100, "those are for choosing"
    for kept in path.parent.iterdir():
        if kept.suffix in (".json", ".md", ".csv", ".tex"):
            assert not re.search(r"/(tmp|home|work|root)/", kept.read_text(encoding="utf-8")), kept


@pytest.mark.parametrize("path", TABLES, ids=name_of)
def test_a_table_is_the_mean_of_its_runs(path: Path) -> None:
    table = path.with_name(f"{path.parent.name}.csv")
    numbers = json.loads(table.with_suffix(".json").read_text(encoding="utf-8"))
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    measure = next(measure for measure in ACCURACY if any(row["metric"] == measure for row in rows))
    found = {
        run["run"]: mean(run["test_accuracy"][-ACCURACY[measure] :])
        for run in json.loads(path.read_text(encoding="utf-8"))
    }
    cells: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for run in numbers["results"]:
        place = tuple(run[axis] for axis in ("data", "shift", "variant", "label"))
        cells[place].append(found[run["run"]])
    means = sorted(mean(trials) for trials in cells.values())
    ours = [row["ours"] for row in rows if row["metric"] == measure and row["ours"]]
    assert sorted(map(float, ours)) == pytest.approx(means)


@pytest.mark.parametrize("path", KEPT, ids=name_of)
def test_a_kept_run_keeps_its_name_and_is_not_trained_again(path: Path, monkeypatch) -> None:
    """Every run is one that its experiment still plans, but for two at the authors' own solver."""
    monkeypatch.setattr("reproduction.plan.find", lambda _: "here")
    scale, name = path.parent.parts[-2:]
    records = json.loads(path.read_text(encoding="utf-8"))
    trials = 1 + max(record["spec"]["seed"] for record in records)
    cells = plan(catalogue()[name], scale, trials)
    planned = {spec.run(Path()).folder.name for cell in cells for spec in cell.specs}
    for record in records:
        spec = RunSpec.from_json(record["spec"])
        assert spec.run(Path()).folder.name == spec_hash(record["spec"]) == record["run"]
        assert len(rows_of(record)) == len(record["test_accuracy"])
        assert record["run"] in planned or spec.method_fields["solver"] == "cvxopt"


def test_all_runs_that_were_committed_are_there() -> None:
    assert sum(len(json.loads(path.read_text(encoding="utf-8"))) for path in KEPT) >= 832


def test_the_table_of_the_page_is_the_committed_one() -> None:
    page = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
    result = (ROOT / "results/cpu/label-noise/label-noise.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (?:Fashion-MNIST|) \|.*\| (?:ours|paper) \|.*$", page, re.MULTILINE)
    assert lines
    assert all(line in result for line in lines)


@pytest.mark.parametrize("name", ["beyond", "findings", "pays"])
def test_pages_that_are_written_are_what_the_results_say(name: str) -> None:
    script = ROOT / "scripts" / f"write_{name}.py"
    written = runpy.run_path(str(script))["page"]()
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == written
