"""Exchanges on large dense problems: few rounds, the optimum, and descent where they do not end."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diw.matching import kmm
from diw.matching.dense import EXCHANGE_ROWS, Box, Iterate, exchange


def shifted(n: int, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)), rng.normal(0.3, 1, (500, d))


@pytest.mark.parametrize("n", [EXCHANGE_ROWS + 1, 1500])
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
    return Box(K, 80 * rng.random(80), 1e-4, 20.0, 60.0)


def test_exchanges_that_stop_early_leave_a_feasible_point_with_its_gradient():
    box = small_box()
    point = Iterate(0.0 * box.k, -box.k, 0.0)
    assert not exchange(box, point, 0.0 * box.k + 1.0, 1)
    w = np.asarray(point.w)
    assert w.min() >= 0
    assert w.max() <= 20
    assert np.allclose(point.g, box.gradient(point.w, 0.0))


def test_exchanges_end_at_the_optimum_from_any_guess():
    box, ends = small_box(), []
    for guess in (0.0, 1.0, 20.0):
        point = Iterate(0.0 * box.k, -box.k, 0.0)
        assert exchange(box, point, 0.0 * box.k + guess, 60)
        ends.append(np.asarray(point.w))
    assert np.abs(ends[0] - ends[1]).max() <= 1e-9
    assert np.abs(ends[0] - ends[2]).max() <= 1e-9
