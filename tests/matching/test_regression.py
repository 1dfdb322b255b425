"""Logistic regression against scikit-learn, and its expansions against fitting again."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from diw.matching.features import PART, RUN, Standardised, Written, parts
from diw.matching.regression import SPARSE, Expansion, Hessian, enough, fit, probability

RNG = np.random.default_rng(2)
Y = np.repeat([0.0, 1.0], [120, 50])
X = np.vstack([np.ones(170), RNG.normal(size=(4, 170)) + 0.4 * Y])


def fitted(penalty, rows=slice(None)):
    return fit(Written(X[:, rows]), Y[rows], penalty, np.zeros(5), 1e-12, 100)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0])
def test_the_optimum_is_that_of_another_solver(penalty):
    found = fitted(penalty)
    model = LogisticRegression(C=1 / penalty, tol=1e-12, max_iter=10_000).fit(X[1:].T, Y)
    assert found.log_odds == pytest.approx(model.decision_function(X[1:].T), abs=1e-4)
    gradient = X @ (1 / (1 + np.exp(-found.a @ X)) - Y)
    gradient[1:] += penalty * found.a[1:]
    assert np.abs(gradient).max() <= 1e-9
    assert found.residual == pytest.approx(np.abs(gradient).max() / 50, abs=1e-12)
    likelihood = np.logaddexp(0, found.log_odds) - Y * found.log_odds
    expected = likelihood.sum() + penalty / 2 * (found.a[1:] ** 2).sum()
    assert found.objective == pytest.approx(expected / 170)


def test_separate_values_converge():
    x = np.vstack([np.ones(170), 100.0 * (Y - 0.5)])
    found = fit(Written(x), Y, 1e-3, np.zeros(2), 1e-10, 200)
    assert found.residual <= 1e-10
    assert np.abs(found.p - Y).max() < 1e-2


@pytest.mark.parametrize("in_order", [False, True])
def test_many_values_have_the_optimum_of_all_not_of_some(in_order):
    """Of values in order one in k is a poor sample, and Newton's method must notice."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(3, 2 * SPARSE * enough(4) + 100))
    z = z[:, z[0].argsort()] if in_order else z
    x = np.vstack([np.ones(z.shape[1]), z])
    y = (rng.uniform(size=z.shape[1]) * (1 + np.exp(3 - 2 * z[0])) < 1).astype(float)
    found = fit(Written(x), y, 2.0, np.zeros(4), 1e-10, 50)
    gradient = x @ (1 / (1 + np.exp(-found.a @ x)) - y) + 2.0 * np.r_[0, found.a[1:]]
    assert np.abs(gradient).max() <= 1e-10 * y.sum() * 1.01
    assert found.steps <= 20


@pytest.mark.parametrize("every", [1, 3])
def test_features_that_are_not_written_are_the_same(every):
    rng = np.random.default_rng(5)
    z = rng.normal(3.0, [1.0, 20.0], (10 * RUN, 2))
    centre, scale = z.mean(0), 1 / z.std(0)
    virtual, part = Standardised(z.T, centre, scale), slice(RUN, 3 * RUN + 5)
    x = np.vstack([np.ones(len(z)), ((z - centre) * scale).T])
    a, weights = rng.normal(size=3), rng.uniform(size=len(z))
    assert virtual.log_odds(a, part) == pytest.approx(a @ x[:, part])
    assert virtual.total(weights[part], part) == pytest.approx(x[:, part] @ weights[part])
    some = np.arange(len(z)) // RUN % every == 0
    expected = every * (x[:, some] * weights[some]) @ x[:, some].T
    assert virtual.gram(weights, every) == pytest.approx(expected)
    assert Written(x).gram(weights, every) == pytest.approx(expected)


def test_a_hessian_knows_the_last_step_it_learned():
    p = RNG.uniform(size=170)
    ridge = np.array([0.0, 2, 2, 2, 2])
    gram = (X * (p * (1 - p))) @ X.T
    exact = gram + np.diag(ridge)
    model = Hessian(lambda right: np.linalg.solve(exact, right))
    right = RNG.normal(size=5)
    assert model.solve(right) == pytest.approx(np.linalg.solve(exact, right))
    for _ in range(3):
        step = RNG.normal(size=5)
        change = exact @ step + 0.1 * step
        model.learn(step, change)
        assert model.solve(change) == pytest.approx(step)
    before = model.solve(right)
    model.learn(step, -change)  # no curvature: nothing to learn
    assert np.array_equal(model.solve(right), before)


@pytest.mark.parametrize("penalty", [2.0, 5.0, 20.0])
def test_a_fit_near_by_is_close_to_fitting_again(penalty):
    near, _ = Expansion(X, Y, fitted(5.0)).near(penalty)
    again = fitted(penalty).a
    assert near == pytest.approx(again, abs=0.03)
    if penalty != 5.0:
        moved = np.abs(again - fitted(5.0).a).max()
        assert np.abs(near - again).max() <= 0.2 * moved


def test_the_hessian_of_a_fit_is_known_for_every_penalty():
    found, right = fitted(5.0), RNG.normal(size=5)
    exact = (X * (found.p * (1 - found.p))) @ X.T + np.diag([0.0, 2, 2, 2, 2])
    model = Expansion(X, Y, found).hessian(2.0)
    assert model.solve(right) == pytest.approx(np.linalg.solve(exact, right))
    again = fit(Written(X), Y, 2.0, found.a, 1e-12, 100, model)
    assert again.a == pytest.approx(fitted(2.0).a)


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


def test_parts_cover_all_once():
    for size in (1, PART, PART + 1, 3 * PART - 1):
        together = np.concatenate([np.arange(size)[part] for part in parts(size)])
        assert (together == np.arange(size)).all()


def test_many_values_give_the_same_in_parts():
    many, labels = np.tile(X, (1, 60)), np.tile(Y, 60)
    found = fit(Written(many), labels, 60 * 2.0, np.zeros(5), 1e-12, 100)
    assert found.a == pytest.approx(fitted(2.0).a, rel=1e-9)
