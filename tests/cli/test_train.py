"""`diw train` as a practitioner meets it: the run's files, resuming, refusals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from diw.runs import Run, Writer
from tests.own_data import TRAIN, diw, done, refused, write_csv, write_npz


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write_csv(folder / "train.csv", 120, 1)
    write_csv(folder / "trusted.csv", 30, 2)
    write_csv(folder / "test.csv", 40, 3)
    return folder


def arguments(files: Path, *more: str | Path) -> list[str | Path]:
    source = ["--data", files / "train.csv", "--label", "status", "--trusted"]
    return [*TRAIN, *source, files / "trusted.csv", *more]


@pytest.fixture(scope="module")
def trained(files) -> tuple[Run, str, str]:
    call = arguments(files, "--test", files / "test.csv", "--out", files / "model")
    code, out, error = diw(*call, "--json", files / "result.json")
    assert code == 0, error
    return Run(files / "model"), out, error


def test_the_folder_is_the_run_and_holds_all_that_is_needed(trained) -> None:
    run, _, _ = trained
    assert run.finished
    for name in ("model.safetensors", "encoding.json", "spec.json", "facts.json", "samples.npz"):
        assert (run.folder / name).stat().st_size > 0
    assert [row["epoch"] for row in run.metrics()] == [1, 2]
    assert run.ledger().shape == (2, 150)
    encoding = run.read("encoding.json")
    assert encoding["classes"] == ["broken", "ok"]
    assert (encoding["model"], encoding["shape"], encoding["kind"]) == ("mlp", [4], "table")
    columns = {column["name"]: column for column in encoding["rows"]["columns"]}
    assert columns["colour"]["values"] == ["blue", "red"]


def test_what_a_reader_must_know_is_said(trained) -> None:
    run, out, error = trained
    assert "column 'size': 24 of 120 values missing, set to the mean" in error
    assert "150 training rows" in error
    assert "30 trusted, also trained on" in error
    assert "scored on 40 test rows" in error
    accuracy = run.metrics()[-1]["test_accuracy"]
    assert f"test accuracy          {100 * accuracy:.2f}%" in out
    assert "effective sample size" in out
    assert out.endswith(
        f"\nNext:\n  diw audit {run.folder} --out check\n  diw evaluate {run.folder}\n"
    )


def test_json_holds_the_spec_and_the_result(trained, files) -> None:
    content = json.loads((files / "result.json").read_text())
    (result,) = content["results"]
    assert (result["method"], result["scored_on"]) == ("remember", "test")
    assert content["spec"]["label"] == "status"


def test_a_finished_run_is_only_reported(trained, files) -> None:
    run, out, _ = trained
    before = run.model.stat().st_mtime_ns
    call = arguments(files, "--test", files / "test.csv", "--out", run.folder)
    code, again, error = diw(*call)
    assert code == 0
    assert again == out
    assert "already trained" in error
    assert run.model.stat().st_mtime_ns == before


def test_another_spec_in_the_same_folder_is_refused(trained, files) -> None:
    run, _, _ = trained
    call = arguments(files, "--test", files / "test.csv", "--out", run.folder)
    before = (run.folder / "spec.json").read_text()
    line = refused(*call, "--batch-size", "50")
    assert f"--out: {run.folder} holds another run (batch_size 32, now 50)" in line
    assert "--fresh" in line
    assert "bound 50.0, now 10.0" in refused(*call, "--set", "bound=10")
    assert "(method remember, now uniform)" in refused(*call, "--method", "uniform")
    assert (run.folder / "spec.json").read_text() == before


def test_fresh_replaces_the_run_and_nothing_else(files, tmp_path) -> None:
    out = tmp_path / "model"
    done(*arguments(files, "--out", out, "--method", "uniform"))
    (out / "notes.txt").write_text("mine")
    done(*arguments(files, "--out", out, "--method", "clean", "--fresh"))
    assert Run(out).spec.method == "clean"
    assert not (out / "weights.npy").exists()  # clean weighs nothing
    assert (out / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_files_is_left_alone(files, tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for more in ([], ["--fresh"]):
        line = refused(*arguments(files, "--out", tmp_path, *more))
        assert "holds other files" in line
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_without_a_test_file_held_out_trusted_rows_are_scored_and_named_so(files, tmp_path):
    code, out, error = diw(*arguments(files, "--out", tmp_path / "m", "--json", tmp_path / "r"))
    assert code == 0
    assert "scored on 9 held-out trusted rows" in error
    assert "held-out trusted accuracy" in out
    assert re.search(r"done, epoch 2/2, loss [\d.]+, held-out trusted [\d.]+%", error)
    (result,) = json.loads((tmp_path / "r").read_text())["results"]
    assert result["scored_on"] == "held-out trusted"
    assert "Accuracies are those of the held-out trusted samples" in done("report", tmp_path / "m")


def test_without_out_the_spec_names_the_run(files, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = done(
        *arguments(files, "--method", "diw", "--set", "diw.bound=10", "--set", "momentum=0.5")
    )
    (folder,) = (tmp_path / "runs" / "train").iterdir()
    assert f"runs/train/{folder.name}" in out
    fields = Run(folder).spec.method_fields
    assert (fields["bound"], fields["momentum"]) == (10.0, 0.5)


def test_many_classes_are_not_listed(tmp_path) -> None:
    labels = np.arange(62) % 12
    np.savez(tmp_path / "a.npz", X=np.eye(12)[labels], y=labels)
    rows = "rows:" + ",".join(map(str, range(24)))
    call = [*TRAIN, "--data", tmp_path / "a.npz", "--trusted", rows, "--method", "uniform"]
    assert "training rows (12 classes of " in diw(*call, "--out", tmp_path / "m")[2]


def test_a_changed_file_is_another_run(tmp_path) -> None:
    write_npz(tmp_path / "a.npz", 60, 1)
    call = [*TRAIN, "--data", tmp_path / "a.npz", "--trusted", "rows:1,2,3,4,5,6", "--out"]
    done(*call, tmp_path / "m")
    write_npz(tmp_path / "a.npz", 61, 2)
    assert "a.npz before it changed" in refused(*call, tmp_path / "m")


def test_a_changed_file_of_labels_is_noticed_too(tmp_path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(60, 3)))
    np.save(tmp_path / "y.npy", np.arange(60) % 2)
    call = [*TRAIN, "--data", tmp_path / "X.npy", "--trusted", "rows:0,1,2,3,4,5", "--out"]
    done(*call, tmp_path / "m")
    np.save(tmp_path / "y.npy", np.arange(60) % 3)
    assert "y.npy before it changed" in refused(*call, tmp_path / "m")


def test_an_interrupted_run_goes_on_to_the_same_network(trained, files, tmp_path, monkeypatch):
    whole, _, _ = trained
    call = arguments(files, "--test", files / "test.csv", "--out", tmp_path / "m")
    original = Writer.append

    def interrupt(self, row, *ledgers) -> None:
        if row["epoch"] == 2:
            raise KeyboardInterrupt
        original(self, row, *ledgers)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", interrupt)
        code, _, error = diw(*call)
    assert code == 130
    assert "the same command goes on" in error
    assert not Run(tmp_path / "m").finished
    done(*call)
    assert Run(tmp_path / "m").model.read_bytes() == whole.model.read_bytes()


def test_the_embedded_data_are_the_default(tmp_path) -> None:
    out = done("train", "--epochs", "1", "--model", "mlp", "--out", tmp_path / "m")
    assert "test accuracy" in out
    run = Run(tmp_path / "m")
    assert (run.spec.method, run.spec.shift, run.spec.data) == ("remember", "none", "embedded")
    assert run.read("encoding.json")["classes"][9] == "Ankle boot"
    assert "Ankle boot" in done("evaluate", tmp_path / "m")
