import numpy as np
import pytest
from scipy.stats import chisquare

from diw.errors import UsageError
from diw.shifts import Contaminated, Shift, parse_shift, reverse

MIXTURE = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.3, 0.3, 0.4]])


def test_reversal_by_hand():
    # p(ỹ) = 1/2 each; joint [[.4, .1], [.2, .3]]; q = (.6, .4)
    marginal, transition = reverse([[0.8, 0.2], [0.4, 0.6]], [0.5, 0.5])
    assert np.allclose(marginal, [0.6, 0.4])
    assert np.allclose(transition, [[2 / 3, 1 / 3], [1 / 4, 3 / 4]])


def test_each_given_class_is_the_mixture_asked_for():
    labels = np.arange(60_000) % 3
    shifted = Shift((Contaminated(mixture=MIXTURE),)).apply(labels, 3, 0)
    true = labels[shifted.keep]
    for given, row in enumerate(MIXTURE):
        found = np.bincount(true[shifted.targets == given], minlength=3)
        possible = row > 0
        assert found[~possible].sum() == 0
        assert chisquare(found[possible], found.sum() * row[possible]).pvalue > 1e-3
    shares = np.bincount(shifted.targets) / len(shifted.targets)
    assert np.allclose(shares, 1 / 3, atol=0.01)
    assert np.array_equal(shifted.flipped, shifted.targets != true)


def test_true_weights_bring_back_the_clean_distribution():
    labels = np.arange(60_000) % 3
    shifted = Shift((Contaminated(mixture=MIXTURE),)).apply(labels, 3, 0)
    assert (shifted.true_weights[shifted.flipped] == 0).all()
    weighted = np.bincount(shifted.targets, shifted.true_weights)
    assert np.allclose(weighted / weighted.sum(), 1 / 3, atol=0.01)


def test_on_balanced_classes_an_even_contamination_drops_nothing():
    labels = np.arange(5_000) % 10
    shifted = parse_shift("contaminated:0.3").apply(labels, 10, 0)
    assert len(shifted.keep) == 5_000
    assert shifted.flipped.mean() == pytest.approx(0.3, abs=0.03)


def test_protected_rows_stay():
    labels = np.arange(600) % 3
    protected = np.arange(30)
    shifted = Shift((Contaminated(mixture=MIXTURE),)).apply(labels, 3, 0, protected=protected)
    places = np.searchsorted(shifted.keep, protected)
    assert np.array_equal(shifted.keep[places], protected)
    assert np.array_equal(shifted.targets[places], labels[protected])


def test_a_mixture_of_classes_without_rows_is_refused():
    with pytest.raises(UsageError, match="every class that is mixed in"):
        Shift((Contaminated(mixture=MIXTURE),)).apply(np.array([0, 2, 2]), 3, 0)
    with pytest.raises(UsageError, match="4 classes"):
        Shift((Contaminated(mixture=MIXTURE, source="m.csv"),)).apply(np.arange(8) % 4, 4, 0)
