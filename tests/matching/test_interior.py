"""The interior point that stops early: where cvxopt stops, without it; and cvxopt itself."""

import sys

import numpy as np
import pytest

from diw.errors import MatchingError
from diw.matching import kmm, kmm_batch
from tests.matching.random_problems import random_problem
from tests.matching.test_minibatches import BATCHES, DATA

STATUS = "stopped at relative gap 1e-6"


def difference(one, other) -> float:
    """The mean absolute difference of the weights of two matches, whose mean is about one."""
    return float(np.abs(one.weights - other.weights).mean())


@pytest.mark.parametrize("rule", ["quantile:0.01", "median"])
def test_recorded_losses_get_the_weights_of_cvxopt_not_the_exact_ones(rule):
    pytest.importorskip("cvxopt")
    stopped, exact = [], []
    for _, train, trusted in BATCHES:
        train, trusted = train.astype(float), trusted.astype(float)
        theirs = kmm(train, trusted, gamma=rule, solver="cvxopt")
        match = kmm(train, trusted, gamma=rule, solver="stopped")
        assert match.status == STATUS
        assert match.rank <= 40  # on the factor
        stopped.append(difference(match, theirs))
        exact.append(difference(kmm(train, trusted, gamma=rule), theirs))
    # Where rounding costs an iteration more or less the weights differ a little.
    assert np.median(stopped) <= 1e-4
    assert np.mean(stopped) <= 0.02
    assert np.mean(exact) >= 0.05


def test_features_by_class_get_the_weights_of_cvxopt():
    pytest.importorskip("cvxopt")
    trains, trusteds = (
        [DATA[f"features_{part}"][DATA[f"labels_{part}"] == c].astype(float) for c in range(10)]
        for part in ("train", "trusted")
    )
    ours, theirs = (kmm_batch(trains, trusteds, solver=s) for s in ("stopped", "cvxopt"))
    assert np.mean([difference(*pair) for pair in zip(ours, theirs, strict=True)]) <= 0.01


def test_random_problems_are_feasible_and_close_to_the_optimum_and_to_cvxopt():
    pytest.importorskip("cvxopt")
    differences = []
    for number in range(200):
        train, trusted, options = random_problem(number, largest=150)
        match = kmm(train, trusted, solver="stopped", **options)
        assert match.status == STATUS
        assert match.primal_residual <= 1e-14
        assert 0 <= match.weights.min() <= match.weights.max() <= options["bound"]
        exact = kmm(train, trusted, **options)
        scale = max(abs(exact.objective), abs(match.objective))
        assert match.objective - exact.objective <= 1e-5 * scale + 1e-6
        distance = np.linalg.norm(match.weights - exact.weights)
        assert distance <= match.error_bound + exact.error_bound
        try:
            theirs = kmm(train, trusted, solver="cvxopt", **options)
        except MatchingError:
            continue  # an empty interior, with which cvxopt has more trouble
        differences.append(difference(match, theirs))
    assert len(differences) >= 150
    assert np.quantile(differences, 0.9) <= 1e-4
    assert np.mean(differences) <= 0.01


@pytest.mark.parametrize("copies", [0, 20])
def test_a_nearly_diagonal_kernel_gets_the_weights_of_cvxopt(copies):
    """Raw inputs with a narrow kernel: every sample but the trusted ones has one small weight."""
    pytest.importorskip("cvxopt")
    rng = np.random.default_rng(0)
    train = rng.normal(size=(300, 30))
    train[:copies] = train[copies : 2 * copies]
    trusted = np.concatenate([train[-10:], rng.normal(size=(10, 30))])
    options = {"gamma": 5.0, "bound": 100.0}
    match = kmm(train, trusted, solver="stopped", **options)
    assert match.rank == 300
    theirs = kmm(train, trusted, solver="cvxopt", **options)
    np.testing.assert_allclose(match.weights, theirs.weights, rtol=0.05, atol=1e-4)
    assert match.weights[-10:] == pytest.approx(15.0, rel=1e-3)
    assert 1e-5 < match.weights[:-10].min() <= match.weights[:-10].max() < 0.1
    assert (kmm(train, trusted, **options).weights[:-10] < 1e-6).all()


def test_larger_problems():
    rng = np.random.default_rng(1)
    losses, trusted = rng.exponential(1.0, 20_000), rng.exponential(0.5, 1000)
    match = kmm(losses, trusted, solver="stopped")
    assert match.status == STATUS
    assert match.objective == pytest.approx(kmm(losses, trusted).objective, rel=1e-5)
    rows = rng.normal(size=(3000, 40))
    match = kmm(rows, rows[:30], gamma="quantile:0.99", solver="stopped", bound=100.0)
    assert match.status == STATUS
    assert match.weights[:30] == pytest.approx(100.0, rel=1e-2)
    assert match.weights[30:].max() < 0.1


def test_a_capped_kernel_is_said_to_be_approximate():
    rng = np.random.default_rng(2)
    train, trusted = rng.normal(size=(400, 5)), rng.normal(size=(50, 5))
    match = kmm(train, trusted, rank=30, solver="stopped")
    assert match.status == f"approximate, {STATUS}"
    assert not match.is_optimal(1.0)


@pytest.mark.parametrize("slack", [None, 0.0])
def test_one_sample_and_equal_samples_get_weight_one(slack):
    assert kmm([3.0], [9.0, 1.0], slack=slack, solver="stopped").weights == pytest.approx([1.0])
    equal = kmm(np.full(7, 2.5), np.full(3, 2.5), slack=slack, solver="stopped")
    assert equal.weights == pytest.approx(np.ones(7), abs=1e-4)


def test_cvxopt_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxopt", None)
    assert kmm([1.0, 2.0, 3.0], [1.0], solver="stopped").status == STATUS


def test_too_few_iterations_are_a_failure():
    rng = np.random.default_rng(4)
    with pytest.raises(MatchingError, match="not stopped in 2 iterations"):
        kmm(rng.normal(size=80), rng.normal(size=30), solver="stopped", max_iterations=2)


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
