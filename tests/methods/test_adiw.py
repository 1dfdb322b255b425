"""ADIW's projected gradient steps against their definition."""

import numpy as np
import pytest
from scipy.optimize import minimize

from diw.matching import kmm
from diw.matching.problem import make_problem
from diw.methods.adiw import projected_steps
from tests.matching.oracles import Exact

RNG = np.random.default_rng(2)
TRAIN, TRUSTED = RNG.exponential(2.0, 40), RNG.exponential(1.0, 30)


def test_a_step_is_its_definition():
    start = RNG.uniform(0, 2, 40)
    problem = make_problem(TRAIN, TRUSTED, gamma=1.0, bound=1.5)
    exact = Exact.of(TRAIN, TRUSTED, gamma=1.0, ridge=1e-5, bound=1.5, slack=None)
    inside = np.minimum(start, 1.5)
    gradient = exact.K @ inside + 1e-5 * inside - exact.k
    expected = np.clip(inside - 0.5 / 40 * gradient, 0, 1.5)
    assert projected_steps(problem, start, rate=0.5) == pytest.approx(expected, abs=1e-9)


def test_many_steps_reach_the_optimum_and_none_goes_back():
    match = kmm(TRAIN, TRUSTED, gamma=1.0, ridge=1.0)
    problem = make_problem(TRAIN, TRUSTED, gamma=1.0, ridge=1.0)
    exact = Exact.of(TRAIN, TRUSTED, gamma=1.0, ridge=1.0, bound=50.0, slack=None)
    weights = [projected_steps(problem, steps=steps) for steps in (1, 10, 100, 3000)]
    objectives = [exact.objective(w) for w in weights]
    assert sorted(objectives, reverse=True) == objectives
    assert np.linalg.norm(weights[-1] - match.weights) <= 1e-6


@pytest.mark.parametrize("level", [0.2, 4.0])
def test_the_projection_is_the_nearest_point_of_the_band(level):
    start = level * RNG.uniform(0, 2, 12)
    problem = make_problem(TRAIN[:12], TRUSTED, slack=0.1, bound=3.0)
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
    w = projected_steps(problem, start, rate=1e-12)
    assert w == pytest.approx(nearest, abs=1e-5)
    assert abs(w.mean() - 1) <= 0.1 + 1e-12
