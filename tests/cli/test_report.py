import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from diw.cli.report import report
from diw.errors import UsageError
from diw.runs import Recipe, Run, RunSpec, Writer


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
    done = CliRunner().invoke(report, [str(runs), "--out", str(out), "--json", str(numbers)])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "87.50 ± 0.00" in done.output
    assert str(out) in done.output
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
    done = CliRunner().invoke(report, [str(run)])
    assert done.exit_code == 0, done.output
    assert (run / "report.html").exists()


def test_says_what_it_left_out(runs: Path) -> None:
    record(runs, "random", 1, 0.5, finished=False)
    done = CliRunner().invoke(report, [str(runs)])
    assert "Left out: 1 of 5 runs" in done.output
    assert "random" not in done.output


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_nothing_to_report_is_wrong_use(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(report, [str(tmp_path / place)])
    assert isinstance(done.exception, UsageError)
    assert list(tmp_path.rglob("*.html")) == []


def test_unwritable_files_are_refused_before_any_output(runs: Path, tmp_path: Path) -> None:
    for flag in ("--out", "--json"):
        done = CliRunner().invoke(report, [str(runs), flag, str(tmp_path / "no" / "file")])
        assert isinstance(done.exception, UsageError)
        assert str(done.exception).startswith(flag.lstrip("-"))
        assert done.output == ""
