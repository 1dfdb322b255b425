import json
from pathlib import Path

import numpy as np
import pytest

from diw.runs import Recipe, Run, RunSpec, Writer
from tests.own_data import done


def record(root: Path, method: str, seed: int, accuracy: float, *, finished: bool = True) -> Run:
    spec = RunSpec(method=method, shift="symmetric:0.4", seed=seed, recipe=Recipe(epochs=2))
    run = Run.create(spec.run(root).folder, spec.as_json())
    run.write_samples(targets=np.arange(6) % 2, flipped=np.arange(6) < 2)
    weights = np.array([1, 1, 1, 1, 1, 1] if method == "uniform" else [0, 0, 1, 1, 2, 2])
    journal = Writer(run.folder, 2, 6)
    for epoch in (1, 2):
        row = {"epoch": epoch, "train_loss": 1.0, "test_accuracy": accuracy, "seconds": 3.0 * epoch}
        journal.append(row | {"weighted": method != "uniform", "ess": 0.5}, weights)
    if finished:
        run.finish()
    return run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in (1, 2):
        record(tmp_path / "runs", "uniform", seed, 0.75)
        record(tmp_path / "runs", "diw", seed, 0.875)
    return tmp_path / "runs"


def test_rebuilds_table_page_and_json(runs: Path, tmp_path: Path) -> None:
    out, numbers = tmp_path / "page.html", tmp_path / "results.json"
    said = done("report", runs, "--out", out, "--json", numbers)
    assert "87.50 ± 0.00" in said
    assert str(out) in said
    assert out.read_text().startswith("<!doctype html>")
    content = json.loads(numbers.read_text())
    assert content["spec"]["shift"] == "symmetric:0.4"
    assert "method" not in content["spec"]
    assert [(r["method"], r["seed"], r["last_accuracy"]) for r in content["results"]] == [
        ("diw", 1, 0.875),
        ("diw", 2, 0.875),
        ("uniform", 1, 0.75),
        ("uniform", 2, 0.75),
    ]
    assert [r["weight_auroc"] for r in content["results"]] == [1.0, 1.0, None, None]


def test_accepts_a_single_run_and_writes_the_page_into_it(runs: Path) -> None:
    run = next(path for path in runs.iterdir())
    done("report", run)
    assert (run / "report.html").exists()


def test_says_what_it_left_out(runs: Path) -> None:
    record(runs, "random", 1, 0.5, finished=False)
    said = done("report", runs)
    assert "Left out: 1 of 5 runs" in said
    assert "random" not in said
