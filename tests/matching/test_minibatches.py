"""Real mini-batches: losses and features of a LeNet-5 during training on noisy labels."""

from pathlib import Path

import numpy as np
import pytest

from diw.matching import kmm, kmm_batch
from tests.matching.oracles import ORACLES, Exact, compare

DATA = np.load(Path(__file__).with_name("minibatches.npz"))
BATCHES = [
    (f"{kind}, epoch {epoch}", train, trusted)
    for kind in ("pair", "symmetric")
    for epoch, train, trusted in zip(
        DATA["epochs"], DATA[f"{kind}_train"], DATA[f"{kind}_trusted"], strict=True
    )
]
RULES = ("quantile:0.01", "median", "quantile:0.99")


def test_the_record_covers_training():
    assert len(BATCHES) == 48
    assert sorted(set(DATA["epochs"])) == [0, 1, 2, 5, 10, 20]
    assert all(train.shape == trusted.shape == (256,) for _, train, trusted in BATCHES)


@pytest.mark.parametrize("rule", RULES)
def test_losses_are_matched_to_the_optimum(rule):
    for name, train, trusted in BATCHES:
        train, trusted = train.astype(float), trusted.astype(float)
        match = kmm(train, trusted, gamma=rule)
        assert match.status == "optimal", name
        assert match.error_bound <= 1e-2, name
        exact = Exact.of(train, trusted, gamma=match.gamma, ridge=1e-5, bound=50.0, slack=None)
        assert match.objective == pytest.approx(exact.objective(match.weights), rel=1e-11), name
        gaps = compare(exact, match.weights, *ORACLES)
        assert gaps is not None, name
        assert gaps.objective <= 1e-9 + 10 * gaps.infeasible, name


@pytest.mark.parametrize("rule", RULES)
def test_losses_are_matched_to_the_same_weights_as_another_solver_at_a_larger_ridge(rule):
    for name, train, trusted in BATCHES[::3]:
        train, trusted = train.astype(float), trusted.astype(float)
        match = kmm(train, trusted, gamma=rule, ridge=1e-3, bound=5.0)
        exact = Exact.of(train, trusted, gamma=match.gamma, ridge=1e-3, bound=5.0, slack=None)
        gaps = compare(exact, match.weights, *ORACLES)
        assert gaps is not None, name
        assert gaps.weights <= 1e-4, name
        assert abs(gaps.objective) <= 1e-9, name


def test_the_factor_is_as_small_as_expected():
    ranks = [kmm(train, trusted).rank for _, train, trusted in BATCHES]
    assert np.median(ranks) <= 10


def test_features_are_matched_class_by_class():
    trains, trusteds = [], []
    for label in range(10):
        trains.append(DATA["features_train"][DATA["labels_train"] == label].astype(float))
        trusteds.append(DATA["features_trusted"][DATA["labels_trusted"] == label].astype(float))
    for train, trusted, match in zip(trains, trusteds, kmm_batch(trains, trusteds), strict=True):
        assert match.error_bound <= 1e-2
        exact = Exact.of(train, trusted, gamma=match.gamma, ridge=1e-5, bound=50.0, slack=None)
        gaps = compare(exact, match.weights, *ORACLES)
        assert gaps is not None
        assert abs(gaps.objective) <= 1e-9
        assert gaps.weights <= 1e-3


def test_a_match_of_losses_has_mean_one_by_itself():
    """At the paper's width the kernel is nearly constant, so equal sums are most of the match.

    Hence to normalise the weights or not makes no difference (docs/reproduce.md).
    """
    for name, train, trusted in BATCHES:
        assert kmm(train, trusted).weights.mean() == pytest.approx(1.0, abs=1e-4), name
