"""Large problems: the conditions of optimality on sampled rows, approximations, memory."""

import numpy as np
import pytest

from diw.matching import kmm
from diw.matching.gram import gram_of

RIDGE = 1e-5


def losses(rng: np.random.Generator, n: int, noisy: float) -> np.ndarray:
    return np.where(rng.random(n) < noisy, np.abs(rng.normal(3, 1, n)), rng.exponential(0.5, n))


@pytest.mark.parametrize("rule", ["quantile:0.01", "median", "quantile:0.99"])
@pytest.mark.parametrize("n", [20_000, 100_000])
def test_a_large_match_satisfies_the_conditions_of_optimality(n, rule):
    rng = np.random.default_rng(n)
    train, trusted = losses(rng, n, 0.4), losses(rng, 1000, 0.0)
    match = kmm(train, trusted, gamma=rule, ridge=RIDGE)
    assert match.status == "optimal"
    assert abs(match.weights.mean() - 1) < 0.9  # the band does not bind, so it has no multiplier
    w = match.weights
    for i in rng.integers(0, n, 60):
        own = np.exp(-match.gamma * (train - train[i]) ** 2) @ w
        pull = np.exp(-match.gamma * (trusted - train[i]) ** 2).mean() * n
        gradient = (own + RIDGE * w[i] - pull) / n
        if 0 < w[i] < 50:
            assert abs(gradient) <= 1e-12
        elif w[i] == 0:
            assert gradient >= -1e-12
        else:
            assert gradient <= 1e-12


def test_a_capped_rank_is_approximate_and_says_by_how_much():
    rng = np.random.default_rng(1)
    train, trusted = rng.normal(size=(500, 3)), rng.normal(size=(100, 3)) + 0.3
    exact = kmm(train, trusted, ridge=1e-2)
    errors = []
    for rank in (5, 40, 160):
        match = kmm(train, trusted, ridge=1e-2, rank=rank)
        assert match.status == "approximate"
        assert match.rank == rank
        assert 0 < match.trace_error < 1
        assert not match.is_optimal()
        distance = np.linalg.norm(match.weights - exact.weights)
        assert distance <= match.error_bound
        errors.append((match.trace_error, distance))
    assert sorted(errors, reverse=True) == errors
    assert errors[-1][1] < 0.1 * np.linalg.norm(exact.weights)


def test_a_cap_that_is_not_reached_changes_nothing():
    rng = np.random.default_rng(2)
    train, trusted = losses(rng, 300, 0.4), losses(rng, 100, 0.0)
    match = kmm(train, trusted, rank=100)
    assert match.status == "optimal"
    assert np.abs(match.weights - kmm(train, trusted).weights).max() <= 1e-3


def test_a_diagonal_kernel_is_matched_exactly_even_when_capped():
    train = 100.0 * np.arange(40.0)
    match = kmm(train, train[:4], gamma=1.0, ridge=1e-3, rank=4, slack=0.9, bound=50.0)
    wanted = np.zeros(40)
    wanted[:4] = 10 / 1.001
    assert match.weights == pytest.approx(wanted, abs=1e-9)


def test_many_columns_are_capped_by_default():
    rng = np.random.default_rng(3)
    train, trusted = rng.normal(size=(8_300, 20)), rng.normal(size=(50, 20)) + 0.2
    z = np.concatenate([train, trusted])
    assert gram_of(z, len(train), 1 / 40, 1e-5).rank == 512
    flat = gram_of(z, len(train), 5.0, 1e-5)  # nearly the identity: no rank helps
    assert flat.rank == 100
    assert flat.left.mean() > 0.5


def test_full_rank_beyond_the_low_rank_cap():
    rng = np.random.default_rng(4)
    train, trusted = rng.normal(size=(1500, 10)), rng.normal(size=(50, 10)) + 0.2
    match = kmm(train, trusted)
    assert match.status == "optimal"
    assert match.rank == 1500
    assert match.error_bound <= 1e-2
