import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.reports.statistics import mean_and_std, paired_interval, paired_p_value, standings

trials = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=8)


def test_mean_and_deviation_over_seeds() -> None:
    assert mean_and_std([1.0, 3.0]) == (2.0, pytest.approx(np.sqrt(2)))
    assert mean_and_std([0.5]) == (0.5, None)
    with pytest.raises(ValueError, match="at least one trial"):
        mean_and_std([])


def test_p_value_against_a_worked_example() -> None:
    # Differences 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.4641 with two degrees of freedom, for which
    # the distribution has a closed form: p = 1 - t / sqrt(t² + 2).
    t = 2 * np.sqrt(3)
    expected = 1 - t / np.sqrt(t**2 + 2)
    assert paired_p_value([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx(expected)


def test_interval_against_a_worked_example() -> None:
    # Differences 1, 2, 3: 2 ± 4.302653 / sqrt 3; t with two degrees of freedom, 97.5%.
    low, high = paired_interval([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (low, high) == (pytest.approx(2 - 2.484138), pytest.approx(2 + 2.484138))
    with pytest.raises(ValueError, match="at least two trials"):
        paired_interval([1.0], [2.0])


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=2, max_size=8))
def test_the_interval_excludes_zero_where_the_test_rejects(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    low, high = paired_interval(first, second)
    assert (low > 0 or high < 0) == (paired_p_value(first, second) < 0.05)


def test_a_wide_interval_is_no_clear_difference() -> None:
    """The worst mean is not called as good as the best without showing how little is known."""
    found = standings(
        {
            "wild": {1: 0.95, 2: 0.93, 3: 0.63},
            "steady": {1: 0.93, 2: 0.94, 3: 0.935},
            "best": {1: 0.95, 2: 0.956, 3: 0.953},
        }
    )
    assert (found["wild"].mark, found["steady"].mark) == ("comparable", "worse")
    low, high = found["wild"].interval or (0, 0)
    assert low < -0.4 < 0 < high
    assert found["best"].interval is None


def test_two_trials_have_an_interval_and_no_mark() -> None:
    found = standings({"a": {1: 0.5, 2: 0.6}, "b": {1: 0.6, 2: 0.8}})
    assert found["a"].difference == pytest.approx(-0.15)
    assert found["a"].interval is not None
    assert found["a"].mark is None is found["b"].mark


@given(trials, st.floats(0.01, 1))
def test_differences_without_variance(values: list[float], shift: float) -> None:
    assert paired_p_value(values, values) == 1.0
    assert paired_p_value([v + shift for v in values], values) == 0.0


@given(st.data(), st.integers(2, 6))
def test_the_order_of_the_pair_does_not_matter(data: st.DataObject, n: int) -> None:
    lists = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    first, second = data.draw(lists), data.draw(lists)
    p = paired_p_value(first, second)
    assert 0 <= p <= 1
    assert p == pytest.approx(paired_p_value(second, first))


@pytest.mark.parametrize(
    ("values", "options", "marks"),
    [
        pytest.param(
            {"low": [0.70, 0.71, 0.72], "near": [0.86, 0.80, 0.83], "top": [0.82, 0.84, 0.86]},
            {},
            {"low": "worse", "near": "comparable", "top": "best"},
            id="the best, and what it cannot be told from",
        ),
        pytest.param({"a": [0.7, 0.71], "b": [0.8, 0.82]}, {}, {}, id="too few seeds"),
        pytest.param(
            {"a": [0.7, 0.71], "b": [0.8, 0.82]},
            {"min_trials": 2},
            {"a": "worse", "b": "best"},
            id="as few as are asked for",
        ),
        pytest.param(
            {"a": [0.70, 0.71, 0.72], "b": [0.80, 0.82, 0.81], "lucky": [0.99]},
            {},
            {"a": "worse", "b": "best"},
            id="one that shares too few seeds is not judged",
        ),
        pytest.param({"only": [0.1, 0.2, 0.3]}, {}, {}, id="one alone is not the best"),
        pytest.param(
            {"near": [0.1, 0.2, 0.1], "far": [1.1, 1.3, 1.2]},
            {"higher_is_better": False},
            {"near": "best", "far": "worse"},
            id="lower is better for distances",
        ),
    ],
)
def test_marks(values: dict[str, list[float]], options: dict, marks: dict[str, str]) -> None:
    found = standings({name: dict(enumerate(trials)) for name, trials in values.items()}, **options)
    assert {name: one.mark for name, one in found.items() if one.mark} == marks
    p_values = {name: one.p_value for name, one in found.items()}
    assert all(
        (p_values[name] < 0.05) == (m == "worse") for name, m in marks.items() if m != "best"
    )
    assert all(p_values[name] is None for name in values if marks.get(name) in (None, "best"))


def test_means_closer_than_the_resolution_are_comparable() -> None:
    trials = {"a": {1: 0.10, 2: 0.20, 3: 0.30}, "b": {1: 0.11, 2: 0.21, 3: 0.31}}
    assert standings(trials)["a"].mark == "worse"
    assert standings(trials, resolution=0.02)["a"].mark == "comparable"
    assert standings(trials, resolution=0.005)["a"].mark == "worse"


def test_pairs_by_seed_and_not_by_place() -> None:
    # By seed the two differ by 0.01 each time; in the order given they would not.
    found = standings({"a": {3: 0.3, 1: 0.1, 2: 0.2}, "b": {1: 0.11, 2: 0.21, 3: 0.31}})
    assert found["a"].mark == "worse"
    assert found["a"].p_value == 0.0


def test_a_mark_from_one_trial_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        standings({"a": {1: 0.7}, "b": {1: 0.8}}, min_trials=1)
