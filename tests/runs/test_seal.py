"""Damage to a finished run is reported by whatever reads it, never taken for a result."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from diw.errors import DamageError, RunError, UsageError
from diw.reports.summary import summarise
from diw.runs import Run, Writer
from tests.own_data import diw, done
from tests.reports.factory import make_run

READ_BY_REPORTS = ("metrics.jsonl", "weights.npy", "samples.npz", "spec.json", "facts.json")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Run:
    run = make_run(tmp_path_factory.mktemp("runs"), "diw", n=50)
    run.model.write_bytes(b"parameters")
    (run.folder / "facts.json").write_text('{\n"scored_on": "trusted"\n}\n')
    run.finish()
    return run


@pytest.fixture
def run(original: Run, tmp_path: Path) -> Run:
    shutil.copytree(original.folder, tmp_path / "run")
    return Run(tmp_path / "run")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lose_a_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def test_done_lists_every_file(run: Run) -> None:
    sealed = json.loads((run.folder / "done").read_text())
    names = {path.name for path in run.folder.iterdir()} - {"done"}
    assert set(sealed["files"]) == names
    assert {entry["size"] for entry in sealed["files"].values()} == {
        (run.folder / name).stat().st_size for name in names
    }
    assert sealed["epochs"] == len(run.metrics())
    assert run.verify() == len(names)


@pytest.mark.parametrize("damage", [flip, cut, lose_a_line, Path.unlink])
@pytest.mark.parametrize("name", [*READ_BY_REPORTS, "model.safetensors"])
def test_a_damaged_file_is_named(run: Run, name: str, damage) -> None:
    damage(run.folder / name)
    code, out, error = diw("report", "--check", run.folder)
    assert code == 1
    assert name in out
    assert "1 of 1 runs are damaged" in error
    if name in READ_BY_REPORTS:
        with pytest.raises(DamageError, match=name.replace(".", r"\.")):
            summarise(Run(run.folder))


def test_a_sound_run_is_verified(run: Run) -> None:
    assert "6 files as written" in done("report", run.folder, "--check")
    code, out, error = diw("verify", run.folder)  # the name of version 0.2
    assert (code, "6 files as written" in out, "use diw report --check" in error) == (0, True, True)
    (run.folder / "done").unlink()
    assert "unfinished, 12 epochs so far" in done("report", run.folder, "--check")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1}', "is damaged"),
        ('{"format": 1, "epochs": 2, "files": {"spec.json": {}}}', "is damaged"),
        ('{"format": 2, "epochs": 2, "files": {}}', "format 2 is not known; upgrade diw"),
        ('{"format": 1, "epochs": 3, "files": {}}', "12 of 3 epochs"),
    ],
)
def test_a_damaged_or_unknown_seal_is_refused(run: Run, text: str, words: str) -> None:
    (run.folder / "done").write_text(text)
    with pytest.raises(UsageError, match=words):
        summarise(Run(run.folder))


def test_a_run_from_before_there_were_checksums_is_read(run: Run) -> None:
    (run.folder / "done").write_text("")
    assert len(run.metrics()) == 12
    assert run.ledger().shape == (12, 50)
    assert "readable; it has no checksums" in done("report", run.folder, "--check")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.jsonl", b"[1]\n"),
        ("metrics.jsonl", b'{"epoch": 1, "x": "\xff"}\n'),
        ("metrics.jsonl", b'{"epoch": 1}\n'),
        ("metrics.jsonl", b'{"epoch": 1, "test_accuracy": "high", "seconds": 1}\n'),
        ("metrics.jsonl", b'{"epoch": 2}\n'),
        ("weights.npy", b""),
        ("weights.npy", b"\x93NUMPY\x01\x00"),
        ("samples.npz", b"PK"),
        ("spec.json", b""),
        ("spec.json", b"[]"),
    ],
)
def test_without_checksums_what_cannot_be_read_is_still_one_line(run, name, content) -> None:
    (run.folder / "done").write_text("")
    (run.folder / name).write_bytes(content)
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        summarise(Run(run.folder))


def test_weights_of_another_shape_are_refused(run: Run) -> None:
    (run.folder / "done").write_text("")
    for wrong in (np.zeros(12, np.float16), np.zeros((12, 50)), np.zeros((3, 50), np.float16)):
        np.save(run.folder / "weights.npy", wrong)
        with pytest.raises(DamageError, match=r"weights\.npy"):
            run.ledger()


def test_a_run_that_is_replaced_while_it_is_read_is_not_called_damaged(run: Run) -> None:
    from diw.runs.run import read_seal

    sealed = read_seal(run.folder)
    run.forget()
    with pytest.raises(RunError, match="another command has replaced this run"):
        sealed.check("metrics.jsonl")


def test_the_journal_goes_on_where_a_checkpoint_counts_on_it(tmp_path: Path) -> None:
    journal = Writer(tmp_path, 3, 2)
    journal.append({"epoch": 1}, np.ones(2))
    marks = journal.marks
    journal.append({"epoch": 2}, np.zeros(2))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"epo')
    again = Writer(tmp_path, 3, 2)
    again.cut(marks)
    assert again.marks == marks
    for epoch in (2, 3):
        again.append({"epoch": epoch}, np.full(2, epoch))
    run = Run(tmp_path)
    assert [row["epoch"] for row in run.metrics()] == [1, 2, 3]
    assert run.ledger().tolist() == [[1, 1], [2, 2], [3, 3]]
    np.testing.assert_array_equal(np.load(tmp_path / "weights.npy"), run.ledger())
    lose_a_line(tmp_path / "metrics.jsonl")
    with pytest.raises(DamageError, match=r"metrics\.jsonl: holds 2\d of the 3\d bytes"):
        Writer(tmp_path, 3, 2).cut(again.marks)
