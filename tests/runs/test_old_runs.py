"""A run trained before the records were typed (commit 894a7df) is found, read and reported.

    diw train --epochs 2 --method diw --shift symmetric:0.4 --model mlp --device cpu \
        --data rows.csv --test test.csv --trusted rows:0,1,2,3,4,5,6,7
"""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from diw.reports.summary import summarise
from diw.runs import find_run, find_runs, spec_hash
from diw.training.recorded import execute
from tests.own_data import done

OLD = Path(__file__).parent / "old_runs"
NAME = "b702c7194a9b6625"
COMMAND = (
    *("train", "--epochs", "2", "--method", "diw", "--shift", "symmetric:0.4", "--model", "mlp"),
    *("--device", "cpu", "--data", "rows.csv", "--test", "test.csv"),
    *("--trusted", "rows:0,1,2,3,4,5,6,7"),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as its user left it: two files, and the run in runs/train."""
    shutil.copytree(OLD / NAME, tmp_path / "runs" / "train" / NAME)
    for name, (_, _, changed) in find_run(OLD).spec.files.items():
        shutil.copy(OLD / name, tmp_path)
        os.utime(tmp_path / name, ns=(changed, changed))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_hash_is_its_name() -> None:
    run = find_run(OLD)
    assert run.folder.name == NAME
    assert spec_hash(run.spec_json) == spec_hash(run.spec.as_json()) == NAME
    assert run.spec.run(OLD) == run


def test_its_spec_is_read_into_fields() -> None:
    spec = find_run(OLD).spec
    assert (spec.method, spec.shift, spec.model, spec.test) == (
        *("diw", "symmetric:0.4", "mlp"),
        "test.csv",
    )
    assert spec.method_fields["bound"] == 50.0
    assert (spec.recipe.epochs, spec.recipe.lr, spec.recipe.schedule) == (2, 2e-4, "step:40:0.1")
    assert spec.observe == ()


def test_its_summary_is_what_the_old_code_said() -> None:
    summary = summarise(find_run(OLD))
    assert (summary.method, summary.seed, summary.epochs, summary.seconds) == ("diw", 0, 2, 0.015)
    assert (summary.last_accuracy, summary.best_accuracy) == (0.2, 0.2)
    assert summary.weight_auroc == pytest.approx(0.9360119047619048)
    assert summary.weight_mae == pytest.approx(0.4101029259817941)
    assert summary.weight_rmse == pytest.approx(0.49351426701747697)
    assert summary.ess == pytest.approx(0.7916561710660664)
    assert (summary.balanced_classes, summary.scored_on) == (True, "test")


def test_it_is_reported(place: Path) -> None:
    out = done("report", "runs", "--json", "numbers.json")
    assert "40% symmetric label noise on rows.csv" in out
    content = json.loads((place / "numbers.json").read_text())
    assert content["results"][0]["run"] == f"runs/train/{NAME}"
    assert content["spec"] == json.loads((OLD / NAME / "spec.json").read_text())
    assert "40 training samples, seed 0." in (place / "runs" / "report.html").read_text()


def test_its_spec_finds_it_and_trains_nothing(place: Path) -> None:
    before = (place / "runs" / "train" / NAME / "model.safetensors").stat().st_mtime_ns
    assert execute(find_run(OLD).spec, place / "runs" / "train").folder.name == NAME
    assert [path.name for path in (place / "runs" / "train").iterdir()] == [NAME]
    assert (place / "runs" / "train" / NAME / "model.safetensors").stat().st_mtime_ns == before


def test_the_same_command_has_another_recipe_now_and_leaves_it_alone(place: Path) -> None:
    done(*COMMAND)
    runs = find_runs(place / "runs")
    assert len(runs) == 2
    now = next(run.spec.recipe for run in runs if run.folder.name != NAME)
    assert (now.epochs, now.optimizer, now.reduction) == (2, "adamw", "mean")


def test_its_network_still_predicts_and_is_scored(place: Path) -> None:
    (place / "new.csv").write_text("a,b\n-0.5,0.2\n2.1,1.7\n0.9,1.1\n")
    done("predict", "runs", "new.csv", "--out", "p.csv", "--device", "cpu")
    with (place / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["yes", "no", "yes"]
    probabilities = [float(row["p_no"]) for row in rows]
    assert probabilities == pytest.approx([0.476055, 0.501897, 0.487755], abs=2e-6)
    assert "accuracy           20.00%" in done("evaluate", "runs", "--device", "cpu")
