"""Checkpoints that are damaged or cut; a disk that fills up."""

import io
import shutil
from pathlib import Path

import pytest
import torch

from diw.errors import DamageError, DIWWarning
from diw.files import unseal
from tests.problems import assert_same, killed_at_record, results, tiny_training
from tests.test_files import disk_full_beyond


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple:
    training = tiny_training(tmp_path_factory.mktemp("whole"), momentum=0.9)
    training.finish()
    return results(training)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """A run that was killed while its fourth and last epoch was recorded."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch, killed_at_record(patch, 4):
        tiny_training(folder, momentum=0.9).finish()
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped, tmp_path / "run")
    return tmp_path / "run"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def garbage(path: Path) -> None:
    path.write_bytes(b"PK" + bytes(1000))


def test_two_checkpoints_are_kept(folder: Path) -> None:
    epochs = [
        torch.load(io.BytesIO(unseal(path, path.read_bytes())))["epoch"]
        for path in (folder / "checkpoint.pt", folder / "checkpoint.old.pt")
    ]
    assert epochs == [3, 2]


@pytest.mark.parametrize("damage", [flip, empty, cut, garbage, Path.unlink])
def test_the_older_one_is_used_when_the_newer_is_damaged(folder, whole, damage) -> None:
    damage(folder / "checkpoint.pt")
    training = tiny_training(folder, momentum=0.9)
    if damage is Path.unlink:
        training.finish()
    else:
        with pytest.warns(DIWWarning, match=r"checkpoint\.pt: .* goes on from checkpoint\.old\.pt"):
            training.finish()
    assert_same(results(training), whole)
    left = {path.name for path in folder.iterdir()}
    assert not {name for name in left if name.startswith((".", "checkpoint"))}


@pytest.mark.parametrize("damage", [flip, empty, cut, garbage])
def test_when_both_are_damaged_that_is_said(folder: Path, damage) -> None:
    for name in ("checkpoint.pt", "checkpoint.old.pt"):
        damage(folder / name)
    with pytest.raises(
        DamageError, match=r"checkpoint\.pt: .*checkpoint\.old\.pt: .*; remove .*run"
    ):
        tiny_training(folder, momentum=0.9).finish()


@pytest.mark.parametrize("name", ["metrics.jsonl", "weights.npy"])
def test_records_that_do_not_hold_what_the_checkpoints_count_on(folder: Path, name: str) -> None:
    flip(folder / name)
    with pytest.raises(DamageError, match=rf"{name}: is damaged"):
        tiny_training(folder, momentum=0.9).finish()
    (folder / name).unlink()
    with pytest.raises(DamageError, match=rf"{name}: holds 0 of the"):
        tiny_training(folder, momentum=0.9).finish()


def test_a_full_disk_keeps_the_last_good_state(folder: Path, whole) -> None:
    size = (folder / "checkpoint.pt").stat().st_size
    with disk_full_beyond(size - 10), pytest.raises(OSError, match=r"checkpoint\.pt"):
        tiny_training(folder, momentum=0.9).finish()
    training = tiny_training(folder, momentum=0.9)
    training.finish()
    assert_same(results(training), whole)
