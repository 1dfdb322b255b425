"""Ratios by logistic regression, against scikit-learn and their definitions."""

import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from diw.errors import DIWWarning, MatchingError
from diw.matching import Logistic
from diw.matching.gram import Basis
from diw.matching.logistic import (
    CENTRES,
    CHOOSING,
    DOUBT,
    FEW_COLUMNS,
    MANY_COLUMNS,
    doubt,
    families,
    leading,
)
from diw.matching.regression import fit

RNG = np.random.default_rng(2)
TRAIN, TRUSTED = RNG.normal(size=(120, 2)), RNG.normal(0.6, 0.8, (50, 2))
BOTH, Y = np.concatenate([TRAIN, TRUSTED]), np.repeat([0.0, 1.0], [120, 50])


def features_of(found):
    """The number of features that were taken."""
    return len(found.coef_) - 1


@pytest.mark.parametrize("features", ["any", "linear"])
def test_the_weights_are_the_odds_of_the_linear_model(features):
    train, trusted = TRAIN, RNG.normal(0.3, 1.0, (50, 2))
    found = Logistic(penalty=2.0, features=features).fit(train, trusted)
    both = np.concatenate([train, trusted])
    standard = (both - both.mean(0)) / both.std(0)
    model = LogisticRegression(C=0.5, tol=1e-12).fit(standard, Y)
    odds = np.exp(model.decision_function(standard[:120]))
    assert found.weights_ == pytest.approx(odds * 120 / 50, rel=1e-4)
    assert (found.penalty_, found.gamma_, found.family_, features_of(found)) == (
        2.0,
        0,
        "linear",
        2,
    )


def test_linear_features_are_asked_for_by_name():
    """Nothing else is tried, not even where it would fit better."""
    rng = np.random.default_rng(4)
    train, trusted = rng.standard_t(3, (900, 1)), rng.standard_t(3, (300, 1)) + 1
    assert Logistic().fit(train, trusted).gamma_ > 0
    linear = Logistic(features="linear").fit(train, trusted)
    assert (features_of(linear), linear.gamma_, linear.family_) == (1, 0.0, "linear")
    assert linear.penalty_ > 0


def test_a_width_asks_for_kernels():
    found = Logistic(gamma=0.4, penalty=0.5).fit(TRAIN, TRUSTED)
    assert (found.gamma_, features_of(found), found.family_) == (0.4, CENTRES, "kernels")


def test_kernels_are_whitened():
    """aᵀa is the squared norm, in the kernel's space, of the function that a stands for."""
    centres = BOTH[::10]
    own = np.exp(-0.5 * cdist(centres, centres, "sqeuclidean"))
    features = Basis.of(centres, 0.5, 1e-7).columns(centres)[0]
    assert features.T @ features == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize("place", range(5))
def test_features_are_what_they_are_said_to_be(place):
    standard = ((BOTH - BOTH.mean(0)) / BOTH.std(0)).T
    family = families(BOTH, 0.5, False)[place]
    X = family.of(BOTH)
    assert (X[0] == 1).all()
    if family.factor == 0:
        x, y = standard
        assert X[1:] == pytest.approx(np.stack([x, y, x * x, x * y, y * y][: len(X) - 1]))
    else:
        assert len(X) == 1 + CENTRES + (5 if family.linear else 0)
    assert len(families(BOTH, 0.5, True)) == 1


def test_doubts_are_standard_where_the_model_holds_and_large_where_not():
    """Labels are drawn from a linear model, then from one that has a square, too."""
    rng = np.random.default_rng(9)
    z = rng.normal(size=(600, 2))
    simple, quadratic, *_, narrow = families(z, 0.5, False)
    X = simple.of(z)

    def drawn(log_odds):
        y = (rng.uniform(size=600) * (1 + np.exp(-log_odds)) < 1).astype(float)
        found = fit(X, y, 10.0, np.zeros(3), 1e-6)
        return [doubt(X, y, found, new) for new in (quadratic.of(z)[3:], narrow.of(z)[1:])]

    held = np.array([drawn(z[:, 0] - 1) for _ in range(200)])
    assert np.abs(held.mean(0)).max() <= 0.25
    assert held.std(0) == pytest.approx(1, abs=0.25)
    assert (held > DOUBT).mean() <= 0.05
    assert np.median([drawn(z[:, 0] + z[:, 1] ** 2 - 2) for _ in range(20)], axis=0).min() > 4


def test_without_a_doubt_nothing_else_is_fitted(monkeypatch):
    train, trusted, _ = shifted(2, np.random.default_rng(2))
    fits, module = [], sys.modules["diw.matching.logistic"]
    monkeypatch.setattr(module, "fit", lambda *arguments: fits.append(1) or fit(*arguments))
    without, few = Logistic().fit(train, trusted), len(fits)
    monkeypatch.setattr(module, "DOUBT", -np.inf)
    everything = Logistic().fit(train, trusted)
    assert without.family_ == everything.family_ == "linear"
    assert without.weights_ == pytest.approx(everything.weights_, rel=1e-9)
    assert few < 0.5 * (len(fits) - few)


def shifted(d, rng, n=4000, m=2000):
    mean = 1 / np.sqrt(d)
    train, trusted = rng.normal(size=(n, d)), rng.normal(mean, 1.0, (m, d))
    return train, trusted, (train * mean).sum(1) - 0.5


def error(weights, ratio):
    return np.sqrt(((weights - ratio) ** 2).mean())


@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_moved_normal_distribution_has_a_linear_ratio(d):
    train, trusted, log_ratio = shifted(d, np.random.default_rng(d))
    found = Logistic(bound=1e6).fit(train, trusted)
    assert (found.family_, features_of(found)) == ("linear", d)
    assert error(np.log(found.weights_), log_ratio) <= 0.04 * np.sqrt(d) + 0.02
    assert found.weights_.mean() == pytest.approx(1, abs=0.05)
    new, _, log_ratio = shifted(d, np.random.default_rng(99), 100)
    assert error(np.log(found.predict(new)), log_ratio) <= 0.04 * np.sqrt(d) + 0.02


def test_a_narrower_normal_distribution_has_a_quadratic_one():
    rng = np.random.default_rng(3)
    train, trusted = rng.normal(size=(2000, 2)), rng.normal(0, [0.6, 1.0], (1000, 2))
    found = Logistic().fit(train, trusted)
    assert (found.family_, features_of(found)) == ("quadratic", 5)
    ratio = np.exp(-0.5 * train[:, 0] ** 2 * (1 / 0.36 - 1)) / 0.6
    assert error(found.weights_, ratio) <= 0.12


def test_heavy_tails_and_combs_take_kernels():
    rng = np.random.default_rng(4)
    train, trusted = rng.standard_t(3, 1500), rng.standard_t(3, 500) + 1
    found = Logistic().fit(train, trusted)
    assert "kernels" in found.family_
    ratio = ((1 + train**2 / 3) / (1 + (train - 1) ** 2 / 3)) ** 2
    assert error(found.weights_, ratio) <= 0.3
    comb = rng.uniform(-3, 3, 4000)
    comb = comb[rng.uniform(size=4000) * 2 < 1 + np.sin(4 * comb)]
    assert Logistic().fit(rng.uniform(-3, 3, 1500), comb).gamma_ > found.gamma_ > 0


@pytest.mark.parametrize("d", [1, 3, 20])
def test_weights_are_near_one_where_nothing_differs(d):
    rng = np.random.default_rng(5)
    weights = Logistic().fit_weights(rng.normal(size=(800, d)), rng.normal(size=(400, d)))
    assert np.abs(weights - 1).max() <= 0.5
    assert error(weights, 1) <= 0.2
    assert Logistic().fit_weights(TRAIN, TRAIN) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("family", ["linear", "kernels"])
def test_a_shift_and_a_scale_of_the_values_change_nothing(family):
    rng = np.random.default_rng(6)
    train, trusted = rng.normal(size=(300, 2)), rng.normal(0.5, 1, (150, 2))
    if family == "kernels":
        train, trusted = rng.uniform(-3, 3, (300, 1)), rng.normal(0, 0.1, (150, 1))
        trusted += rng.choice([-2.0, 0.0, 2.0], (150, 1))
    found = Logistic().fit(train, trusted)
    assert found.family_ == family
    moved = Logistic().fit_weights(1e3 * train + 7, 1e3 * trusted + 7)
    assert moved == pytest.approx(found.weights_, rel=1e-5)
    if family == "linear":
        each = np.array([1e-4, 50.0])
        scaled = Logistic().fit_weights(each * train, each * trusted)
        assert scaled == pytest.approx(found.weights_, rel=1e-5)


def test_the_bound_holds_and_separate_values_are_no_trouble():
    assert Logistic(bound=1.2).fit_weights(TRAIN, TRUSTED).max() <= 1.2
    with pytest.warns(DIWWarning, match="100% of the trusted values lie"):
        far = Logistic().fit_weights(TRAIN, TRUSTED + 1e6)
    assert np.isfinite(far).all()
    assert 0 <= far.min() <= far.max() <= 0.1


def test_a_constant_column_says_nothing():
    constant = (np.c_[z, np.full(len(z), 0.1)] for z in (TRAIN, TRUSTED))
    expected = Logistic(penalty=1.0).fit_weights(TRAIN, TRUSTED)
    assert Logistic(penalty=1.0).fit_weights(*constant) == pytest.approx(expected, rel=1e-6)


def test_many_columns_enter_by_their_leading_directions():
    rng = np.random.default_rng(8)
    few = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 300))
    basis = leading(few - few.mean(0), 10)
    assert basis.T @ basis == pytest.approx(np.eye(10), abs=1e-12)
    kept = (few - few.mean(0)) @ basis
    assert (kept**2).sum() == pytest.approx(((few - few.mean(0)) ** 2).sum())
    found = Logistic().fit(few[:300], few[300:])
    assert found.predict(few[:300]) == pytest.approx(found.weights_)
    assert features_of(found) <= MANY_COLUMNS
    assert len(families(few[:, : FEW_COLUMNS + 1], 0.0, False)) == 1  # no products of so many


@pytest.mark.parametrize("kind", ["near", "far", "narrow", "one is constant"])
def test_many_values_are_chosen_for_by_some_and_standardised_however_they_lie(kind):
    train, trusted, log_ratio = shifted(2, np.random.default_rng(7), 20 * CHOOSING, CHOOSING + 1)
    if kind == "one is constant":
        train, trusted = (np.c_[z, np.ones(len(z))] for z in (train, trusted))
    move = {"near": 3.0, "far": 1e9}.get(kind, 0.0)
    each = np.array([1.0, 1e-140]) if kind == "narrow" else 1.0
    found = Logistic(bound=1e6, features="linear").fit(each * train + move, each * trusted + move)
    assert features_of(found) == 2
    assert error(np.log(found.weights_), log_ratio) <= 0.1


def test_wrong_use_and_problems_not_solved_are_named():
    with pytest.raises(
        ValueError, match=r"^gamma: asks for kernels, which features='linear' leaves"
    ):
        Logistic(features="linear", gamma=1.0).fit(TRAIN, TRUSTED)
    with pytest.raises(ValueError, match=r"^z_trusted: rows of shape"):
        Logistic().fit(TRAIN, TRUSTED[:, :1])
    with pytest.raises(MatchingError, match="Logistic: not solved to tol=1e-30"):
        Logistic(tol=1e-30).fit(TRAIN, TRUSTED)
