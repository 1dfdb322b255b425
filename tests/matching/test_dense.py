"""Exchanges on dense problems: few rounds, the optimum, or an interior point if they do not end."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diw.matching import kmm
from diw.matching.dense import Box, exchange


def shifted(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)), rng.normal(0.3, 1, (500, d))


@pytest.mark.parametrize("n", [513, 1500])
def test_the_number_of_factorisations_does_not_grow_with_n(n):
    train, trusted = shifted(n)
    match = kmm(train, trusted)
    assert match.rank == n
    assert match.status == "optimal"
    assert match.iterations <= 25
    w = match.weights
    own = np.exp(-match.gamma * cdist(train, train, "sqeuclidean")) @ w
    pull = np.exp(-match.gamma * cdist(train, trusted, "sqeuclidean")).mean(1) * n
    gradient = (own + 1e-5 * w - pull) / n
    assert np.abs(gradient[w > 0]).max() <= 1e-12
    assert gradient[w == 0].min() >= -1e-12


@pytest.mark.parametrize("bound", [1.2, 50.0])
@pytest.mark.parametrize("slack", [0.0, 0.3])
def test_the_band_binds_on_a_large_dense_problem(bound, slack):
    train, trusted = shifted(600, 6)
    match = kmm(train, trusted + 2.0, bound=bound, slack=slack, ridge=1e-2)
    assert match.rank == 600
    assert match.is_optimal()
    assert abs(match.weights.mean() - 1) <= slack + 1e-12


def small_box() -> Box:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(80, 4))
    K = np.exp(-0.2 * cdist(z, z, "sqeuclidean"))
    return Box(K, 80 * rng.random(80), 1e-4, 20.0)


def test_exchanges_that_stop_early_leave_a_feasible_point_with_its_residual():
    box = small_box()
    point, rounds = exchange(box, np.ones(80), None, 1)
    assert rounds == 1
    assert 0 <= point.w.min() <= point.w.max() <= 20
    gradient = box.gradient(point.w, 0.0)
    inside = (point.w > 0) & (point.w < 20)
    assert np.array_equal(point.residual[inside], gradient[inside])
    assert np.abs(point.residual).max() > 1e-3


def test_exchanges_end_at_the_optimum_from_any_guess():
    box, ends = small_box(), []
    for guess in (0.0, 1.0, 20.0):
        point, _ = exchange(box, np.full(80, guess), None, 60)
        assert np.abs(point.residual).max() <= 1e-9
        ends.append(point.w)
    assert np.abs(ends[0] - ends[1]).max() <= 1e-9
    assert np.abs(ends[0] - ends[2]).max() <= 1e-9


def test_where_exchanges_do_not_end_the_interior_point_does(monkeypatch):
    """One round solves nothing; what the interior point holds at a bound is the next guess."""
    train, trusted = shifted(100)
    wanted = kmm(train, trusted, ridge=1e-2, slack=0.0, bound=3.0)
    monkeypatch.setattr("diw.matching.dense.ROUNDS", 1)
    found = kmm(train, trusted, ridge=1e-2, slack=0.0, bound=3.0)
    assert found.is_optimal(1e-8)
    assert found.weights == pytest.approx(wanted.weights, abs=1e-6)
