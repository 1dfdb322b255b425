"""The authors' solver, to reproduce and to compare: it stops short of the optimum."""

import sys

import numpy as np
import pytest

from diw.matching import kmm
from tests.matching.test_minibatches import BATCHES


def test_without_cvxopt_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxopt", None)
    with pytest.raises(ValueError, match=r"solver: 'cvxopt' needs cvxopt.*diw\[released\]"):
        kmm([1.0, 2.0], [1.0], solver="cvxopt")


def test_it_stops_short_of_the_optimum_within_its_own_bound():
    pytest.importorskip("cvxopt")
    distances = []
    for _, train, trusted in BATCHES[::8]:
        train, trusted = train.astype(float), trusted.astype(float)
        ours, theirs = kmm(train, trusted), kmm(train, trusted, solver="cvxopt")
        assert theirs.status == "optimal to cvxopt's default tolerance"
        assert theirs.gamma == ours.gamma
        assert 0 <= theirs.weights.min() <= theirs.weights.max() <= 50
        assert theirs.objective >= ours.objective - 1e-9 * abs(ours.objective)
        assert theirs.objective == pytest.approx(ours.objective, rel=1e-5)
        assert not theirs.is_optimal(1e-9)
        assert np.linalg.norm(theirs.weights - ours.weights) <= theirs.error_bound
        distances.append(np.abs(theirs.weights - ours.weights).max())
    assert max(distances) > 0.1


def test_it_agrees_where_the_problem_is_well_conditioned():
    pytest.importorskip("cvxopt")
    rng = np.random.default_rng(0)
    train, trusted = rng.normal(size=60), rng.normal(size=40)
    options = {"gamma": 1.0, "ridge": 1.0, "slack": 0.05}
    ours, theirs = kmm(train, trusted, **options), kmm(train, trusted, solver="cvxopt", **options)
    assert np.abs(ours.weights - theirs.weights).max() <= 1e-3


def test_its_weights_are_those_of_the_examples_own_call():
    """The example writes all of G; where a solver stops early, its steps must be the same."""
    cvxopt = pytest.importorskip("cvxopt")
    _, train, trusted = BATCHES[0]
    train, trusted = train.astype(float), trusted.astype(float)
    n, bound, ridge, slack = len(train), 50.0, 1e-5, 1 - len(train) ** -0.5
    match = kmm(train, trusted, gamma=0.01, bound=bound, ridge=ridge, slack=slack, solver="cvxopt")
    K = np.exp(-0.01 * (train[:, None] - train) ** 2) + ridge * np.eye(n)
    k = np.exp(-0.01 * (train[:, None] - trusted) ** 2).sum(1) * n / len(trusted)
    G = np.concatenate([np.ones((1, n)), -np.ones((1, n)), np.eye(n), -np.eye(n)])
    h = np.concatenate([[n * (1 + slack), n * (slack - 1)], np.full(n, bound), np.zeros(n)])
    problem = map(cvxopt.matrix, (K, -k, G, h))
    answer = cvxopt.solvers.qp(*problem, options={"show_progress": False})
    assert match.iterations == answer["iterations"]
    np.testing.assert_allclose(match.weights, np.array(answer["x"])[:, 0], atol=1e-5)
