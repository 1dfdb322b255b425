"""`diw evaluate` as a practitioner meets it: the numbers, their file, refusals."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from diw.cli.evaluate import class_table, confusion_table
from diw.training import Scores
from tests.own_data import TRAIN, diw, done, refused, write_csv, write_images, write_npz


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    write_csv(folder / "train.csv", 80, 1)
    write_csv(folder / "trusted.csv", 20, 2)
    write_csv(folder / "test.csv", 50, 3)
    call = [*TRAIN, "--data", folder / "train.csv", "--trusted", folder / "trusted.csv"]
    call += ["--label", "status"]
    done(*call, "--test", folder / "test.csv", "--out", folder / "run")
    done(*call, "--out", folder / "held-out")
    return folder


def test_the_numbers_are_those_of_the_predictions(files, tmp_path) -> None:
    out = done("evaluate", files / "run", files / "test.csv", "--json", tmp_path / "s.json")
    done("predict", files / "run", files / "test.csv", "--out", tmp_path / "p.csv")
    with (files / "test.csv").open() as true, (tmp_path / "p.csv").open() as predicted:
        pairs = [
            (a["status"], b["label"])
            for a, b in zip(csv.DictReader(true), csv.DictReader(predicted), strict=True)
        ]
    scores = json.loads((tmp_path / "s.json").read_text())
    names = ["broken", "ok"]
    counts = [[pairs.count((i, j)) for j in names] for i in names]
    assert scores["confusion_matrix"] == counts
    assert scores["classes"] == names
    assert scores["rows"] == 50
    assert scores["accuracy"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    recalls = [counts[i][i] / sum(counts[i]) for i in range(2)]
    assert [entry["accuracy"] for entry in scores["per_class"]] == pytest.approx(recalls)
    assert scores["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    assert f"accuracy           {100 * scores['accuracy']:.2f}%" in out
    assert "Confusion matrix" in out


def test_inside_a_run_a_dot_names_it(files, monkeypatch) -> None:
    monkeypatch.chdir(files / "run")
    assert "accuracy" in done("evaluate", ".", files / "test.csv")
    assert "report.html" in done("report", ".")
    (files / "run" / "report.html").unlink()


def test_inside_a_run_its_data_are_found_where_its_command_was_given(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows, seed in (("train", 60, 1), ("trusted", 40, 2), ("test", 30, 3)):
        write_csv(Path(f"{name}.csv"), rows, seed)
    call = [*TRAIN, "--data", "train.csv", "--trusted", "trusted.csv", "--test", "test.csv"]
    done(*call, "--label", "status", "--out", "runs/one")
    outside = done("evaluate", "runs/one").splitlines()
    monkeypatch.chdir("runs/one")
    assert done("evaluate", ".").splitlines()[1:] == outside[1:]
    Path("../../test.csv").write_text(Path("../../trusted.csv").read_text())
    assert "have changed since" in refused("evaluate", ".")


def test_without_a_file_the_runs_own_test_data_are_scored(files, tmp_path) -> None:
    for name, words in (("run", "test rows of"), ("held-out", "held-out trusted rows of")):
        out = done("evaluate", files / name, "--json", tmp_path / "s.json")
        assert out.startswith(words)
        last = json.loads((files / name / "metrics.jsonl").read_text().splitlines()[-1])
        scores = json.loads((tmp_path / "s.json").read_text())
        assert scores["accuracy"] == last["test_accuracy"]
        assert scores["balanced_accuracy"] == pytest.approx(last["balanced_accuracy"])


def test_the_runs_data_have_changed(tmp_path) -> None:
    data = write_npz(tmp_path / "a.npz", 60, 1)
    call = [*TRAIN, "--data", data, "--trusted", "rows:0,1,2,3,4,5,6,7", "--method", "uniform"]
    done(*call, "--out", tmp_path / "run")
    write_npz(data, 61, 1)
    assert "have changed" in refused("evaluate", tmp_path / "run")
    data.unlink()
    assert "a.npz" in refused("evaluate", tmp_path / "run")


def test_a_spec_that_no_run_wrote_is_one_line(files, tmp_path) -> None:
    shutil.copytree(files / "run", tmp_path / "run")
    spec = json.loads((files / "run" / "spec.json").read_text())
    (tmp_path / "run" / "done").write_text("")  # without checksums, which would show it too
    types = ({"seed": "one"}, {"data": 3}, {"observe": 1}, {"epochs": [5]}, {"trusted": 1.5})
    wrong_types = [{**spec, **wrong} for wrong in types]
    other = [{**spec, "mood": 1}, {"format": spec["format"]}, {**spec, "format": 0}, []]
    for wrong in (*other, *wrong_types):
        (tmp_path / "run" / "spec.json").write_text(json.dumps(wrong))
        assert "spec" in refused("evaluate", tmp_path / "run")


def test_labels_under_another_name(files, tmp_path) -> None:
    text = (files / "test.csv").read_text().replace("status", "state", 1)
    (tmp_path / "other.csv").write_text(text)
    line = refused("evaluate", files / "run", tmp_path / "other.csv")
    assert "no column 'status'" in line
    same = done("evaluate", files / "run", files / "test.csv").splitlines()[1:]
    other = done("evaluate", files / "run", tmp_path / "other.csv", "--label", "state")
    assert other.splitlines()[1:] == same


def test_a_class_without_rows_has_no_accuracy(files, tmp_path) -> None:
    lines = (files / "test.csv").read_text().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if line.endswith("ok"))]
    (tmp_path / "ok.csv").write_text("\n".join(kept))
    path = tmp_path / "s.json"
    out = done("evaluate", files / "run", tmp_path / "ok.csv", "--json", path)
    scores = json.loads(path.read_text())
    assert scores["per_class"][0] == {"class": "broken", "rows": 0, "accuracy": None}
    assert scores["balanced_accuracy"] == scores["accuracy"]
    assert "–" in out


def test_labels_that_training_never_had_are_one_line(files, tmp_path) -> None:
    text = (files / "test.csv").read_text().replace(",ok\n", ",lost\n", 1)
    (tmp_path / "new.csv").write_text(text)
    row = [line.rsplit(",", 1)[1] for line in text.splitlines()[1:]].index("lost")
    line = refused("evaluate", files / "run", tmp_path / "new.csv", "--json", tmp_path / "s")
    assert f"new.csv: label 'lost' in row {row} is not a class of the training data" in line
    assert not (tmp_path / "s").exists()


def test_wrong_use_is_one_line(files, tmp_path) -> None:
    run = files / "run"
    bare = write_csv(tmp_path / "bare.csv", 5, 1, labels=False)
    assert "no column 'status'" in refused("evaluate", run, bare)
    assert "--label" in refused("evaluate", run, "--label", "status")
    assert "no/folder" in refused("evaluate", run, "--json", "no/folder/s.json")
    assert "no such run" in refused("evaluate", tmp_path / "missing")
    images = write_images(tmp_path / "photos", 2, 1)
    assert "tables" in refused("evaluate", run, images)


def test_many_classes_show_their_confusions_instead_of_a_matrix(tmp_path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 24
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(120, 3)), y=labels)
    call = [*TRAIN, "--data", tmp_path / "a.npz", "--method", "uniform", "--out", tmp_path / "m"]
    rows = ",".join(map(str, range(60)))
    code, _, error = diw(*call, "--trusted", f"rows:{rows}")
    assert code == 0, error
    assert "24 classes of" in error
    out = done("evaluate", tmp_path / "m", tmp_path / "a.npz")
    assert "The most frequent confusions" in out
    assert "Confusion matrix" not in out


def test_short_names_head_the_columns_and_long_ones_are_numbered() -> None:
    table = confusion_table(Scores(("cat", "dog"), np.array([[3, 1], [0, 2]])))
    assert [column.title for column in table.columns] == ["true class", "cat", "dog"]
    assert [cell.text for cell in table.rows[1]] == ["dog", "·", "2"]
    long = confusion_table(Scores(("x" * 40, "y" * 40), np.eye(2, dtype=np.int64)))
    assert [column.title for column in long.columns] == ["true class", "0", "1"]
    assert long.rows[0][0].text == f"0 {'x' * 40}"


def test_the_most_frequent_confusions_come_first() -> None:
    confusion = np.diag(np.full(25, 9))
    confusion[3, 7], confusion[20, 1] = 2, 5
    table = confusion_table(Scores(tuple(map(str, range(25))), confusion))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["20", "1", "5"],
        ["3", "7", "2"],
    ]


def test_a_class_without_rows_is_a_dash() -> None:
    table = class_table(Scores(("a", "b"), np.array([[1, 1], [0, 0]])))
    assert [cell.text for cell in table.rows[0]] == ["a", "2", "50.00"]
    assert [cell.text for cell in table.rows[1]] == ["b", "0", "–"]
