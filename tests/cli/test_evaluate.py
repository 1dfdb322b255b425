"""`diw evaluate` as a practitioner meets it: the numbers, their file, refusals."""

import csv
import json
import shutil

import numpy as np
import pytest

from diw.cli.evaluate import class_table, confusion_table
from diw.training import Scores
from tests.own_data import TRAIN, done, refused, write_npz


def test_the_numbers_are_those_of_the_predictions(trained, tmp_path) -> None:
    out = done("evaluate", trained / "model", trained / "test.csv", "--json", tmp_path / "s.json")
    done("predict", trained / "model", trained / "test.csv", "--out", tmp_path / "p.csv")
    with (trained / "test.csv").open() as true, (tmp_path / "p.csv").open() as predicted:
        pairs = [
            (a["status"], b["label"])
            for a, b in zip(csv.DictReader(true), csv.DictReader(predicted), strict=True)
        ]
    scores = json.loads((tmp_path / "s.json").read_text())
    names = ["broken", "ok"]
    counts = [[pairs.count((i, j)) for j in names] for i in names]
    assert scores["confusion_matrix"] == counts
    assert scores["classes"] == names
    assert scores["rows"] == 40
    assert scores["accuracy"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    recalls = [counts[i][i] / sum(counts[i]) for i in range(2)]
    assert [entry["accuracy"] for entry in scores["per_class"]] == pytest.approx(recalls)
    assert scores["balanced_accuracy"] == pytest.approx(np.mean(recalls))
    assert f"accuracy           {100 * scores['accuracy']:.2f}%" in out
    assert "Confusion matrix" in out


def test_inside_a_run_a_dot_names_it_and_its_data_are_found(workplace, monkeypatch) -> None:
    outside = done("evaluate", "model").splitlines()
    monkeypatch.chdir("model")
    assert done("evaluate", ".").splitlines()[1:] == outside[1:]
    assert "accuracy" in done("evaluate", ".", "../test.csv")
    assert "report.html" in done("report", ".")
    (workplace / "test.csv").write_text((workplace / "trusted.csv").read_text())
    assert "have changed since" in refused("evaluate", ".")


def test_without_a_file_the_runs_own_test_data_are_scored(trained, tmp_path) -> None:
    for name, words in (("model", "test rows of"), ("held-out", "held-out trusted rows of")):
        out = done("evaluate", trained / name, "--json", tmp_path / "s.json")
        assert out.startswith(words)
        last = json.loads((trained / name / "metrics.jsonl").read_text().splitlines()[-1])
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


def test_a_spec_that_no_run_wrote_is_one_line(trained, tmp_path) -> None:
    shutil.copytree(trained / "model", tmp_path / "run")
    spec = json.loads((trained / "model" / "spec.json").read_text())
    (tmp_path / "run" / "done").write_text("")  # without checksums, which would show it too
    types = ({"seed": "one"}, {"data": 3}, {"observe": 1}, {"epochs": [5]}, {"trusted": 1.5})
    wrong_types = [{**spec, **wrong} for wrong in types]
    other = [{**spec, "mood": 1}, {"format": spec["format"]}, {**spec, "format": 0}, []]
    for wrong in (*other, *wrong_types):
        (tmp_path / "run" / "spec.json").write_text(json.dumps(wrong))
        assert "spec" in refused("evaluate", tmp_path / "run")


def test_labels_under_another_name(trained, tmp_path) -> None:
    text = (trained / "test.csv").read_text().replace("status", "state", 1)
    (tmp_path / "other.csv").write_text(text)
    same = done("evaluate", trained / "model", trained / "test.csv").splitlines()[1:]
    other = done("evaluate", trained / "model", tmp_path / "other.csv", "--label", "state")
    assert other.splitlines()[1:] == same


def test_a_class_without_rows_has_no_accuracy(trained, tmp_path) -> None:
    lines = (trained / "test.csv").read_text().splitlines()
    kept = [lines[0], *(line for line in lines[1:] if line.endswith("ok"))]
    (tmp_path / "ok.csv").write_text("\n".join(kept))
    path = tmp_path / "s.json"
    out = done("evaluate", trained / "model", tmp_path / "ok.csv", "--json", path)
    scores = json.loads(path.read_text())
    assert scores["per_class"][0] == {"class": "broken", "rows": 0, "accuracy": None}
    assert scores["balanced_accuracy"] == scores["accuracy"]
    assert "–" in out


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
