"""One small finished run on a table of one's own, trained once for all tests of the command."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_data import TRAIN, done, write_csv


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.csv, trusted.csv, test.csv, new.csv and the run `model`; not to touch."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed, (name, rows) in enumerate({"train": 80, "trusted": 30, "test": 40}.items()):
            write_csv(Path(f"{name}.csv"), rows, seed)
        write_csv(Path("new.csv"), 30, 9, labels=False)
        files = ["--data", "train.csv", "--trusted", "trusted.csv", "--test", "test.csv"]
        done(*TRAIN, *files, "--label", "status", "--out", "model")
    return folder


@pytest.fixture
def workplace(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of `trained`, and the folder one is in."""
    folder = tmp_path / "workplace"
    shutil.copytree(trained, folder)
    monkeypatch.chdir(folder)
    return folder
