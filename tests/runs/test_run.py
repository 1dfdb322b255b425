import json
from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from diw.runs import Recipe, Run, RunSpec, Writer, find_runs, spec_hash


def test_the_hash_is_of_the_content_not_of_its_order() -> None:
    assert spec_hash({"a": 1, "b": 2.5}) == spec_hash({"b": 2.5, "a": 1})
    assert spec_hash({"a": 1}) != spec_hash({"a": 2})


def test_a_torn_line_is_not_an_epoch(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    writer = Writer(run.folder, 3, 1)
    writer.append({"epoch": 1})
    writer.append({"epoch": 2})
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "acc')
    assert [row["epoch"] for row in run.metrics()] == [1, 2]


def test_the_ledger_shows_finished_epochs_only(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    writer = Writer(run.folder, 3, 4)
    writer.append({"epoch": 1}, np.full(4, 1.5))
    assert run.ledger().shape == (1, 4)
    assert (run.ledger() == 1.5).all()
    assert Run(tmp_path / "none").ledger().shape == (0, 0)


def test_samples_come_back(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    assert run.samples() == {}
    run.write_samples(flipped=np.array([True, False]))
    assert run.samples()["flipped"].tolist() == [True, False]


def test_create_finds_a_run_again_and_keeps_its_spec(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", {"a": 1})
    run = Run.create(tmp_path / "run", {"a": 1})
    assert run.spec_json == {"a": 1}
    assert not run.finished
    run.finish()
    assert run.finished


def test_find_runs_takes_a_run_or_a_folder_of_runs(tmp_path: Path) -> None:
    for name in ("b", "a"):
        Run.create(tmp_path / name, {"name": name})
    assert [run.folder.name for run in find_runs(tmp_path)] == ["a", "b"]
    assert [run.folder.name for run in find_runs(tmp_path / "b")] == ["b"]
    with pytest.raises(UsageError, match="no such run"):
        find_runs(tmp_path / "none")


def test_find_runs_inside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Run.create(tmp_path / "run", {"name": "run"})
    Run.create(tmp_path / "run" / "pretraining", {"name": "run"})
    monkeypatch.chdir(tmp_path / "run")
    assert [run.folder for run in find_runs(Path())] == [Path()]


def test_find_runs_leaves_out_pretraining(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"name": "run"})
    Run.create(run.folder / "pretraining", {"name": "run"})
    assert find_runs(tmp_path) == [run]
    assert json.loads((run.folder / "spec.json").read_text()) == {"name": "run"}


def test_the_spec_is_typed_and_a_wrong_one_names_its_file(tmp_path: Path) -> None:
    spec = RunSpec(method="uniform", recipe=Recipe(epochs=3))
    run = Run.create(tmp_path / "run", spec.as_json())
    assert run.spec == spec
    assert run.spec_json == json.loads(json.dumps(spec.as_json()))
    for wrong in ({"mood": 1}, {"epochs": "many"}, {"format": 0}):
        (run.folder / "spec.json").write_text(json.dumps({**spec.as_json(), **wrong}))
        with pytest.raises(UsageError, match=r"run/spec\.json: "):
            _ = Run(run.folder).spec


def test_losses_are_kept_beside_weights_and_cut_to_what_float16_holds(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    writer = Writer(run.folder, 3, 2)
    writer.append({"epoch": 1}, np.ones(2), np.array([0.5, 1e9]))
    assert run.losses().tolist() == [[0.5, 65504.0]]
    assert set(writer.marks) == {"metrics.jsonl", "weights.npy", "losses.npy"}
    assert Run(tmp_path / "none").losses().shape == (0, 0)


def test_a_run_that_was_begun_without_losses_goes_on_without(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    writer = Writer(run.folder, 3, 2)
    writer.append({"epoch": 1}, np.ones(2))
    resumed = Writer(run.folder, 3, 2)
    resumed.cut(writer.marks)
    resumed.append({"epoch": 2}, np.ones(2), np.ones(2))
    assert run.ledger().shape == (2, 2)
    assert run.losses().shape == (0, 0)
