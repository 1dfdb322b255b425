"""A match in parts is the match of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diw.errors import MatchingError
from diw.matching import kmm, kmm_blocks


class Kept:
    """A part in memory."""

    def __init__(self, values) -> None:
        self.values, self.rows = values, len(values)

    def read(self):
        return self.values.copy()

    def write(self, weights) -> None:
        self.weights = weights


def in_parts(z, trusted, cuts, **options):
    parts = [Kept(part) for part in np.split(z, cuts) if len(part)]
    found = kmm_blocks(parts, trusted, **options)
    return found, np.concatenate([part.weights for part in parts])


def assert_same(z, trusted, cuts, **options) -> None:
    found, weights = in_parts(z, trusted, cuts, **options)
    whole = kmm(z, trusted, **{name: options[name] for name in options if name != "sample"})
    assert found.status == whole.status == "optimal"
    assert found.gamma == pytest.approx(whole.gamma, rel=1e-12)
    assert found.objective == pytest.approx(whole.objective, rel=1e-10)
    np.testing.assert_allclose(weights, whole.weights, rtol=0, atol=1e-4)
    assert found.mean == pytest.approx(float(whole.weights.mean()), abs=1e-6)
    assert found.largest == weights.max()
    assert found.rows == len(z)


CASES = {
    "free": {},
    "median": {"gamma": "median"},
    "the sum binds": {"slack": 0.001},
    "the sum is given": {"slack": 0.0, "bound": 1.3},
    "the bound binds": {"bound": 1.2},
    "large ridge": {"ridge": 10.0},
}


@pytest.mark.parametrize("case", CASES)
def test_losses_in_parts(case) -> None:
    generator = np.random.default_rng(0)
    z, trusted = generator.exponential(1, 20_000), generator.exponential(0.5, 300)
    assert_same(z, trusted, [100, 15_000, 15_001], **CASES[case])


def test_more_values_than_the_sample_and_one_that_it_misses() -> None:
    generator = np.random.default_rng(1)
    z, trusted = generator.exponential(1, 30_000), generator.exponential(0.5, 300)
    z[[7, 20_000]] = [40.0, -35.0]
    assert_same(z, trusted, [10_000, 20_000], gamma=0.05, sample=500)


def test_newton_finds_its_way_from_a_bad_sample() -> None:
    """A small sample is a poor start: steps are shortened, and the end is the same."""
    generator = np.random.default_rng(2)
    z, trusted = generator.exponential(1, 20_000), generator.exponential(0.2, 300)
    assert_same(z, trusted, [5_000], gamma=1.0, bound=3.0, sample=300)


def test_columns_at_a_capped_rank() -> None:
    """All pivots come from the same values, so it is the same problem as in memory."""
    generator = np.random.default_rng(3)
    z, trusted = generator.normal(size=(2_000, 3)), generator.normal(0.3, 1, (200, 3))
    options = {"rank": 20, "gamma": 0.5, "ridge": 0.1}
    found, weights = in_parts(z, trusted, [700, 1500], **options)
    whole = kmm(z, trusted, **options)
    assert found.status == whole.status == "approximate"
    assert found.rank == whole.rank == 20
    assert found.trace_error == pytest.approx(whole.trace_error, rel=1e-6)
    assert found.objective == pytest.approx(whole.objective, rel=1e-10)
    np.testing.assert_allclose(weights, whole.weights, rtol=0, atol=1e-4)
    assert found.error_bound >= np.linalg.norm(weights - kmm(z, trusted, **{**options, "rank": None}).weights)  # noqa: E501  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=4), st.integers(0, 99))
def test_how_it_is_cut_does_not_matter(cuts, seed) -> None:
    generator = np.random.default_rng(seed)
    z, trusted = generator.normal(size=400), generator.normal(0.5, 1, 40)
    found, weights = in_parts(z, trusted, sorted(cuts))
    whole, same = in_parts(z, trusted, [])
    assert found.objective == pytest.approx(whole.objective, rel=1e-12)
    np.testing.assert_allclose(weights, same, rtol=0, atol=1e-5)


def test_what_is_not_solved_is_said() -> None:
    generator = np.random.default_rng(4)
    z, trusted = generator.exponential(1, 5_000), generator.exponential(0.5, 100)
    with pytest.raises(MatchingError, match=r"of blocks: not solved to tol=1e-300 in"):
        in_parts(z, trusted, [], tol=1e-300)
