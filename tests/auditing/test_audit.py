"""One run of a table with wrong labels: what the audit finds, writes and lets be corrected."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import diw
from diw.auditing.page import render
from diw.errors import UsageError
from diw.metrics import auroc
from tests.own_data import diw as command
from tests.own_data import done, refused

WRONG = 0.3


def write_table(path: Path, rows: int, seed: int, wrong: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    right = x[:, 0] + x[:, 1] > 0
    flipped = rng.random(rows) < wrong
    lines = ["size,weight,=odd,status"]
    for cells, label in zip(x, right ^ flipped, strict=True):
        numbers = ",".join(f"{cell:.4f}" for cell in cells)
        lines.append(f"{numbers},{'ok' if label else 'broken'}")
    path.write_text("\n".join(lines) + "\n")
    return flipped


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a trained run, its files, and which labels are wrong."""
    folder = tmp_path_factory.mktemp("audit")
    np.save(folder / "flipped.npy", write_table(folder / "train.csv", 600, 0, WRONG))
    write_table(folder / "trusted.csv", 60, 1, 0.0)
    before = Path.cwd()
    os.chdir(folder)
    try:
        done(
            *("train", "--data", "train.csv", "--label", "status", "--trusted", "trusted.csv"),
            *("--steps", "300", "--device", "cpu", "--out", "model"),
        )
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


def test_the_run_says_which_row_is_where(here: Path) -> None:
    with (here / "model" / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    losses = np.load(here / "model" / "losses.npy")
    weights = np.load(here / "model" / "weights.npy")
    assert losses.shape == weights.shape
    assert losses.shape[1] == len(rows)
    assert [row["place"] for row in rows] == [str(place) for place in range(len(rows))]
    ours = [row for row in rows if row["file"] == "train.csv"]
    assert [row["row"] for row in ours] == [str(row) for row in range(600)]
    assert {row["trusted"] for row in ours} == {"0"}
    assert {(row["file"], row["trusted"]) for row in rows[600:]} == {("trusted.csv", "1")}


def test_the_wrong_labels_are_found(here: Path) -> None:
    flipped = np.load(here / "flipped.npy")
    found = diw.audit("model")
    assert len(found.order) == 600  # trusted rows are not ranked
    assert found.count == len(found.suspects) == found.wrong_rows[0]
    first = found.suspects.head(60)
    assert flipped[first["row"].to_numpy()].mean() > 0.9
    assert (first["label"] != first["suggested"]).all()
    assert found.wrong.low <= flipped.mean() <= found.wrong.high
    assert len(found.doubtful) == 0  # all of them are right
    assert "label noise" in found.diagnosis.sentence


def test_the_command_writes_suspects_and_the_page(here: Path, tmp_path: Path) -> None:
    out = done("audit", "model", "--out", tmp_path / "check", "--top", "30", "--device", "cpu")
    assert "600 training rows" in out
    assert "labels are wrong (95% interval" in out
    with (tmp_path / "check" / "suspects.csv").open() as file:
        rows = list(csv.DictReader(file))
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    page = (tmp_path / "check" / "audit.html").read_text()
    assert "This file holds 30 rows of your data" in page
    content = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    assert len(content["rows"]) == len(content["cells"]) == 30
    first = content["rows"][0]
    line = (here / "train.csv").read_text().splitlines()[1 + first["row"]]
    assert content["cells"][0] == line.split(",")[: len(content["columns"])]
    assert sum(content["histogram"]["counts"]) == 600


def test_samples_can_be_left_out(here: Path, tmp_path: Path) -> None:
    done("audit", "model", "--out", tmp_path, "--no-samples", "--device", "cpu")
    page = (tmp_path / "audit.html").read_text()
    assert "holds none of them" in page
    content = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    assert content["cells"] is None
    assert content["images"] is None


def test_corrections_are_applied_and_said(here: Path, tmp_path: Path) -> None:
    rows = diw.audit("model").rows(3)
    done("audit", "model", "--out", tmp_path, "--device", "cpu")
    page = (tmp_path / "audit.html").read_text()
    content = json.loads(page.split('id="audit">')[1].split("</script>")[0])
    marks = [("wrong", rows[0]["suggested"]), ("drop", ""), ("right", "")]
    lines = [
        f"train.csv,{row['row']},{row['label']},{mark},{correct},{shown['content']}"
        for row, (mark, correct), shown in zip(rows, marks, content["rows"], strict=False)
    ]
    file = tmp_path / "corrections.csv"
    file.write_text("\n".join(["file,row,label,mark,correct,content", *lines]) + "\n")
    text = (here / "train.csv").read_text().splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join(text[:1] + text[2:]))  # one row less
    said = refused(
        *("train", "--data", tmp_path / "train.csv", "--label", "status", "--corrections", file),
        *("--trusted", "trusted.csv", "--out", tmp_path / "moved"),
    )
    assert "holds something else than the row that was checked" in said
    code, _, said = command(
        *("train", "--data", "train.csv", "--label", "status", "--trusted", "trusted.csv"),
        *("--epochs", "1", "--device", "cpu", "--out", tmp_path / "again", "--corrections", file),
    )
    assert code == 0
    change = f"1 {rows[0]['label']} → {rows[0]['suggested']}"
    assert f"1 labels changed ({change}), 1 rows dropped, 1 confirmed" in said
    with (tmp_path / "again" / "rows.csv").open() as table:
        names = [(row["file"], row["row"]) for row in csv.DictReader(table)]
    targets = np.load(tmp_path / "again" / "samples.npz")["targets"]
    assert ("train.csv", str(rows[1]["row"])) not in names
    assert len(names) == len(targets) == len(np.load(here / "model" / "samples.npz")["targets"]) - 1
    classes = json.loads((tmp_path / "again" / "encoding.json").read_text())["classes"]
    changed = names.index(("train.csv", str(rows[0]["row"])))
    assert classes[targets[changed]] == rows[0]["suggested"]


def test_what_cannot_be_audited_is_one_line(here: Path, tmp_path: Path) -> None:
    assert "no such run" in refused("audit", "nowhere", "--out", tmp_path)
    text = (here / "train.csv").read_text()
    times = (here / "train.csv").stat()
    try:
        (here / "train.csv").write_text(text + "1,1,1,ok\n")
        assert "have changed since" in refused("audit", "model", "--out", tmp_path)
    finally:
        (here / "train.csv").write_text(text)
        os.utime(here / "train.csv", ns=(times.st_atime_ns, times.st_mtime_ns))


def test_verified_rows_of_the_data_say_how_far_to_believe_the_run(here: Path) -> None:
    flipped = np.load(here / "flipped.npy")
    labels = [line.split(",")[-1] for line in Path("train.csv").read_text().splitlines()[1:]]
    other = {"ok": "broken", "broken": "ok"}
    rows = np.random.default_rng(0).choice(600, 80, replace=False)
    verified = {int(row): other[labels[row]] if flipped[row] else labels[row] for row in rows}
    found = diw.audit("model", verified=verified)
    assert found.wrong.low <= flipped.mean() <= found.wrong.high
    assert auroc(found.score[found.order], flipped[found.order]) > 0.93
    assert len(found.order) == 520
    assert "80 verified rows" in render(found)
    with pytest.raises(UsageError, match="verified: row 600 is not in the training data"):
        diw.audit("model", verified={600: "ok"})


def test_what_is_read_again_needs_no_torch(here: Path) -> None:
    """A report of runs, and what an audit found, are made without the library that trains."""
    script = (
        "import sys; import diw.reports.page, diw.reports.learners, diw.auditing.page\n"
        "from pathlib import Path; from diw.reports.comparison import compare_runs\n"
        "from diw.runs import find_runs; compare_runs(find_runs(Path('model')))\n"
        "assert 'torch' not in sys.modules, [n for n in sys.modules if n.startswith('diw')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
