"""The width rules against the list of all distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from diw.matching import problem
from diw.matching.problem import distance_quantile, parse_rule, width

LEVELS = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.99, 1.0])


def all_distances(z: np.ndarray) -> np.ndarray:
    return pdist(z.reshape(len(z), -1))


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 400),
    kind=st.sampled_from(["exponential", "ties", "heavy", "decades", "duplicates"]),
    level=LEVELS,
)
def test_the_quantile_without_the_list_is_that_of_the_list(seed, n, kind, level):
    rng = np.random.default_rng(seed)
    z = {
        "exponential": lambda: rng.exponential(size=n),
        "ties": lambda: rng.integers(0, 1 + n // 8, n).astype(float),
        "heavy": lambda: rng.standard_cauchy(n) ** 3,
        "decades": lambda: np.exp(30 * rng.normal(size=n)),
        "duplicates": lambda: rng.choice(rng.normal(size=1 + n // 3), n),
    }[kind]()
    distances = all_distances(z)
    wanted = np.quantile(distances, level)
    if wanted == 0:
        positive = distances[distances > 0]
        wanted = positive.min() if positive.size else 0.0
    assert distance_quantile(z, level) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.99])
def test_the_quantile_of_many_values(level):
    z = np.random.default_rng(0).exponential(size=4000)
    assert distance_quantile(z, level) == pytest.approx(np.quantile(all_distances(z), level))


def test_the_quantile_of_a_grid_whose_differences_all_tie():
    n = 200_000
    z = np.random.default_rng(0).permutation(n).astype(float)
    # n − d pairs lie at distance d, so half of them below n(1 − 1/√2).
    assert distance_quantile(z, 0.5) == pytest.approx(n * (1 - np.sqrt(0.5)), abs=1)


@pytest.mark.parametrize("columns", [2, 30])
@pytest.mark.parametrize("n", [3, 100, 500])
def test_the_quantile_of_rows(n, columns):
    z = np.random.default_rng(n).normal(size=(n, columns)) + 50.0
    for level in (0.01, 0.5):
        wanted = np.quantile(all_distances(z), level)
        assert distance_quantile(z, level) == pytest.approx(wanted, rel=1e-9)


def test_duplicate_rows_are_at_distance_zero():
    z = np.repeat(np.random.default_rng(0).normal(size=(20, 5)), 10, axis=0)
    distances = all_distances(z)
    wanted = distances[distances > 0].min()
    assert np.quantile(distances, 0.01) == 0
    assert distance_quantile(z, 0.01) == pytest.approx(wanted, rel=1e-9)


def test_the_sampled_quantile_is_within_its_stated_error(monkeypatch):
    z = np.random.default_rng(1).normal(size=(2000, 4))
    distances = np.sort(all_distances(z))
    monkeypatch.setattr(problem, "EXACT_ROWS", 100)
    for level, error in ((0.01, 0.0005), (0.5, 0.0025), (0.99, 0.0005)):
        sampled = distance_quantile(z, level)
        assert abs(np.searchsorted(distances, sampled) / distances.size - level) <= error
        assert sampled == distance_quantile(z, level)  # a fixed seed


def test_rules():
    z = np.random.default_rng(0).exponential(size=(80, 3))
    distances = all_distances(z)
    assert width(z, "quantile:0.01") == pytest.approx(np.quantile(distances, 0.01))
    assert width(z, "median") == pytest.approx(1 / (2 * np.median(distances) ** 2))
    assert width(z, "scale") == pytest.approx(1 / (3 * z.var()))
    assert width(z[:, :1], "median") == pytest.approx(width(z[:, 0], "median"))


def test_the_scale_rule_is_scikit_learns():
    svm = pytest.importorskip("sklearn.svm")
    z = np.random.default_rng(0).normal(size=(50, 4))
    fitted = svm.SVC(gamma="scale").fit(z, np.arange(50) % 2)
    assert width(z, "scale") == pytest.approx(fitted._gamma)


@pytest.mark.parametrize("rule", ["quantile:0.01", "median", "scale"])
def test_equal_values_have_no_width(rule):
    assert width(np.full(9, 3.0), rule) == 0
    assert width(np.full((9, 2), 3.0), rule) == 0
    assert width(np.array([3.0]), rule) == 0


def test_ties_fall_back_to_the_smallest_positive_distance():
    z = np.array([0.0] * 50 + [1.0, 4.0])
    assert width(z, "quantile:0.5") == 1.0
    assert width(z, "median") == pytest.approx(0.5)


def test_parsing():
    assert parse_rule("quantile:0.25") == ("quantile", 0.25)
    for wrong in ("quantile:", "quantile:x", "quantile:-1", "median:3", "", "Median"):
        with pytest.raises(ValueError, match="gamma"):
            parse_rule(wrong)
