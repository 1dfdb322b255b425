"""The score by which an estimator is chosen, against the true ratio that it does not know."""

import numpy as np
import pytest

from diw.errors import UsageError
from diw.matching import ULSIF, Chi2, Entropy, Logistic, choose_estimator


def moved(seed, n=600, m=400):
    """Normal values and moved ones, with the true ratio."""
    rng = np.random.default_rng(seed)
    train, trusted = rng.normal(size=(n, 2)), rng.normal(0.6, 1, (m, 2))
    return train, trusted, lambda z: np.exp(0.6 * z.sum(1) - 0.36)


def test_differences_of_the_score_are_those_of_the_error_to_the_true_ratio():
    estimators = {"logistic": Logistic(features="linear", penalty=1.0), "flat": Chi2(penalty=10.0)}
    found, wanted, errors = [], [], []
    new = np.random.default_rng(99).normal(size=(20_000, 2))
    for seed in range(8):
        train, trusted, ratio = moved(seed)
        scores = choose_estimator(train, trusted, estimators).scores
        found.append(scores["flat"].value - scores["logistic"].value)
        errors.append(scores["flat"].behind_error)
        true = [
            ((each.fit(train, trusted).predict(new) - ratio(new)) ** 2).mean() / 2
            for each in estimators.values()
        ]
        wanted.append(true[1] - true[0])
    standard = (np.array(found) - wanted) / errors
    assert abs(standard.mean()) <= 1
    assert np.abs(standard).max() <= 4


def test_it_takes_the_estimator_that_knows_the_form():
    for seed in range(3):
        train, trusted, _ = moved(seed)
        choice = choose_estimator(train, trusted)
        assert list(choice.scores) == ["Logistic", "Entropy", "Chi2", "ULSIF"]
        best = choice.scores[choice.name]
        assert (best.behind, best.behind_error) == (0, 0)
        assert all(score.behind >= 0 for score in choice.scores.values())
        assert choice.scores["Logistic"].behind <= 2 * choice.scores["Logistic"].behind_error
        assert best.value < -0.5  # better than equal weights
        assert str(choice).startswith(f"{choice.name}: {best.value:.3f} ± ")
        assert str(choice).count("\n") == 3
        assert choice.estimator.weights_.shape == (600,)


def test_nearly_equal_weights_score_minus_one_half_and_nothing_given_is_changed():
    train, trusted, _ = moved(0)
    estimators = {"flat": Chi2(penalty=1e6), "wild": ULSIF(gamma=50.0, penalty=1e-3)}
    choice = choose_estimator(train, trusted, estimators)
    assert choice.name == "flat"
    assert choice.scores["flat"].value == pytest.approx(-0.5, abs=1e-4)
    assert choice.scores["wild"].behind > 2 * choice.scores["wild"].behind_error
    assert not hasattr(estimators["flat"], "weights_")
    again = choose_estimator(train, trusted, estimators)
    assert again.scores == choice.scores


def test_wrong_use_is_named():
    train, trusted, _ = moved(0, 20, 4)
    with pytest.raises(UsageError, match=r"^folds: must be from 2 to the number of values, not 5"):
        choose_estimator(train, trusted)
    with pytest.raises(UsageError, match=r"^estimators: there is none"):
        choose_estimator(train, trusted, {}, folds=2)
    with pytest.raises(ValueError, match=r"^folds: must be a whole number"):
        choose_estimator(train, trusted, {"entropy": Entropy()}, folds=2.5)
