"""Leaks and classes without rows."""

import numpy as np
import pytest

from diw.data import load
from diw.errors import UsageError


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_leaks_are_reported_and_refused_for_test(tmp_path, rng):
    train, fresh = rng.normal(size=(40, 3)), rng.normal(size=(10, 3))
    np.savez(tmp_path / "train.npz", X=train, y=np.arange(40) % 2)
    mixed = np.concatenate([train[:4], fresh])
    np.savez(tmp_path / "mixed.npz", X=mixed, y=np.arange(14) % 2)
    np.savez(tmp_path / "fresh.npz", X=fresh, y=np.arange(10) % 2)
    paths = {name: tmp_path / f"{name}.npz" for name in ("train", "mixed", "fresh")}
    trusted = load(paths["train"], trusted=paths["mixed"])
    assert any(
        "4 of 14 trusted rows are also in the training data" in str(n) for n in trusted.notes
    )
    assert any("leak: trusted rows that are held out" in str(note) for note in trusted.notes)
    assert not load(paths["train"], trusted=paths["fresh"]).notes
    with pytest.raises(UsageError, match="4 of 14 test rows are also in the training data"):
        load(paths["train"], test=paths["mixed"])
    allowed = load(paths["train"], test=paths["mixed"], allow_leaks=True)
    assert any("leak: 4 of 14" in str(note) for note in allowed.notes)
    with pytest.raises(UsageError, match="10 of 10 test rows are also in the trusted data"):
        load(paths["train"], trusted=paths["fresh"], test=paths["fresh"])


def test_classes_without_rows_are_reported(tmp_path, rng):
    x = rng.normal(size=(30, 2))
    np.savez(tmp_path / "train.npz", X=x, y=np.array(["a", "b", "c"] * 10))
    np.savez(tmp_path / "trusted.npz", X=x[:4] + 1, y=np.array(["a", "b", "d", "d"]))
    bundle = load(tmp_path / "train.npz", trusted=tmp_path / "trusted.npz")
    assert bundle.train.classes == ("a", "b", "c", "d")
    assert "classes in the trusted data but not in the training data: d" in map(str, bundle.notes)
    assert "classes in the training data but not in the trusted data: c" in map(str, bundle.notes)
    np.savez(tmp_path / "test.npz", X=x[:1] + 2, y=np.array(["e"]))
    with pytest.raises(UsageError, match="'e' in row 0 is not a class"):
        load(tmp_path / "train.npz", test=tmp_path / "test.npz")


def test_of_many_small_classes_the_first_are_named(tmp_path, rng):
    np.savez(tmp_path / "a.npz", X=rng.normal(size=(90, 2)), y=np.arange(90) % 30)
    (note,) = load(tmp_path / "a.npz").notes
    assert str(note).endswith("8 (3), 9 (3) and 20 more")
