"""Kept results stand for runs wherever metrics are enough, and nowhere else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from diw.errors import UsageError
from diw.reports import summarise
from diw.runs import Run, Writer
from diw.training import execute, with_method
from reproduction.kept import RECORDS, forget_restored, kept_records, record_of, restore, rows_of
from tests.problems import TINY

SPEC = with_method(TINY, "diw")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return execute(SPEC, tmp_path_factory.mktemp("trained"))


@pytest.fixture
def kept(trained, tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "cpu" / "table"
    folder.mkdir(parents=True)
    (folder / RECORDS).write_text(json.dumps([record_of(trained)]))
    return tmp_path / "results"


def test_a_kept_run_is_restored_with_its_accuracies(trained, kept, tmp_path) -> None:
    other = replace(SPEC, seed=1)
    assert restore([SPEC, other], tmp_path / "runs", kept_records(kept)) == 1
    assert not other.run(tmp_path / "runs").finished
    run = SPEC.run(tmp_path / "runs")
    assert run.finished
    assert run.restored
    ours, theirs = summarise(trained), summarise(run)
    assert theirs.last_accuracy == pytest.approx(ours.last_accuracy, abs=1e-4)
    assert theirs.best_accuracy == pytest.approx(ours.best_accuracy, abs=1e-4)
    assert theirs.epochs == 3
    assert theirs.seconds == ours.seconds
    assert ours.weight_auroc is not None
    assert theirs.weight_auroc is None  # weights are not kept


def test_a_metric_that_came_with_a_newer_version_is_kept_where_it_is(tmp_path) -> None:
    run = Run.create(tmp_path / "run", SPEC.as_json())
    for epoch in (1, 2, 3):
        newer = {"calibration_error": 0.1} if epoch == 3 else {}
        Writer(run.folder, 1, 1).append(
            {"epoch": epoch, "test_accuracy": 0.5, **newer, "seconds": 1.0}
        )
    record = record_of(run)
    assert record["calibration_error"] == [None, None, 10.0]
    assert rows_of(record) == run.metrics()


def test_a_run_that_was_trained_here_is_left_alone(trained, kept) -> None:
    before = sorted(path.name for path in trained.folder.iterdir())
    assert restore([SPEC], trained.folder.parent, kept_records(kept)) == 0
    forget_restored([SPEC], trained.folder.parent)
    assert sorted(path.name for path in trained.folder.iterdir()) == before


def test_an_interrupted_restore_is_completed(kept, tmp_path) -> None:
    runs = tmp_path / "runs"
    restore([SPEC], runs, kept_records(kept))
    run = SPEC.run(runs)
    (run.folder / "done").unlink()
    metrics = run.folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text().splitlines(keepends=True)[0])
    assert restore([SPEC], runs, kept_records(kept)) == 1
    assert [row["epoch"] for row in run.metrics()] == [1, 2, 3]


def test_what_needs_weights_trains_a_restored_run(kept, tmp_path) -> None:
    runs = tmp_path / "runs"
    restore([SPEC], runs, kept_records(kept))
    forget_restored([SPEC], runs)
    run = execute(SPEC, runs)
    assert not run.restored
    assert len(run.ledger()) == 3


def test_other_settings_are_other_runs(kept) -> None:
    records = kept_records(kept)
    longer = replace(SPEC, recipe=replace(SPEC.recipe, epochs=4))
    assert SPEC.run(Path()).folder.name in records
    assert longer.run(Path()).folder.name not in records


@pytest.mark.parametrize("content", ["", "{}x", '[{"run": "a"}]', "[1]"])
def test_a_damaged_file_is_named(content, tmp_path) -> None:
    (tmp_path / RECORDS).write_text(content)
    with pytest.raises(UsageError, match=r"records\.json: is not a file of kept results"):
        kept_records(tmp_path)


def test_no_folder_holds_nothing(tmp_path) -> None:
    assert kept_records(tmp_path / "missing") == {}
