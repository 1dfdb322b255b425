import inspect

import numpy as np
import pytest

from diw.matching import KMM, kmm

RNG = np.random.default_rng(0)
TRAIN, TRUSTED = RNG.normal(size=(40, 3)), RNG.normal(size=(20, 3)) + 0.5


def test_fit_is_the_function():
    estimator = KMM(bound=5.0, ridge=1e-3)
    assert estimator.fit(TRAIN, TRUSTED) is estimator
    match = kmm(TRAIN, TRUSTED, bound=5.0, ridge=1e-3)
    assert np.array_equal(estimator.weights_, match.weights)
    assert estimator.match_.status == "optimal"
    assert estimator.gamma_ == match.gamma
    assert estimator.n_features_in_ == 3
    assert np.array_equal(KMM(bound=5.0, ridge=1e-3).fit_weights(TRAIN, TRUSTED), match.weights)


def test_parameters_are_the_functions_and_kept_as_given():
    estimator = KMM(gamma="median", rank=7)
    assert estimator.get_params()["rank"] == 7
    keywords = list(inspect.signature(kmm).parameters.values())[2:]
    assert KMM().get_params() == {keyword.name: keyword.default for keyword in keywords}
    assert estimator.set_params(rank=9).rank == 9
    assert repr(estimator) == "KMM(gamma='median', rank=9)"
    with pytest.raises(ValueError, match="sigma: is not a parameter of KMM"):
        estimator.set_params(sigma=1.0)


def test_wrong_parameters_are_refused_when_fitted():
    with pytest.raises(ValueError, match="bound"):
        KMM(bound=-1.0).fit(TRAIN, TRUSTED)


def test_scikit_learn_can_clone_it():
    base = pytest.importorskip("sklearn.base")
    fitted = KMM(bound=3.0).fit(TRAIN, TRUSTED)
    copy = base.clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "weights_")


def test_one_dimension():
    assert KMM().fit(TRAIN[:, 0], TRUSTED[:, 0]).n_features_in_ == 1
