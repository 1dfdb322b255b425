"""What checked rows say of all: shares with intervals, pairs, and how far two people agree."""

import json
from pathlib import Path

import numpy as np
import pytest

from diw.trust import known
from diw.trust.draw import Draw, Round, draw_rows
from diw.trust.estimate import cohen_kappa
from diw.trust.report import (
    REGAINED,
    class_table,
    pair_table,
    regained,
    sentences,
    talk_table,
)
from diw.trust.sheet import Answer

GIVEN = np.repeat([0, 1, 2], [600, 300, 100])
CLASSES = ("ant", "bee", "cat")


def made(rows: list[int], way: str = "stratified") -> Draw:
    return Draw(
        "x.csv",
        ".",
        "kind",
        None,
        CLASSES,
        tuple(np.bincount(GIVEN).tolist()),
        (Round(way, rows),),
        tuple(GIVEN[rows].tolist()),
        tuple(("x.csv", row) for row in rows),
        tuple(map(str, rows)),
    )


def said(draw: Draw, right: np.ndarray, part: int | None = None) -> dict[int, Answer]:
    rows = draw.rows[:part]
    return {place: Answer(int(right[row]), "", place) for place, row in enumerate(rows)}


def test_all_rows_checked_give_the_share_itself() -> None:
    right = np.where(np.arange(1000) % 4 == 0, (GIVEN + 1) % 3, GIVEN)
    draw = made(list(range(1000)))
    found = known(draw, [said(draw, right)])
    assert found.share.as_list() == pytest.approx([0.25] * 3)
    assert found.pairs[0, 1].value == pytest.approx(0.25)
    assert found.by_class[2].value == pytest.approx(0.25)
    assert found.bounds is None
    assert sum(found.wrong) == 250


def test_rows_of_rare_classes_count_by_what_they_stand_for() -> None:
    rows = [*range(50), *range(600, 650), *range(900, 950)]
    right = np.where(GIVEN == 2, 0, GIVEN)  # all given as cat are wrong: a tenth
    draw = made(rows)
    found = known(draw, [said(draw, right)])
    assert found.share.value == pytest.approx(0.1, abs=0.03)
    assert found.by_class[2].value == 1.0
    found = known(draw, [said(draw, np.where(np.arange(1000) % 2, GIVEN, 2))])
    assert found.cost < 0.9
    assert any("drawn at random" in line for line in sentences(found, ["a"]))


def test_what_nobody_can_tell_gives_bounds_for_both_extremes() -> None:
    rows = draw_rows(GIVEN, 3, 200).rows
    draw = made(rows)
    right = np.where(np.arange(1000) % 5 == 0, (GIVEN + 1) % 3, GIVEN)
    answers = said(draw, right)
    for place in range(20):
        answers[place] = Answer(None, "drop" if place < 5 else "cannot tell", place)
    found = known(draw, [answers])
    low, high = found.bounds
    assert low.value < found.share.value < high.value
    assert high.value - low.value == pytest.approx(0.1, abs=0.02)
    assert found.unresolved == {"cannot tell": 15, "to drop": 5}
    assert "15 cannot tell, 5 to drop" in sentences(found, ["a"])[0]


def test_more_rows_narrow_the_interval_as_they_do() -> None:
    right = np.where(np.arange(1000) % 3 == 0, (GIVEN + 1) % 3, GIVEN)
    few = known(draw := made(draw_rows(GIVEN, 3, 100).rows), [said(draw, right)])
    more = known(draw := made(draw_rows(GIVEN, 3, 150).rows), [said(draw, right)])
    width = few.more.high - few.more.low
    assert width == pytest.approx(more.share.high - more.share.low, rel=0.1)


def test_a_class_of_which_nobody_checked_a_row_is_named() -> None:
    draw = made(list(range(100)))
    found = known(draw, [said(draw, GIVEN)])
    assert "no row given as bee, cat is checked: nothing is known of these" in sentences(
        found, ["a"]
    )
    assert found.by_class[1] is None


def test_two_sheets_are_held_against_each_other() -> None:
    draw = made(draw_rows(GIVEN, 3, 100).rows)
    first, second = said(draw, GIVEN), said(draw, GIVEN)
    for place in range(10):
        second[place] = Answer((first[place].right + 1) % 3, "", place)
    found = known(draw, [first, second])
    assert found.talk == tuple(range(10))
    assert found.checked.sum() == 90
    assert found.unresolved == {"disagreed about": 10}
    agreement = found.agreements[0]
    assert (agreement.both, agreement.same) == (100, 90)
    assert "a and b agree on 90 of 100 rows" in " ".join(sentences(found, ["a", "b"]))
    assert len(talk_table(found).rows) == 10


def test_sheets_of_different_rows_are_put_together() -> None:
    draw = made(draw_rows(GIVEN, 3, 100).rows)
    whole = said(draw, GIVEN)
    halves = [{p: a for p, a in whole.items() if p % 2 == part} for part in (0, 1)]
    found = known(draw, halves)
    assert found.checked.sum() == 100
    assert found.agreements == ()
    assert talk_table(found) is None
    assert pair_table(found) is None
    assert len(class_table(found).rows) == 3


def test_kappa_is_that_of_the_textbook() -> None:
    # Cohen's own example: two judges, 50 rows; agreement 0.7, 0.5 by chance.
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)
    assert cohen_kappa([(1, 1)] * 5) is None


def test_kappa_agrees_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    one = rng.integers(0, 4, 200)
    two = np.where(rng.random(200) < 0.7, one, rng.integers(0, 4, 200))
    pairs = list(zip(one.tolist(), two.tolist(), strict=True))
    assert cohen_kappa(pairs) == pytest.approx(metrics.cohen_kappa_score(one, two))


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize("way", ["random", "stratified", "informed"])
def test_the_interval_holds_the_share_as_often_as_it_says(way: str, rate: float) -> None:
    rng = np.random.default_rng(3)
    doubt = np.clip(rng.beta(rate * 2, (1 - rate) * 2, 1000), 0.001, 0.999)
    right = np.where(rng.random(1000) < doubt, (GIVEN + 1) % 3, GIVEN)
    share, held = float((right != GIVEN).mean()), 0
    for seed in range(100):
        new = draw_rows(GIVEN, 3, 100, way=way, wrong=doubt, seed=seed)
        draw = made(new.rows, way)
        draw = Draw(**vars(draw) | {"rounds": (new,)})
        found = known(draw, [said(draw, right)]).share
        held += found.low <= share <= found.high
    assert held >= 87  # 95 are expected; fewer than 87 once in a thousand draws of seeds


def test_it_is_json() -> None:
    draw = made(draw_rows(GIVEN, 3, 60).rows)
    plain = json.loads(json.dumps(known(draw, [said(draw, GIVEN)]).as_json()))
    assert plain["checked"] == 60
    assert plain["by_class"]["cat"]["rows"] == 100


def test_what_more_rows_bring_is_what_the_benchmark_measured() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "results" / "label-rows.json"
    cells = json.loads(path.read_text())["cells"].values()
    for m, part in REGAINED.items():
        parts = [
            sum(one[str(m)]["ours"] - one["given"] for one in cell.values())
            / sum(one["right"] - one["given"] for one in cell.values())
            for cell in cells
        ]
        assert part == pytest.approx(np.mean(parts), abs=0.05)  # rounded to 5%
        assert regained(m) == pytest.approx(part)
    draw = made(draw_rows(GIVEN, 3, 100).rows)
    lines = sentences(known(draw, [said(draw, GIVEN)]), ["a"])
    words = "so many regained about 60% of the accuracy that wrong labels cost on our benchmarks"
    assert any(words in line and "50 more 69%" in line for line in lines)
