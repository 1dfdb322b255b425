"""The authors' solver: what it is needed for is to show where it stops."""

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
        assert theirs.objective >= ours.objective
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
