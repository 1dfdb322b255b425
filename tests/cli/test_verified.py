"""`--verified FILE`: rows of the training data with given and right label, for every verb."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from diw.runs import Run
from tests.own_data import done, refused

ROWS, CHECKED = 500, 120
DATA = ("--data", "train.csv", "--label", "status")
SHORT = ("--steps", "150", "--device", "cpu", "--test", "test.csv")


def write(path: Path, rows: int, seed: int, *, rule: bool) -> np.ndarray:
    """A table whose labels a rule has made wrong where x2 is large; (n, 2) given and right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    right = np.where(x[:, 0] + x[:, 1] > 0, "ok", "broken")
    given = np.where(rule & (x[:, 2] > 0.5), "ok", right)
    lines = [
        ",".join([*(f"{cell:.4f}" for cell in cells), y]) for cells, y in zip(x, given, strict=True)
    ]
    path.write_text("\n".join(["x0,x1,x2,status", *lines]) + "\n")
    return np.stack([given, right], axis=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with training and test data, a sheet of verified rows and a run trained on them."""
    folder = tmp_path_factory.mktemp("verified")
    labels = write(folder / "train.csv", ROWS, 0, rule=True)
    write(folder / "test.csv", 200, 1, rule=False)
    rows = np.random.default_rng(2).permutation(ROWS)[:CHECKED]
    sheet = [f"{row},{labels[row, 0]},{labels[row, 1]}" for row in rows.tolist()]
    (folder / "checked.csv").write_text("\n".join(["row,given,right", *sheet]) + "\n")
    np.save(folder / "wrong.npy", labels[:, 0] != labels[:, 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done("train", *DATA, *SHORT, "--verified", "checked.csv", "--out", "model")
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


def checked() -> dict[int, tuple[str, str]]:
    with Path("checked.csv").open() as file:
        return {int(row["row"]): (row["given"], row["right"]) for row in csv.DictReader(file)}


def test_verified_rows_are_the_trusted_ones_with_their_right_labels(here: Path) -> None:
    run = Run(here / "model")
    assert run.spec.verified == "checked.csv"
    assert run.spec.trusted is None
    assert set(run.spec.files) == {"train.csv", "test.csv", "checked.csv"}
    split = run.source.split
    classes, rows = split.train.classes, split.rows.numpy()
    known = {**dict.fromkeys(range(len(rows)))}
    for place, given in zip(split.trusted_index.tolist(), split.trusted_given, strict=True):
        known[place] = classes[given], classes[split.train.targets[place]]
    pairs = {int(rows[place]): pair for place, pair in known.items() if pair is not None}
    assert pairs == {row: pair for row, pair in checked().items() if row in pairs}
    assert len(pairs) + len(split.selection) == CHECKED  # some choose the epoch
    assert len(split.train) == ROWS - len(split.selection)


def test_the_share_is_the_same_everywhere(here: Path, tmp_path: Path) -> None:
    truth = np.load("wrong.npy").mean()
    done("diagnose", *DATA, "--verified", "checked.csv", "--json", tmp_path / "d.json")
    said = json.loads((tmp_path / "d.json").read_text())
    assert said["verified"] == CHECKED
    low, high = said["wrong_labels"]["interval"]
    assert low <= truth <= high
    assert said["shifts"][0] in ("label noise", "systematic label errors")
    out = done("audit", "model", "--out", tmp_path / "a", "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["share"][1] <= truth <= found["share"][2]
    assert found["share"][0] == pytest.approx(said["wrong_labels"]["share"], abs=0.05)
    assert "labels are wrong (95% interval" in out
    with (tmp_path / "a" / "suspects.csv").open() as file:
        suspects = [int(row["row"]) for row in csv.DictReader(file)]
    assert np.load("wrong.npy")[suspects].mean() > 0.7
    assert set(suspects).isdisjoint(checked())


def test_the_recommended_command_keeps_the_verified_rows(here: Path) -> None:
    out = done("diagnose", *DATA, "--verified", "checked.csv")
    assert "diw train --data train.csv --label status --verified checked.csv --method " in out


def test_marks_of_an_audit_were_picked_and_do_not_say_how_many(here: Path, tmp_path: Path) -> None:
    """They train as others do; the share of wrong labels is left open, and why is said."""
    lines = ["file,row,label,mark,correct,content"]
    for row, (given, right) in list(checked().items())[:60]:
        mark, correct = ("right", "") if given == right else ("wrong", right)
        lines.append(f"train.csv,{row},{given},{mark},{correct},")
    marks = tmp_path / "corrections.csv"
    marks.write_text("\n".join(lines) + "\n")
    out = done("diagnose", *DATA, "--verified", marks, "--json", tmp_path / "d.json")
    assert "rows that were picked do not tell how many; draw some at random" in out
    assert json.loads((tmp_path / "d.json").read_text())["wrong_labels"]["share"] is None
    done("train", *DATA, *SHORT, "--verified", marks, "--out", tmp_path / "model")
    out = done("audit", tmp_path / "model", "--out", tmp_path / "a")
    assert "suspects" in out
    assert "labels are wrong" not in out


def test_compare_scores_learners_with_the_label_model(here: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    out = done(
        *("compare", *DATA, *SHORT, "--verified", "checked.csv", "--methods", "uniform"),
        *("--seeds", "1", "--jobs", "1", "--out", tmp_path, "--json", tmp_path / "c.json"),
    )
    learners = json.loads((tmp_path / "c.json").read_text())["learners"]
    judged = learners["logistic regression, labels judged by verified rows"]["0"]
    assert judged > learners["logistic regression, all rows"]["0"] + 0.05
    assert "gradient boosting, labels judged by verified rows" in out
    assert "--verified checked.csv" in out.partition("Next:")[2]
    assert "rows verified in checked.csv" in (tmp_path / "compare" / "report.html").read_text()


@pytest.mark.parametrize("verb", ["train", "compare", "diagnose"])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--trusted", "50"), "--verified: these rows are the trusted ones; leave --trusted out"),
        (("--shift", "pair:0.2"), "--shift: is simulated on labels that are right; leave it out"),
        (("--label", "x0"), "499 different labels in 500 rows; is this the label?"),
        (("--verified", "wrong.csv"), "line 2 of wrong.csv: row 3: 'okk' is not a class; is 'ok'"),
        (("--verified", "none.csv"), "--verified: none.csv: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    here: Path, tmp_path: Path, verb: str, flags: tuple[str, ...], words: str
) -> None:
    (here / "wrong.csv").write_text("row,right\n3,okk\n")
    out = () if verb == "diagnose" else ("--out", tmp_path / "new")
    assert words in refused(verb, *DATA, "--verified", "checked.csv", *out, *flags)
    assert not (tmp_path / "new").exists()
