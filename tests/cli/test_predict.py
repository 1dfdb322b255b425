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
from tests.own_data import TRAIN, diw, done, refused


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


def test_a_table_is_standardised_by_the_training_data(trained, tmp_path) -> None:
    out = tmp_path / "p.csv"
    code, said, error = diw("predict", trained / "model", trained / "new.csv", "--out", out)
    assert code == 0
    assert "30 rows of" in said
    assert "values missing, set to the mean" in error
    rows = read(out)
    assert list(rows[0]) == ["label", "p_broken", "p_ok"]
    columns = {
        c["name"]: c for c in Run(trained / "model").read("encoding.json")["rows"]["columns"]
    }

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
            for row in read(trained / "new.csv")
        ]
    )
    expected = by_hand(trained / "model", inputs)
    ours = np.array([[float(row["p_broken"]), float(row["p_ok"])] for row in rows])
    np.testing.assert_allclose(ours, expected, atol=2e-6)
    names = np.array(["broken", "ok"])[expected.argmax(1)]
    assert [row["label"] for row in rows] == names.tolist()


def test_labels_in_the_file_are_ignored_whatever_they_are(trained, tmp_path) -> None:
    done("predict", trained / "model", trained / "new.csv", "--out", tmp_path / "a.csv")
    lines = (trained / "new.csv").read_text().splitlines()
    labelled = [f"{lines[0]},status", f"{lines[1]},", *(f"{line},unheard" for line in lines[2:])]
    (tmp_path / "labelled.csv").write_text("\n".join(labelled))
    done("predict", trained / "model", tmp_path / "labelled.csv", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_every_format_says_the_same(trained, tmp_path) -> None:
    for ending in ("csv", "npz", "parquet"):
        done("predict", trained / "model", trained / "new.csv", "--out", tmp_path / f"p.{ending}")
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
def test_images_come_with_their_file_names(ending, workplace) -> None:
    out = Path(f"p.{ending}")
    done("predict", "pictures", "photos", "--out", out)
    if ending == "csv":
        rows = read(out)
        assert next(iter(rows[0])) == "file"
        names = [row["file"] for row in rows]
    elif ending == "npz":
        names = np.load(out)["files"].tolist()
    else:
        names = pyarrow.parquet.read_table(out).to_pydict()["file"]
    assert names == [str(path) for path in sorted(Path("photos").rglob("*.png"))]


def test_batches_do_not_change_the_answer(trained, tmp_path) -> None:
    call = ["predict", trained / "arrays", trained / "train.npz", "--out"]
    done(*call, tmp_path / "a.npz")
    done(*call, tmp_path / "b.npz", "--batch-size", "7")
    one, two = (np.load(tmp_path / name)["probabilities"] for name in ("a.npz", "b.npz"))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_folder_with_one_run_stands_for_it(trained, tmp_path) -> None:
    shutil.copytree(trained / "model", tmp_path / "runs" / "abc")
    done("predict", tmp_path / "runs", trained / "new.csv", "--out", tmp_path / "p.csv")


def shaped(shape: str) -> tuple[str, str, str]:
    return "encoding.json", '"shape": [\n    4', f'"shape": [{shape}'


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (("done",), "is not finished (2 of 2 epochs)"),
        (("encoding.json",), "has no encoding.json"),
        (("encoding.json", '{"model": "ml'), "encoding.json: cannot be read"),
        (("encoding.json", '{"model": "mlp", "shape": [4]}'), "not written by diw"),
        (("model.safetensors", "half"), "model.safetensors: cannot be read"),
        (("model.safetensors",), "model.safetensors: cannot be read"),
        (shaped("5"), "model.safetensors: does not belong to this network"),
        (shaped("-4"), "encoding.json: lacks model, input shape"),
        (shaped("4.5"), "encoding.json: lacks model, input shape"),
        (shaped("1e400"), "encoding.json: lacks model, input shape"),
        (shaped("4000000000"), "model.safetensors: does not belong to this network"),
        (shaped(", ".join(["4000000000"] * 3)), "model.safetensors: does not belong to this"),
    ],
)
def test_a_damaged_run_is_one_line(damage: tuple[str, ...], words: str, workplace: Path) -> None:
    """As far as it can be known without checksums, which older versions did not write."""
    name, *text = damage
    path = workplace / "model" / name
    match text:
        case []:
            path.unlink()
        case ["half"]:
            path.write_bytes(path.read_bytes()[:-100])
        case [content]:
            path.write_text(content)
        case [old, new]:
            path.write_text(path.read_text().replace(old, new))
    call = ("predict", "model", "new.csv", "--out", "p.csv")
    if (path.parent / "done").exists():
        assert re.search(
            r"(encoding\.json|model\.safetensors): is (damaged|missing)", refused(*call)
        )
        (path.parent / "done").write_text("")
    assert words in refused(*call)
    assert not Path("p.csv").exists()


def test_a_broken_image_among_many_leaves_no_file(workplace) -> None:
    Path("photos/pole/5.png").write_bytes(b"\x89PNG no more")
    line = refused("predict", "pictures", "photos", "--batch-size", "2", "--out", "p.csv")
    assert "5.png" in line
    assert not [path for path in workplace.iterdir() if path.name.startswith((".p", "p."))]


def test_the_code_that_a_run_names_is_run_only_if_it_is_trusted(workplace, monkeypatch) -> None:
    Path("stranger.py").write_text(
        "from pathlib import Path\nfrom diw.models import MLP\n"
        "Path('ran').touch()\n\ndef network(shape, num_classes):\n"
        "    return MLP(shape, num_classes)\n"
    )
    data = ("--data", "train.csv", "--label", "status", "--trusted", "trusted.csv")
    done(*TRAIN, *data, "--model", "stranger:network", "--out", "run")
    Path("ran").unlink()
    monkeypatch.delitem(sys.modules, "stranger")
    for verb in ("predict", "evaluate"):
        call = [verb, "run", "train.csv", *(["--out", "p.csv"] * (verb == "predict"))]
        line = refused(*call)
        assert "--model: run names a network of its own, stranger:network" in line
        assert "--trust-model" in line
        assert not Path("ran").exists()
        done(*call, "--trust-model")
        done(*call, "--model", "stranger:network")
        Path("ran").unlink()
        monkeypatch.delitem(sys.modules, "stranger")
