from pathlib import Path

import pytest

from diw.experiments.sources import load_split, training_places
from diw.runs import RunSpec
from tests.own_data import write_csv, write_images


def test_rows_of_a_table_and_of_its_trusted_file(tmp_path: Path) -> None:
    data, trusted = write_csv(tmp_path / "a.csv", 40, 0), write_csv(tmp_path / "b.csv", 20, 1)
    spec = RunSpec(data=str(data), trusted=str(trusted), test=str(data), label="status")
    spec = RunSpec(**{**vars(spec), "allow_leaks": True})
    places = training_places(spec)
    assert [(p.file, p.row, p.trusted) for p in places] == [
        *((str(data), row, False) for row in range(40)),
        *((str(trusted), row, True) for row in range(20)),
    ]


def test_a_part_of_the_data_keeps_its_row_numbers() -> None:
    spec = RunSpec(train_samples=200, trusted=20, shift="symmetric:0.2")
    places, split = training_places(spec), load_split(spec)
    whole = load_split(RunSpec(trusted=20, shift="symmetric:0.2"))
    import torch

    rows = [place.row for place in places]
    ours = split.train.take(torch.arange(len(rows)))[0]
    assert max(rows) > 200
    assert torch.equal(ours, whole.train.take(torch.tensor(rows))[0])
    assert sum(place.trusted for place in places) == 20


def test_images_are_named_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 6, 0)
    write_images(Path("checked"), 5, 1)
    write_images(Path("later"), 3, 2)
    places = training_places(RunSpec(data="photos", trusted="checked", test="later"))
    assert {place.key for place in places if place.trusted} == {
        (f"checked/{kind}/{number}.png", "") for kind in ("bar", "pole") for number in range(5)
    }
    assert {place.file for place in places if not place.trusted} == {
        f"photos/{kind}/{number}.png" for kind in ("bar", "pole") for number in range(6)
    }
