"""Small finished runs on data of one's own, trained once for all tests of the command."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.own_data import TRAIN, done, write_csv, write_images, write_npz


def check_rows(data: str, folder: str) -> None:
    """Draw rows, and fill their sheet as somebody who thinks that all are ok."""
    done("trust", "draw", data, "--label", "status", "-n", "9", "--out", folder)
    sheet = Path(folder, "check.csv")
    header, *lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    filled = [line.replace(",,,", ",ok,,", 1) for line in lines]
    sheet.write_text("\n".join([header, *filled]) + "\n")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and the runs `model` and, without a test file, `held-out`; not to touch.

    And arrays with the run `arrays`, photos with the run `pictures`, and rows in `checked`.
    """
    folder = tmp_path_factory.mktemp("trained")
    rows = "rows:" + ",".join(map(str, range(16)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed, (name, number) in enumerate({"train": 80, "trusted": 30, "test": 40}.items()):
            write_csv(Path(f"{name}.csv"), number, seed)
        write_csv(Path("new.csv"), 30, 9, labels=False)
        write_npz(Path("train.npz"), 80, 1)
        write_images(Path("photos"), 8, 1)
        files = ["--data", "train.csv", "--trusted", "trusted.csv", "--label", "status"]
        done(*TRAIN, *files, "--test", "test.csv", "--out", "model")
        done(*TRAIN, *files, "--out", "held-out")
        done(*TRAIN, "--data", "train.npz", "--trusted", rows, "--out", "arrays")
        done(*TRAIN, "--data", "photos", "--trusted", rows, "--out", "pictures")
        check_rows("train.csv", "checked")
    return folder


@pytest.fixture
def workplace(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of `trained`, and the folder one is in."""
    folder = tmp_path / "workplace"
    shutil.copytree(trained, folder)
    monkeypatch.chdir(folder)
    return folder
