"""Logistic regression against scikit-learn, and its expansions against fitting again."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from diw.matching.regression import Expansion, fit, probability

RNG = np.random.default_rng(2)
Y = np.repeat([0.0, 1.0], [120, 50])
X = np.vstack([np.ones(170), RNG.normal(size=(4, 170)) + 0.4 * Y])


def fitted(penalty, rows=slice(None)):
    return fit(X[:, rows], Y[rows], penalty, np.zeros(5), 1e-12)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_the_optimum_is_that_of_another_solver(penalty):
    found = fitted(penalty)
    model = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10_000).fit(X[1:].T, Y)
    assert found.log_odds == pytest.approx(model.decision_function(X[1:].T), abs=1e-4)
    gradient = X @ (1 / (1 + np.exp(-found.a @ X)) - Y)
    gradient[1:] += penalty * found.a[1:]
    assert np.abs(gradient).max() <= 1e-9
    assert found.residual == pytest.approx(np.abs(gradient).max() / 50, abs=1e-12)


def test_separate_values_converge():
    x = np.vstack([np.ones(170), 100.0 * (Y - 0.5)])
    found = fit(x, Y, 1e-3, np.zeros(2), 1e-10)
    assert found.residual <= 1e-10
    assert np.abs(found.p - Y).max() < 1e-2


@pytest.mark.parametrize("penalty", [2.0, 5.0, 20.0])
def test_a_fit_near_by_is_close_to_fitting_again(penalty):
    near, _ = Expansion(X, Y, fitted(5.0)).near(penalty)
    again = fitted(penalty).a
    assert near == pytest.approx(again, abs=0.03)
    if penalty != 5.0:
        moved = np.abs(again - fitted(5.0).a).max()
        assert np.abs(near - again).max() <= 0.2 * moved


@pytest.mark.parametrize("penalty", [3.0, 8.0])
def test_left_out_is_close_to_fitting_again(penalty):
    _, scores = Expansion(X, Y, fitted(3.0)).near(penalty)
    every = np.arange(170)
    for i in range(0, 170, 7):
        without = fitted(penalty, every != i)
        p = 1 / (1 + np.exp(-without.a @ X[:, i]))
        assert scores[i] == pytest.approx(np.log(p if Y[i] else 1 - p), abs=5e-3)


def test_probabilities_do_not_overflow():
    x, y = np.array([-800.0, -3.0, 0.0, 3.0, 800.0, 800.0]), np.array([0.0, 1, 0, 1, 1, 0])
    p, likelihood = probability(x, y)
    assert p == pytest.approx([0, 1 / (1 + np.exp(3)), 0.5, 1 / (1 + np.exp(-3)), 1, 1])
    assert likelihood == pytest.approx(y * x - np.logaddexp(0, x), abs=1e-15)
