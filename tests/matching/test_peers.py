"""What other packages' tests say of their estimators, asked of ours (adapt's KMM, KLIEP and ULSIF,
skada's reweighting adapters; rewritten from what they assert)."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from diw.integrations.reweighted import ImportanceWeighted
from diw.matching import KMM, ULSIF, Chi2, Entropy, Isotonic, Logistic

EVERY = {
    "kmm": KMM(),
    "entropy": Entropy(),
    "chi2": Chi2(),
    "ulsif": ULSIF(),
    "rulsif": ULSIF(alpha=0.1),
    "logistic": Logistic(),
    "linear": Logistic(features="linear"),
}


def two_clusters(seed=0):
    """Half of the training values at 0, where all trusted ones are, and half at 1."""
    rng = np.random.default_rng(seed)
    train = np.r_[rng.normal(0, 0.1, 50), rng.normal(1, 0.1, 50)]
    return train, rng.normal(0, 0.1, 100), np.where(train < 0.5, 0.2 * train, 10)


@pytest.mark.parametrize(
    "estimator",
    [
        KMM(gamma=1.0),
        Isotonic(),
        Entropy(penalty=1e-8, gamma=1.0),
        Chi2(penalty=1e-5, gamma=1.0),
        Logistic(gamma=5.0, penalty=1e-3),
        ULSIF(gamma=20.0, penalty=1e-3),
    ],
    ids=repr,
)
def test_a_cluster_without_trusted_values_gets_no_weight(estimator):
    train, trusted, y = two_clusters()
    weights = estimator.fit_weights(train, trusted)
    assert weights[:50].sum() > 50
    assert weights[50:].sum() < 0.1
    model = LinearRegression(fit_intercept=False)
    assert LinearRegression(fit_intercept=False).fit(train[:, None], y).coef_[0] > 9
    assert abs(model.fit(train[:, None], y, sample_weight=weights).coef_[0] - 0.2) < 1


@pytest.mark.parametrize("name", EVERY)
def test_what_a_hundred_values_cannot_exclude_keeps_a_little_weight(name):
    """With penalties that the data choose: none of 100 values leaves a share of up to 5%."""
    for seed in range(3):
        weights = EVERY[name].fit_weights(*two_clusters(seed)[:2])
        assert weights[50:].sum() < 0.06 * weights.sum()


def clusters(shift, seed=0):
    """Two classes of four clusters in the plane, and a target moved in x where nothing changes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(2, 320)
    X = rng.normal(0, 0.3, (320, 2)) + np.c_[rng.choice(4, 320), 2.0 * y]
    target_y = rng.choice(2, 160)
    target = rng.normal(0, 0.3, (160, 2)) + np.c_[rng.choice(2, 160) + shift, 2.0 * target_y]
    return X, y, target, target_y


@pytest.mark.parametrize("name", EVERY)
def test_a_weighted_classifier_and_regression_are_right_on_the_target(name):
    X, y, target, right = clusters(1.0)
    model = ImportanceWeighted(LogisticRegression(), EVERY[name]).fit(X, y, X_trusted=target)
    assert model.score(target, right) > 0.9
    model = ImportanceWeighted(Ridge(), EVERY[name]).fit(X, X[:, 0] + y, X_trusted=target)
    assert model.score(target, target[:, 0] + right) > 0.8


@pytest.mark.parametrize("name", EVERY)
def test_weights_of_some_rows_and_of_nearly_the_same_are_those_of_the_fit(name):
    X, y, target, _ = clusters(1.0)
    estimator = EVERY[name].fit(X, target)
    some = np.random.default_rng(43).choice(len(X), 10)
    scale = estimator.weights_.max()
    assert estimator.predict(X[some] + 1e-8) == pytest.approx(
        estimator.weights_[some], abs=1e-3 * scale
    )
    assert estimator.predict(X[y == 0]) == pytest.approx(
        estimator.weights_[y == 0], abs=1e-5 * scale
    )
