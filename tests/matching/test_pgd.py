"""Projected gradient steps against their definition."""

import numpy as np
import pytest
from scipy.optimize import minimize

from diw.matching import PGD, kmm, pgd
from tests.matching.oracles import Exact

RNG = np.random.default_rng(2)
TRAIN, TRUSTED = RNG.exponential(2.0, 40), RNG.exponential(1.0, 30)


def test_a_step_is_its_definition():
    start = RNG.uniform(0, 2, 40)
    match = pgd(TRAIN, TRUSTED, start=start, rate=0.5, gamma=1.0, bound=1.5)
    exact = Exact.of(TRAIN, TRUSTED, gamma=1.0, ridge=1e-5, bound=1.5, slack=None)
    start = np.minimum(start, 1.5)
    gradient = exact.K @ start + 1e-5 * start - exact.k
    assert match.weights == pytest.approx(np.clip(start - 0.5 / 40 * gradient, 0, 1.5), abs=1e-9)
    assert match.status == "stopped after 1 step"
    assert match.iterations == 1


def test_defaults_are_those_of_adiw():
    match = pgd(TRAIN, TRUSTED)
    distances = np.abs(TRAIN[:, None] - TRAIN)[np.triu_indices(40, 1)]
    assert match.gamma == pytest.approx(np.quantile(distances, 0.5), rel=1e-12)
    assert np.array_equal(match.weights, kmm(TRAIN, TRUSTED, solver="pgd").weights)
    assert np.array_equal(match.weights, PGD().fit_weights(TRAIN, TRUSTED))


def test_many_steps_reach_the_optimum_and_the_bound_on_the_error_holds():
    exact = kmm(TRAIN, TRUSTED, gamma=1.0, ridge=1.0)
    before = np.inf
    for steps in (1, 10, 100, 3000):
        match = pgd(TRAIN, TRUSTED, gamma=1.0, ridge=1.0, steps=steps)
        error = np.linalg.norm(match.weights - exact.weights)
        assert error <= match.error_bound + exact.error_bound
        assert match.objective <= before
        before = match.objective
    assert error <= 1e-6
    assert not pgd(TRAIN, TRUSTED, gamma=1.0).is_optimal()


@pytest.mark.parametrize("level", [0.2, 4.0])
def test_the_projection_is_the_nearest_point_of_the_band(level):
    start = level * RNG.uniform(0, 2, 12)
    match = pgd(TRAIN[:12], TRUSTED, start=start, rate=1e-12, slack=0.1, bound=3.0)
    nearest = minimize(
        lambda w: ((w - start) ** 2).sum(),
        np.ones(12),
        bounds=[(0, 3)] * 12,
        constraints=[
            {"type": "ineq", "fun": lambda w: w.mean() - 0.9},
            {"type": "ineq", "fun": lambda w: 1.1 - w.mean()},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert match.weights == pytest.approx(nearest, abs=1e-5)
    assert abs(match.weights.mean() - 1) <= 0.1 + 1e-12


def test_a_start_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="start: needs one number per value"):
        pgd(TRAIN, TRUSTED, start=[1.0])
    with pytest.raises(ValueError, match="steps: must be at least 1"):
        pgd(TRAIN, TRUSTED, steps=0)
