"""Draws that look where labels are doubtful, from a table of probabilities."""

from pathlib import Path

import numpy as np
import pytest

from diw.errors import UsageError
from diw.trust import draw_rows, read_items
from diw.trust.informed import worth, wrong_labels
from tests.own_data import done
from tests.trust.made import CLASSES, fill, write_table


@pytest.fixture
def right(tmp_path: Path, monkeypatch) -> np.ndarray:
    """Right labels of x.csv, and p.csv, in which a model is often sure of them."""
    monkeypatch.chdir(tmp_path)
    found = write_table(Path("x.csv"))
    scores = np.random.default_rng(1).normal(size=(300, 3)) + 4 * np.eye(3)[found]
    values = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    lines = [",".join(f"{value:.6f}" for value in row) for row in values]
    header = ",".join(f"p_{name}" for name in CLASSES)
    Path("p.csv").write_text("\n".join([header, *lines]) + "\n")
    np.savez("p.npz", probabilities=values, classes=np.array(CLASSES))
    return found


@pytest.mark.parametrize("name", ["p.csv", "p.npz"])
def test_wrong_labels_are_found_by_probabilities(right, name: str) -> None:
    items = read_items("x.csv", "kind")
    wrong = wrong_labels(Path(name), items, {})
    really = items.given != right
    assert wrong[really].mean() > 0.8
    assert wrong[~really].mean() < 0.2
    checked = {row: int(right[row]) for row in range(60)}
    assert not np.allclose(wrong_labels(Path(name), items, checked), wrong)


def test_a_draw_by_probabilities_goes_on_and_is_read(right) -> None:
    call = ("trust", "draw", "x.csv", "--label", "kind", "--out", "check")
    done(*call, "-n", "40")
    fill(Path("check/check.csv"), right)
    done("trust", "read", "check/check.csv", "--out", "check/verified.csv")
    out = done(*call, "-n", "40", "--probabilities", "p.csv")
    assert "40 of 300 rows drawn, 80 with those before" in out
    assert "they tell as much as" in out
    fill(Path("check/check-2.csv"), right)
    out = done("trust", "read", "check/check.csv", "check/check-2.csv")
    assert "80 of 80 drawn rows checked" in out


def test_a_table_that_does_not_fit_is_refused(right) -> None:
    items = read_items("x.csv", "kind")
    text = Path("p.csv").read_text()
    for content, words in (
        (text.replace("p_cat", "p_cow"), "has no column 'p_cat'"),
        ("\n".join(text.splitlines()[:-1]), r"expected a row per label .*p.csv"),
    ):
        Path("p.csv").write_text(content + "\n")
        with pytest.raises(UsageError, match=words):
            wrong_labels(Path("p.csv"), items, {})
    with pytest.raises(UsageError, match="there is no file"):
        wrong_labels(Path("no.csv"), items, {})


def test_rows_are_worth_no_less_than_is_said() -> None:
    rng = np.random.default_rng(0)
    given = np.zeros(2000, np.int64)
    doubt = np.where(rng.random(2000) < 0.1, 0.5, 0.02)
    wrong = rng.random(2000) < doubt
    said, estimates = [], []
    for seed in range(500):
        new = draw_rows(given, 1, 100, way="informed", wrong=doubt, seed=seed)
        chance, rows = np.array(new.chance), np.array(new.rows)
        said.append(worth(doubt, chance, rows))
        estimates.append((wrong[rows] / chance).sum() / (1 / chance).sum())
    p = float(wrong.mean())
    assert 100 < np.mean(said) < p * (1 - p) / np.var(estimates)  # in order of doubt: more
    random = draw_rows(given, 1, 100, way="informed", wrong=np.full(2000, 0.1))
    assert worth(np.full(2000, 0.1), np.array(random.chance), np.array(random.rows)) == (
        pytest.approx(100)
    )
