"""The one-class machine against scikit-learn's, which solves the same problem another way."""

import numpy as np
import pytest

from diw.matching import OneClass
from diw.matching.problem import width

OneClassSVM = pytest.importorskip("sklearn.svm").OneClassSVM


def cloud(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.uniform(0.2, 2, d) + 3 * rng.integers(0, 2, (n, 1))


@pytest.mark.parametrize(("n", "d", "share"), [(2, 1, 0.5), (40, 2, 0.1), (200, 20, 0.3)])
def test_scikit_learn_finds_the_same_region(n, d, share):
    z, others = cloud(n, d), 2 * cloud(100, d, seed=1)
    region = OneClass(nu=share).fit(z, others)
    theirs = OneClassSVM(gamma=width(z, "median"), nu=share, tol=1e-10).fit(z)
    clear = np.abs(theirs.decision_function(others)) > 1e-5
    assert clear.sum() > 90
    np.testing.assert_array_equal(region.inside_[clear], theirs.predict(others)[clear] > 0)
    np.testing.assert_array_equal(region.predict(others), region.inside_)
    # Theirs sum to ν n, and so does the level.
    assert region.level_ == pytest.approx(theirs.offset_[0] / share, rel=1e-5)


def test_at_most_the_share_lies_outside_and_far_values_do():
    z = cloud(300, 5)
    for share in (0.05, 0.2, 0.5):
        outside = 1 - OneClass(nu=share).fit(z, z).inside_.mean()
        assert share - 0.06 <= outside <= share + 1e-9
    assert not OneClass(nu=0.1).fit(z, z + 100).inside_.any()


def test_a_single_value_and_equal_values_contain_themselves_alone():
    for z in (np.ones((1, 3)), np.ones((7, 3))):
        region = OneClass().fit(z, z)
        assert region.inside_.all()
        assert not region.predict(z + 1).any()
