"""What must hold for every input, found by hypothesis, and the cases whose answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diw.matching import kmm

ANY = st.floats(allow_nan=False, allow_infinity=False, width=64)
RULES = st.sampled_from(["quantile:0.01", "quantile:0.5", "quantile:0.99", "median", "scale"])
GAMMAS = st.one_of(RULES, st.floats(-6, 6).map(lambda e: 10.0**e))
RIDGES = st.floats(-6, 1).map(lambda e: 10.0**e)
SEEDS = st.integers(0, 2**32 - 1)


def losses(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses on a dyadic grid, so that adding a whole number to them is exact."""
    rng = np.random.default_rng(seed)
    train = np.where(rng.random(n) < 0.4, rng.normal(3, 1, n), rng.exponential(0.5, n))
    trusted = rng.exponential(0.5, m)
    return np.round(train * 2**20) / 2**20, np.round(trusted * 2**20) / 2**20


@settings(max_examples=200, deadline=None)
@given(
    train=st.lists(ANY, min_size=1, max_size=20),
    trusted=st.lists(ANY, min_size=1, max_size=20),
    gamma=GAMMAS,
    ridge=RIDGES,
    bound=st.floats(1, 100),
    slack=st.one_of(st.none(), st.floats(0, 2)),
)
def test_any_finite_values_get_feasible_weights(train, trusted, gamma, ridge, bound, slack):
    n = len(train)
    match = kmm(train, trusted, gamma=gamma, ridge=ridge, bound=bound, slack=slack)
    w = match.weights
    epsilon = (np.sqrt(n) - 1) / np.sqrt(n) if slack is None else slack
    assert match.status == "optimal"
    assert np.isfinite(w).all()
    assert w.min() >= 0
    assert w.max() <= bound
    assert abs(w.mean() - 1) <= epsilon + 1e-14
    assert np.isfinite(match.objective)
    assert match.gamma >= 0
    assert np.isfinite(match.error_bound)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(ANY, ANY, ANY), min_size=2, max_size=20),
    split=st.integers(1, 100),
    gamma=RULES,
)
def test_any_finite_rows_get_feasible_weights(rows, split, gamma):
    cut = 1 + split % (len(rows) - 1)
    match = kmm(np.array(rows[:cut]), np.array(rows[cut:]), gamma=gamma)
    assert match.status == "optimal"
    assert match.weights.min() >= 0
    assert match.weights.max() <= 50
    assert abs(match.weights.mean() - 1) <= (np.sqrt(cut) - 1) / np.sqrt(cut) + 1e-14


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, n=st.integers(2, 300), m=st.integers(1, 200), rule=RULES)
def test_a_permutation_of_the_samples_permutes_the_weights(seed, n, m, rule):
    train, trusted = losses(seed, n, m)
    order = np.random.default_rng(seed).permutation(n)
    one = kmm(train, trusted, gamma=rule, ridge=1e-3)
    other = kmm(train[order], trusted[::-1], gamma=rule, ridge=1e-3)
    assert np.abs(one.weights[order] - other.weights).max() <= 1e-6


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, n=st.integers(2, 300), shift=st.integers(-1000, 1000), rule=RULES)
def test_adding_a_constant_changes_nothing(seed, n, shift, rule):
    train, trusted = losses(seed, n, 100)
    one, other = (kmm(train + c, trusted + c, gamma=rule, ridge=1e-3) for c in (0, shift))
    assert one.gamma == pytest.approx(other.gamma, rel=1e-9)
    assert np.abs(one.weights - other.weights).max() <= 1e-6


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 300), rule=st.sampled_from(["quantile:0.01", "median"]))
def test_trusted_values_equal_to_the_training_ones_give_weights_near_one(seed, n, rule):
    train, _ = losses(seed, n, 1)
    assert np.abs(kmm(train, train, gamma=rule).weights - 1).max() <= 0.02


@pytest.mark.parametrize("shape", [(7,), (7, 3)])
@pytest.mark.parametrize("value", [0.0, 2.5, 1e30, -1e-310])
def test_all_equal_values_give_ones(shape, value):
    match = kmm(np.full(shape, value), np.full(shape, value))
    assert np.abs(match.weights - 1).max() <= 1e-5
    assert match.gamma == 0


def test_equal_training_values_get_equal_weights_wherever_the_trusted_ones_are():
    w = kmm(np.full(9, 2.0), np.array([5.0, 7.0]), gamma=1.0).weights
    assert np.ptp(w) <= 1e-9


def test_one_sample_has_weight_one():
    assert kmm([3.0], [9.0, 1.0]).weights == pytest.approx([1.0], abs=1e-12)
    assert kmm(np.ones((1, 4)), np.zeros((2, 4))).weights == pytest.approx([1.0], abs=1e-12)


def test_huge_and_tiny_values():
    huge = kmm(np.array([1e30, 2.0, 3e30]), np.array([1e30]))
    assert huge.weights == pytest.approx([3.0, 0.0, 0.0], abs=1e-3)
    tiny = kmm(np.array([1e-301, 2e-301, 5e-310]), np.array([1e-301]))
    assert tiny.weights == pytest.approx([1.0, 1.0, 1.0], abs=1e-3)
    spread = kmm(np.array([1e-300, 1.0, 1e300, -1e308]), np.array([1.0, 1e300]), gamma="median")
    assert spread.status == "optimal"


def test_the_only_feasible_weights_are_found():
    rng = np.random.default_rng(0)
    match = kmm(rng.normal(size=40), rng.normal(size=9), bound=1.0, slack=0.0)
    assert match.weights == pytest.approx(np.ones(40), abs=1e-12)
    assert match.weights.max() <= 1
