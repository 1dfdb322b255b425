"""Ratios by logistic regression, against scikit-learn and their definitions."""

import sys

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from diw.errors import MatchingError
from diw.matching import Logistic, kmm, kmm_batch, logistic
from diw.matching.features import Written
from diw.matching.logistic import (
    CENTRES,
    CHOOSING,
    DOUBT,
    MANY_COLUMNS,
    Family,
    doubts,
    families,
    kernels,
    leading,
)
from diw.matching.regression import fit

RNG = np.random.default_rng(2)
TRAIN, TRUSTED = RNG.normal(size=(120, 2)), RNG.normal(0.6, 0.8, (50, 2))
BOTH, Y = np.concatenate([TRAIN, TRUSTED]), np.repeat([0.0, 1.0], [120, 50])


def test_the_weights_are_the_odds_of_the_linear_model():
    train, trusted = TRAIN, RNG.normal(0.3, 1.0, (50, 2))
    match = logistic(train, trusted, penalty=2.0)
    both = np.concatenate([train, trusted])
    standard = (both - both.mean(0)) / both.std(0)
    model = LogisticRegression(C=0.5, tol=1e-12).fit(standard, Y)
    odds = np.exp(model.decision_function(standard[:120]))
    assert match.weights == pytest.approx(odds * 120 / 50, rel=1e-4)
    assert match.is_optimal()
    assert (match.status, match.penalty, match.gamma, match.rank) == ("optimal", 2.0, 0.0, 2)


def test_linear_features_are_asked_for_by_name():
    """Nothing else is tried, not even where it would fit better."""
    rng = np.random.default_rng(4)
    train, trusted = rng.standard_t(3, (900, 1)), rng.standard_t(3, (300, 1)) + 1
    assert logistic(train, trusted).gamma > 0
    linear = logistic(train, trusted, features="linear", penalty=2.0)
    assert (linear.rank, linear.gamma, linear.penalty) == (1, 0.0, 2.0)
    both = np.concatenate([train, trusted])
    standard = (both - both.mean()) / both.std()
    y = np.repeat([0, 1], [900, 300])
    model = LogisticRegression(C=0.5, tol=1e-12).fit(standard, y)
    odds = np.exp(model.decision_function(standard[:900]))
    assert linear.weights == pytest.approx(np.minimum(3 * odds, 50), rel=1e-4)
    assert logistic(train, trusted, features="linear").penalty > 0


def test_a_width_asks_for_kernels():
    match = logistic(TRAIN, TRUSTED, gamma=0.4, penalty=0.5)
    assert (match.gamma, match.rank) == (0.4, CENTRES)
    assert match.is_optimal()


def test_kernels_are_whitened():
    """aᵀa is the squared norm, in the kernel's space, of the function that a stands for."""
    centres = BOTH[::10]
    own = np.exp(-0.5 * cdist(centres, centres, "sqeuclidean"))
    features = Family((kernels(centres, 0.5),)).features(centres)[1:]
    assert features.T @ features == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize("place", range(5))
def test_features_are_what_they_are_said_to_be(place):
    standard = ((BOTH - BOTH.mean(0)) / BOTH.std(0)).T
    family = families(BOTH, 0.5, False)[place]
    X = family.features(BOTH)
    assert (X[0] == 1).all()
    if family.factor == 0:
        x, y = standard
        assert X[1:] == pytest.approx(np.stack([x, y, x * x, x * y, y * y][: len(X) - 1]))
    else:
        assert len(X) == 1 + CENTRES + (5 if len(family.kinds) == 3 else 0)
    assert len(families(BOTH, 0.5, True)) == 1


def test_features_of_many_values_are_computed_in_parts():
    many = np.tile(BOTH, (60, 1))
    for family in families(BOTH, 0.5, False):
        assert family.features(many) == pytest.approx(np.tile(family.features(BOTH), (1, 60)))


def test_doubts_are_standard_where_the_model_holds_and_large_where_not():
    """Labels are drawn from a linear model, then from one that has a square, too."""
    rng = np.random.default_rng(9)
    z = rng.normal(size=(600, 2))
    simple, quadratic, *_, narrow = families(z, 0.5, False)
    X = simple.features(z)

    def drawn(log_odds):
        y = (rng.uniform(size=600) * (1 + np.exp(-log_odds)) < 1).astype(float)
        kinds = [Family((kind,)).features(z)[1:] for kind in (quadratic.kinds[1], narrow.kinds[0])]
        return doubts(X, y, fit(Written(X), y, 10.0, np.zeros(3), 1e-6, 50), kinds)

    held = np.array([drawn(z[:, 0] - 1) for _ in range(200)])
    assert np.abs(held.mean(0)).max() <= 0.25
    assert held.std(0) == pytest.approx(1, abs=0.25)
    assert (held > DOUBT).mean() <= 0.05
    assert np.median([drawn(z[:, 0] + z[:, 1] ** 2 - 2) for _ in range(20)], axis=0).min() > 4


def test_without_a_doubt_nothing_else_is_fitted(monkeypatch):
    train, trusted, _ = shifted(2, np.random.default_rng(2))
    without = logistic(train, trusted)
    monkeypatch.setattr(sys.modules["diw.matching.logistic"], "DOUBT", -np.inf)
    everything = logistic(train, trusted)
    assert without.rank == everything.rank == 2
    assert without.weights == pytest.approx(everything.weights, rel=1e-9)
    assert without.iterations < 0.5 * everything.iterations


def shifted(d, rng, n=4000, m=2000):
    mean = 1 / np.sqrt(d)
    train, trusted = rng.normal(size=(n, d)), rng.normal(mean, 1.0, (m, d))
    return train, trusted, (train * mean).sum(1) - 0.5


@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_moved_normal_distribution_has_a_linear_ratio(d):
    train, trusted, log_ratio = shifted(d, np.random.default_rng(d))
    match = logistic(train, trusted, bound=1e6)
    assert match.rank == d
    assert np.sqrt(((np.log(match.weights) - log_ratio) ** 2).mean()) <= 0.04 * np.sqrt(d) + 0.02
    assert match.weights.mean() == pytest.approx(1, abs=0.05)


def test_a_narrower_normal_distribution_has_a_quadratic_one():
    rng = np.random.default_rng(3)
    train, trusted = rng.normal(size=(2000, 2)), rng.normal(0, [0.6, 1.0], (1000, 2))
    match = logistic(train, trusted)
    assert match.rank == 5
    ratio = np.exp(-0.5 * train[:, 0] ** 2 * (1 / 0.36 - 1)) / 0.6
    assert np.sqrt(((match.weights - ratio) ** 2).mean()) <= 0.12


def test_heavy_tails_and_combs_take_kernels():
    rng = np.random.default_rng(4)
    train, trusted = rng.standard_t(3, 1500), rng.standard_t(3, 500) + 1
    match = logistic(train, trusted)
    assert match.gamma > 0
    ratio = ((1 + train**2 / 3) / (1 + (train - 1) ** 2 / 3)) ** 2
    assert np.sqrt(((match.weights - ratio) ** 2).mean()) <= 0.3
    comb = rng.uniform(-3, 3, 4000)
    comb = comb[rng.uniform(size=4000) * 2 < 1 + np.sin(4 * comb)]
    assert logistic(rng.uniform(-3, 3, 1500), comb).gamma > match.gamma


@pytest.mark.parametrize("d", [1, 3, 20])
def test_weights_are_near_one_where_nothing_differs(d):
    rng = np.random.default_rng(5)
    match = logistic(rng.normal(size=(800, d)), rng.normal(size=(400, d)))
    assert np.abs(match.weights - 1).max() <= 0.5
    assert np.sqrt(((match.weights - 1) ** 2).mean()) <= 0.2
    same = logistic(TRAIN, TRAIN).weights
    assert same == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("family", ["linear", "kernels"])
def test_a_shift_and_a_scale_of_the_values_change_nothing(family):
    rng = np.random.default_rng(6)
    train, trusted = rng.normal(size=(300, 2)), rng.normal(0.5, 1, (150, 2))
    if family == "kernels":
        train, trusted = rng.uniform(-3, 3, (300, 1)), rng.normal(0, 0.1, (150, 1))
        trusted += rng.choice([-2.0, 0.0, 2.0], (150, 1))
    match = logistic(train, trusted)
    assert (match.gamma > 0) == (family == "kernels")
    w = match.weights
    moved = logistic(1e3 * train + 7, 1e3 * trusted + 7).weights
    assert moved == pytest.approx(w, rel=1e-5)
    if family == "linear":
        each = np.array([1e-4, 50.0])
        assert logistic(each * train, each * trusted).weights == pytest.approx(w, rel=1e-5)


def test_the_bound_holds_and_separate_values_are_no_trouble():
    assert logistic(TRAIN, TRUSTED, bound=1.2).weights.max() <= 1.2
    far = logistic(TRAIN, TRUSTED + 1e6)
    assert np.isfinite(far.weights).all()
    assert (far.weights >= 0).all()
    assert far.weights.max() <= 0.1


def test_single_and_equal_values():
    assert np.isfinite(logistic(TRAIN, TRUSTED[:1]).weights).all()
    assert logistic(TRAIN[:1], TRUSTED).weights.shape == (1,)
    assert logistic([2.0, 2.0], [2.0]).weights == pytest.approx(1)
    constant = logistic(np.c_[TRAIN, np.full(120, 0.1)], np.c_[TRUSTED, np.full(50, 0.1)], gamma=1)
    assert constant.is_optimal()


def test_many_columns_enter_by_their_leading_directions():
    rng = np.random.default_rng(8)
    few = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 300))
    basis = leading(few - few.mean(0), 10)
    assert basis.T @ basis == pytest.approx(np.eye(10), abs=1e-12)
    kept = (few - few.mean(0)) @ basis
    assert (kept**2).sum() == pytest.approx(((few - few.mean(0)) ** 2).sum())
    match = logistic(few[:300], few[300:])
    assert match.is_optimal()
    assert match.rank <= MANY_COLUMNS


def test_many_values_are_chosen_for_by_some():
    train, trusted, log_ratio = shifted(2, np.random.default_rng(7), 20 * CHOOSING, CHOOSING + 1)
    match = logistic(train, trusted, bound=1e6)
    assert match.is_optimal()
    assert np.sqrt(((np.log(match.weights) - log_ratio) ** 2).mean()) <= 0.1


@pytest.mark.parametrize("kind", ["near", "far", "narrow", "one is constant"])
def test_many_values_are_standardised_however_they_lie(kind):
    """Far from 0 they would lose digits where they are."""
    train, trusted, _ = shifted(2, np.random.default_rng(7), 3 * CHOOSING, CHOOSING)
    if kind == "far":
        train, trusted = train[:, 0], trusted[:, 0]
    expected = logistic(train, trusted, features="linear").weights
    if kind == "one is constant":
        train, trusted = (np.c_[z, np.ones(len(z))] for z in (train, trusted))
    move = {"near": 3.0, "far": 1e9}.get(kind, 0.0)
    each = np.array([1.0, 1e-140]) if kind == "narrow" else 1.0
    match = logistic(each * train + move, each * trusted + move, features="linear")
    assert match.is_optimal()
    assert match.rank == (1 if kind == "far" else 2)
    assert match.weights == pytest.approx(expected, rel=1e-6)


def test_the_front_door_gives_the_same():
    direct = logistic(TRAIN, TRUSTED).weights
    assert np.array_equal(logistic(TRAIN, TRUSTED).weights, direct)
    assert np.array_equal(kmm(TRAIN, TRUSTED, solver="logistic").weights, direct)
    assert np.array_equal(kmm_batch([TRAIN], [TRUSTED], solver="logistic")[0].weights, direct)
    assert np.array_equal(Logistic().fit_weights(TRAIN, TRUSTED), direct)
    assert repr(Logistic(penalty=0.1)) == "Logistic(penalty=0.1)"
    tensor = logistic(torch.tensor(TRAIN), torch.tensor(TRUSTED)).weights
    assert isinstance(tensor, torch.Tensor)
    assert np.array_equal(tensor.numpy(), direct)


BAD = {
    "penalty: must be positive": {"penalty": 0.0},
    "gamma: must be positive": {"gamma": -1.0},
    "bound: must be positive": {"bound": np.inf},
    "features: must be 'any' or 'linear'": {"features": "cubic"},
    "gamma: asks for kernels": {"features": "linear", "gamma": 1.0},
}


@pytest.mark.parametrize("message", BAD)
def test_wrong_use_names_the_argument(message):
    with pytest.raises(ValueError) as error:
        logistic(TRAIN, TRUSTED, **BAD[message])
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_features_belong_to_this_estimator():
    with pytest.raises(ValueError, match="features: belongs to solver='logistic', not 'el'"):
        kmm(TRAIN, TRUSTED, solver="el", features="linear")


def test_wrong_values_are_named():
    with pytest.raises(ValueError, match="z_trusted: rows of shape"):
        logistic(TRAIN, TRUSTED[:, :1])
    with pytest.raises(ValueError, match="z_train: holds NaN"):
        logistic(TRAIN * np.nan, TRUSTED)


def test_a_problem_not_solved_is_said():
    with pytest.raises(MatchingError, match="logistic: not solved to tol=1e-30"):
        logistic(TRAIN, TRUSTED, tol=1e-30)
