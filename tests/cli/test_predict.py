"""`diw predict` as a practitioner meets it: names and probabilities for every kind of file."""

import csv
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file

from diw.runs import Run
from tests.own_data import TRAIN, diw, done, refused, write_csv, write_images, write_npz


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A finished run each on a table, on arrays and on images, with the files for more."""
    folder = tmp_path_factory.mktemp("predict")
    write_csv(folder / "train.csv", 80, 1)
    write_csv(folder / "new.csv", 30, 2, labels=False)
    write_npz(folder / "train.npz", 80, 1)
    write_images(folder / "photos", 8, 1)
    rows = "rows:" + ",".join(map(str, range(16)))
    for name, more in (("train.csv", ["--label", "status"]), ("train.npz", []), ("photos", [])):
        out = folder / f"run-{Path(name).stem}-{Path(name).suffix[1:] or 'images'}"
        done(*TRAIN, "--data", folder / name, "--trusted", rows, *more, "--out", out)
    return folder


@pytest.fixture(scope="module")
def run(files) -> Path:
    return files / "run-train-csv"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def by_hand(run: Path, inputs: np.ndarray) -> np.ndarray:
    """The probabilities of the two-layer network, in NumPy."""
    weights = load_file(run / "model.safetensors")
    hidden = inputs.astype(np.float64)
    for name in ("features.1", "features.3"):
        hidden = np.maximum(hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], 0)
    logits = hidden @ weights["classifier.weight"].T + weights["classifier.bias"]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def test_a_table_is_standardised_by_the_training_data(files, run, tmp_path) -> None:
    out = tmp_path / "p.csv"
    code, said, error = diw("predict", run, files / "new.csv", "--out", out)
    assert code == 0
    assert "30 rows of" in said
    assert "values missing, set to the mean" in error
    rows = read(out)
    assert list(rows[0]) == ["label", "p_broken", "p_ok"]
    columns = {c["name"]: c for c in Run(run).read("encoding.json")["rows"]["columns"]}

    def number(cell: str, name: str) -> float:
        return 0 if cell == "NA" else (float(cell) - columns[name]["mean"]) / columns[name]["scale"]

    inputs = np.array(
        [
            [
                number(row["size"], "size"),
                number(row["weight"], "weight"),
                row["colour"] == "blue",
                row["colour"] == "red",
            ]
            for row in read(files / "new.csv")
        ]
    )
    expected = by_hand(run, inputs)
    ours = np.array([[float(row["p_broken"]), float(row["p_ok"])] for row in rows])
    np.testing.assert_allclose(ours, expected, atol=2e-6)
    names = np.array(["broken", "ok"])[expected.argmax(1)]
    assert [row["label"] for row in rows] == names.tolist()


def test_labels_in_the_file_are_ignored_whatever_they_are(files, run, tmp_path) -> None:
    done("predict", run, files / "new.csv", "--out", tmp_path / "a.csv")
    lines = (files / "new.csv").read_text().splitlines()
    labelled = [f"{lines[0]},status", f"{lines[1]},", *(f"{line},unheard" for line in lines[2:])]
    (tmp_path / "labelled.csv").write_text("\n".join(labelled))
    done("predict", run, tmp_path / "labelled.csv", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_every_format_says_the_same(files, run, tmp_path) -> None:
    for ending in ("csv", "npz", "parquet"):
        done("predict", run, files / "new.csv", "--out", tmp_path / f"p.{ending}")
    text = read(tmp_path / "p.csv")
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pydict()
    arrays = np.load(tmp_path / "p.npz", allow_pickle=False)
    assert arrays["classes"].tolist() == ["broken", "ok"]
    assert [row["label"] for row in text] == table["label"] == arrays["labels"].tolist()
    np.testing.assert_array_equal(
        np.array([table["p_broken"], table["p_ok"]], np.float32).T, arrays["probabilities"]
    )
    np.testing.assert_allclose(
        [float(row["p_ok"]) for row in text], arrays["probabilities"][:, 1], atol=1e-6
    )


@pytest.mark.parametrize("ending", ["csv", "npz", "parquet"])
def test_images_come_with_their_file_names(ending, files, tmp_path) -> None:
    out = tmp_path / f"p.{ending}"
    done("predict", files / "run-photos-images", files / "photos", "--out", out)
    if ending == "csv":
        rows = read(out)
        assert next(iter(rows[0])) == "file"
        names = [row["file"] for row in rows]
    elif ending == "npz":
        names = np.load(out)["files"].tolist()
    else:
        names = pyarrow.parquet.read_table(out).to_pydict()["file"]
    assert names == [str(path) for path in sorted((files / "photos").rglob("*.png"))]


def test_batches_do_not_change_the_answer(files, tmp_path) -> None:
    call = ["predict", files / "run-train-npz", files / "train.npz", "--out"]
    done(*call, tmp_path / "a.npz")
    done(*call, tmp_path / "b.npz", "--batch-size", "7")
    one, two = (np.load(tmp_path / name)["probabilities"] for name in ("a.npz", "b.npz"))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_folder_with_one_run_stands_for_it(files, run, tmp_path) -> None:
    shutil.copytree(run, tmp_path / "runs" / "abc")
    done("predict", tmp_path / "runs", files / "new.csv", "--out", tmp_path / "p.csv")
    line = refused("predict", files, files / "new.csv", "--out", tmp_path / "q.csv")
    assert "holds 3 runs; choose one" in line
    assert f"{run} (remember seed 0)" in line
    (tmp_path / "empty").mkdir()
    line = refused("predict", tmp_path / "empty", files / "new.csv", "--out", tmp_path / "q.csv")
    assert "holds no run" in line


def damaged(run: Path, folder: Path, name: str) -> Path:
    """A copy of a run with something wrong."""
    copy = folder / "run"
    shutil.copytree(run, copy)
    match name:
        case "unfinished":
            (copy / "done").unlink()
        case "no encoding":
            (copy / "encoding.json").unlink()
        case "torn encoding":
            (copy / "encoding.json").write_text('{"model": "ml')
        case "other encoding":
            (copy / "encoding.json").write_text('{"model": "mlp", "shape": [4]}')
        case "truncated model":
            content = (copy / "model.safetensors").read_bytes()
            (copy / "model.safetensors").write_bytes(content[:-100])
        case "other model":
            text = (copy / "encoding.json").read_text()
            (copy / "encoding.json").write_text(text.replace('"shape": [\n    4', '"shape": [\n 5'))
        case "no model":
            (copy / "model.safetensors").unlink()
        case _:
            text = (copy / "encoding.json").read_text()
            (copy / "encoding.json").write_text(
                text.replace('"shape": [\n    4', f'"shape": [{name}')
            )
    return copy


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unfinished", "is not finished (2 of 2 epochs)"),
        ("no encoding", "has no encoding.json"),
        ("torn encoding", "encoding.json: cannot be read"),
        ("other encoding", "not written by diw"),
        ("truncated model", "model.safetensors: cannot be read"),
        ("other model", "model.safetensors: does not belong to this network"),
        ("no model", "model.safetensors: cannot be read"),
        ("-4", "encoding.json: lacks model, input shape"),
        ("4.5", "encoding.json: lacks model, input shape"),
        ("1e400", "encoding.json: lacks model, input shape"),
        ("4000000000", "model.safetensors: does not belong to this network"),
        (
            "4000000000, 4000000000, 4000000000",
            "model.safetensors: does not belong to this network",
        ),
    ],
)
def test_a_damaged_run_is_one_line(name, words, files, run, tmp_path) -> None:
    """As far as it can be known without checksums, which older versions did not write."""
    copy = damaged(run, tmp_path, name)
    if (copy / "done").exists():
        line = refused("predict", copy, files / "new.csv", "--out", tmp_path / "p.csv")
        assert re.search(r"(encoding\.json|model\.safetensors): is (damaged|missing)", line)
        (copy / "done").write_text("")
    line = refused("predict", copy, files / "new.csv", "--out", tmp_path / "p.csv")
    assert words in line
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["run", "new.csv", "--out", "p.xlsx"], ["--out", "p.xlsx", ".csv, .npz, .parquet"]),
        (["run", "new.csv", "--out", "no/folder/p.csv"], ["--out", "no/folder"]),
        (["run", "new.csv"], ["--out"]),
        (["run", "missing.csv", "--out", "p.csv"], ["missing.csv", "no such file"]),
        (["missing", "new.csv", "--out", "p.csv"], ["missing: no such run"]),
        (["run", "wide.npz", "--out", "p.csv"], ["wide.npz", "3 columns", "(9,)"]),
        (["run", "narrow.csv", "--out", "p.csv"], ["narrow.csv", "'weight'"]),
        (["run", "photos", "--out", "p.csv"], ["photos", "tables"]),
        (["run", "words.csv", "--out", "p.csv"], ["words.csv", "'big' in row 1", "'size'"]),
        (["run", "words.csv", "--out", "words.csv"], ["--out", "choose another name"]),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(
    call, words, files, run, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "run")
    shutil.copy(files / "new.csv", "new.csv")
    shutil.copytree(files / "photos", "photos")
    np.savez("wide.npz", X=np.zeros((3, 9)))
    Path("narrow.csv").write_text("size,colour\n1,red\n")
    Path("words.csv").write_text("size,weight,colour\n1,1,red\nbig,1,red\n")
    before = sorted(tmp_path.rglob("*"))
    line = refused("predict", *call)
    for word in words:
        assert word in line
    assert sorted(tmp_path.rglob("*")) == before


def test_a_broken_image_among_many_leaves_no_file(files, tmp_path) -> None:
    shutil.copytree(files / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "pole" / "5.png").write_bytes(b"\x89PNG no more")
    call = ["predict", files / "run-photos-images", tmp_path / "photos"]
    line = refused(*call, "--batch-size", "2", "--out", tmp_path / "p.csv")
    assert "5.png" in line
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_the_code_that_a_run_names_is_run_only_if_it_is_trusted(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("stranger.py").write_text(
        "from pathlib import Path\nfrom diw.models import MLP\n"
        "Path('ran').touch()\n\ndef network(shape, num_classes):\n"
        "    return MLP(shape, num_classes)\n"
    )
    train = (
        "--data",
        files / "train.csv",
        "--label",
        "status",
        "--trusted",
        "rows:0,1,2,3,4,5,6,7,8,9",
    )
    done(*TRAIN, *train, "--model", "stranger:network", "--out", "run")
    Path("ran").unlink()
    monkeypatch.delitem(sys.modules, "stranger")
    for verb in ("predict", "evaluate"):
        call = [verb, "run", files / "train.csv", *(["--out", "p.csv"] * (verb == "predict"))]
        line = refused(*call)
        assert "--model: run names a network of its own, stranger:network" in line
        assert "--trust-model" in line
        assert not Path("ran").exists()
        done(*call, "--trust-model")
        done(*call, "--model", "stranger:network")
        Path("ran").unlink()
        monkeypatch.delitem(sys.modules, "stranger")
