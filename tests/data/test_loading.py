"""Data sets by name and path, and their classes."""

import numpy as np
import pytest

from diw.data import load
from diw.errors import UsageError


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_benchmark_takes_trusted_and_test_rows_from_files(tmp_path, rng):
    images = rng.integers(0, 256, (6, 28, 28), np.uint8)
    names = np.array(["Bag", "Coat", "Dress"] * 2)
    np.savez(tmp_path / "t.npz", X=images, y=names)
    bundle = load("embedded", trusted=tmp_path / "t.npz")
    assert bundle.trusted.targets.tolist() == [8, 4, 3] * 2
    assert len(bundle.test) == 2000
    np.savez(tmp_path / "t.npz", X=images, y=np.array(["Hat"] * 6))
    with pytest.raises(UsageError, match="label 'Hat' in row 0 is not a class"):
        load("embedded", trusted=tmp_path / "t.npz")


def test_unreadable_paths_say_what_is_readable(tmp_path):
    (tmp_path / "a.xlsx").touch()
    np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=np.arange(4) % 2)
    with pytest.raises(UsageError, match="readable are"):
        load(tmp_path / "a.xlsx")
    with pytest.raises(UsageError, match=r"there is no '.*absent\.csv'"):
        load(tmp_path / "absent.csv")
    with pytest.raises(UsageError, match=r"absent\.csv: no such file"):
        load(tmp_path / "a.npz", trusted=tmp_path / "absent.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no images"):
        load(tmp_path / "empty")
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    with pytest.raises(UsageError, match="no labels found"):
        load(tmp_path / "X.npy")
    with pytest.raises(UsageError, match="no such file of labels"):
        load(tmp_path / "X.npy", label=str(tmp_path / "nowhere.npy"))


def test_whole_number_classes_are_ordered_by_value(tmp_path, rng):
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(36, 2)), y=np.arange(36.0) % 12)
    assert load(tmp_path / "a.npz").train.classes == tuple(map(str, range(12)))


def test_whole_numbers_written_as_floats_are_one_class(tmp_path):
    rows = "".join(f"{i}.5,{1 + i % 2}.0\n" for i in range(20))
    (tmp_path / "train.csv").write_text("x,label\n" + rows)
    (tmp_path / "trusted.csv").write_text("x,label\n" + rows.replace(".0\n", "\n"))
    bundle = load(str(tmp_path / "train.csv"), trusted=str(tmp_path / "trusted.csv"))
    assert bundle.train.classes == ("1", "2")
