"""`diw export-weights`: every training row as the user knows it."""

import csv
from pathlib import Path

import numpy as np
import pytest

from diw.auditing.audits import audit
from diw.reports.summary import settled_weights
from diw.runs import Run
from tests.own_data import TRAIN, done, refused, write_csv, write_images


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def exported(run: Path, out: Path) -> list[dict[str, str]]:
    done("export-weights", run, "--out", out, "--device", "cpu")
    return table(out)


def test_rows_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"train.csv": write_csv(Path("train.csv"), 60, 1)}
    files["trusted.csv"] = write_csv(Path("trusted.csv"), 40, 2)
    call = [*TRAIN, "--data", "train.csv", "--trusted", "trusted.csv", "--label", "status"]
    done(*call, "--out", "run", "--epochs", "3", "--method", "diw")
    rows = exported(Path("run"), Path("w.csv"))
    weights = settled_weights(Run(Path("run")))
    assert weights is not None
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights, rtol=1e-4)
    suspects = [int(row["suspect"]) for row in rows]
    assert suspects == audit("run").suspected.astype(int).tolist()
    assert not any(suspects[60:])  # trusted rows
    tables = {name: table(path) for name, path in files.items()}
    assert [row["label"] for row in rows] == [
        tables[row["file"]][int(row["row"])]["status"] for row in rows
    ]
    assert [int(row["row"]) for row in rows if row["file"] == "train.csv"] == list(range(60))
    assert len({row["row"] for row in rows if row["file"] == "trusted.csv"}) == len(rows) - 60
    done("predict", "run", "train.csv", "--out", "p.csv", "--device", "cpu")
    guesses = [row["label"] for row in table(Path("p.csv"))]
    assert [row["predicted"] for row in rows[:60]] == guesses
    files["train.csv"].write_text(files["train.csv"].read_text() + "1,2,red,ok\n")
    assert "have changed since" in refused("export-weights", "run", "--out", "w.csv")


def test_images_by_their_files(tmp_path: Path) -> None:
    data, trusted = write_images(tmp_path / "a", 12, 1), write_images(tmp_path / "b", 8, 2)
    done(*TRAIN, "--data", data, "--trusted", trusted, "--out", tmp_path / "run")
    rows = exported(tmp_path / "run", tmp_path / "w.csv")
    assert all(Path(row["file"]).is_file() and row["row"] == "" for row in rows)
    assert all(Path(row["file"]).parent.name == row["label"] for row in rows)
    assert sum(Path(row["file"]).is_relative_to(data) for row in rows) == 24


def test_what_has_no_weights_is_refused(tmp_path: Path) -> None:
    data, trusted = write_csv(tmp_path / "a.csv", 40, 1), write_csv(tmp_path / "b.csv", 20, 2)
    call = [*TRAIN, "--data", data, "--trusted", trusted, "--label", "status"]
    done(*call, "--method", "clean", "--out", tmp_path / "run")
    said = refused("export-weights", tmp_path / "run", "--out", tmp_path / "w.csv")
    assert "clean trains on trusted rows alone" in said
