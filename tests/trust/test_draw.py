"""Which rows are drawn, and with which probability."""

import json

import numpy as np
import pytest

from diw.errors import UsageError
from diw.trust.draw import Draw, Round, allocate, draw_rows
from tests.trust.made import drawn_from, write_table

GIVEN = np.repeat([0, 1, 2], [900, 95, 5])


def test_a_stratified_draw_is_in_proportion_with_two_a_class() -> None:
    found = draw_rows(GIVEN, 3, 100)
    assert np.bincount(GIVEN[found.rows]).tolist() == [89, 9, 2]
    assert len(set(found.rows)) == 100
    assert found.rows != sorted(found.rows)  # who stops early has a random part


def test_what_is_drawn_follows_from_the_seed() -> None:
    assert draw_rows(GIVEN, 3, 50, seed=1) == draw_rows(GIVEN, 3, 50, seed=1)
    assert draw_rows(GIVEN, 3, 50, seed=1) != draw_rows(GIVEN, 3, 50, seed=2)


@pytest.mark.parametrize("way", ["random", "stratified", "informed"])
def test_later_rounds_draw_no_row_again_until_none_is_left(way: str) -> None:
    wrong = np.linspace(0, 1, len(GIVEN))
    rows: list[int] = []
    for _ in range(4):
        new = draw_rows(GIVEN, 3, 300, way=way, before=rows, wrong=wrong)
        assert not set(new.rows) & set(rows)
        rows += new.rows
    assert sorted(rows) == list(range(1000))
    with pytest.raises(UsageError, match="all 1,000 rows were drawn"):
        draw_rows(GIVEN, 3, 1, way=way, before=rows, wrong=wrong)


def test_too_few_rows_for_two_of_each_class_are_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"5 rows cannot hold 2 of each of 3 classes; draw 6"):
        allocate(5, np.array([10, 10, 10]), np.zeros(3, int))
    assert len(draw_rows(GIVEN, 3, 5, way="random").rows) == 5


def test_an_informed_draw_takes_doubtful_rows_more_often_with_the_chances_it_says() -> None:
    wrong = np.where(np.arange(1000) % 10 == 0, 0.5, 0.01)
    times = np.zeros(1000)
    said = np.zeros(1000)
    for seed in range(600):
        found = draw_rows(GIVEN, 3, 100, way="informed", wrong=wrong, seed=seed)
        assert len(set(found.rows)) == 100
        times[found.rows] += 1
        said[found.rows] = found.chance
    seen = times / 600
    doubtful = wrong == 0.5
    assert seen[doubtful].mean() == pytest.approx(said[doubtful].mean(), abs=0.01)
    assert seen[~doubtful].mean() == pytest.approx(said[~doubtful & (said > 0)].mean(), abs=0.01)
    assert seen[doubtful].mean() > 2 * seen[~doubtful].mean()


def test_rows_that_surely_tell_are_drawn_surely() -> None:
    wrong = np.r_[np.full(5, 0.5), np.zeros(995)]
    found = draw_rows(GIVEN, 3, 100, way="informed", wrong=wrong)
    assert set(range(5)) <= set(found.rows)
    assert max(found.chance) == 1.0


def _draw(*rounds: Round) -> Draw:
    rows = [row for one in rounds for row in one.rows]
    counts = tuple(np.bincount(GIVEN).tolist())
    given = tuple(GIVEN[rows].tolist())
    return Draw("x.csv", ".", None, None, ("a", "b", "c"), counts, rounds, given)


@pytest.mark.parametrize("ways", [("stratified",) * 3, ("random",) * 2])
def test_rounds_of_one_kind_are_as_one(ways: tuple[str, ...]) -> None:
    rounds: list[Round] = []
    for way in ways:
        before = [row for one in rounds for row in one.rows]
        rounds.append(draw_rows(GIVEN, 3, 60, way=way, before=before))
    found = _draw(*rounds)
    chance = found.drawn(np.ones(len(found.rows), bool))
    given = np.array(found.given)
    for c in range(3):
        stands_for = float((1 / chance[given == c]).sum())
        if ways[0] == "stratified":
            assert stands_for == pytest.approx(found.counts[c])
    assert float((1 / chance).sum()) == pytest.approx(1000)


def test_mixed_rounds_estimate_totals_without_a_bias() -> None:
    rng = np.random.default_rng(0)
    doubt = np.where(GIVEN == 1, 0.5, 0.05)
    wrong = rng.random(1000) < doubt
    totals = []
    for seed in range(400):
        first = draw_rows(GIVEN, 3, 60, seed=seed)
        second = draw_rows(GIVEN, 3, 40, way="informed", before=first.rows, wrong=doubt, seed=seed)
        third = draw_rows(GIVEN, 3, 30, before=[*first.rows, *second.rows], seed=seed)
        found = _draw(first, second, third)
        chance = found.drawn(np.ones(130, bool))
        totals.append(float((wrong[found.rows] / chance).sum()))
    error = np.std(totals) / 20
    assert abs(np.mean(totals) - wrong.sum()) < 3 * error + 0.01 * wrong.sum()


def test_rows_that_nobody_came_to_count_as_not_drawn() -> None:
    found = _draw(draw_rows(GIVEN, 3, 100))
    half = np.arange(100) < 50
    chance = found.drawn(half)
    assert float((1 / chance[half]).sum()) == pytest.approx(1000, rel=0.01)


def test_a_draw_survives_its_file(tmp_path) -> None:
    write_table(tmp_path / "x.csv")
    made = drawn_from(tmp_path / "x.csv")
    (tmp_path / "draw.json").write_text(json.dumps(made.as_json()))
    assert Draw.load(tmp_path) == made
    (tmp_path / "draw.json").write_text("{}")
    with pytest.raises(UsageError, match="not a file that diw wrote"):
        Draw.load(tmp_path)
    (tmp_path / "draw.json").unlink()
    with pytest.raises(UsageError, match=r"holds no draw\.json"):
        Draw.load(tmp_path)
