"""The verb `diagnose` where the other file has no labels."""

import json
from pathlib import Path

import pytest

from tests.own_data import diw, three_classes


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    three_classes("train.csv", "abc" * 200, 0)


def test_rows_without_labels_are_told_their_class_shares() -> None:
    three_classes("target.csv", "aaaaaabbbc" * 50, 1, named=False)
    code, text, error = diw(
        "diagnose", "--data", "train.csv", "--trusted", "target.csv", "--json", "d.json"
    )
    assert code == 0, error
    assert "target.csv has no labels. If only the class shares differ" in text
    assert "nothing speaks against that" in text
    assert "diw weights train.csv target.csv --out weights.csv --by-class" in text
    said = json.loads(Path("d.json").read_text())
    assert said["classes"] == ["a", "b", "c"]
    assert said["class_shares"] == pytest.approx([0.6, 0.3, 0.1], abs=0.1)
    assert all(0 < error < 0.1 for error in said["standard_errors"])


def test_rows_that_differ_in_more_are_said_to() -> None:
    three_classes("moved.csv", "abc" * 100, 1, move=2.0, named=False)
    code, text, error = diw("diagnose", "--data", "train.csv", "--trusted", "moved.csv")
    assert code == 0, error
    assert "but more than the class shares differs (p = " in text
    assert "--by-class" not in text


def test_rows_with_labels_are_diagnosed_as_ever() -> None:
    three_classes("labelled.csv", "aaabbc" * 50, 1)
    code, text, error = diw("diagnose", "--data", "train.csv", "--trusted", "labelled.csv")
    assert code == 0, error
    assert "class-prior shift" in text
