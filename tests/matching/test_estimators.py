"""What every estimator promises: one contract, whatever it computes."""

import pickle
import warnings

import numpy as np
import pytest
import torch

import diw
from diw.errors import DIWWarning, UsageError
from diw.matching import KMM, ULSIF, Chi2, Entropy, Isotonic, Logistic, OneClass, kmm, kmm_batch
from diw.matching.estimators import uncovered

RNG = np.random.default_rng(2)
TRAIN, TRUSTED, NEW = RNG.normal(size=120), RNG.normal(0.6, 0.8, 50), RNG.normal(size=30)
ESTIMATORS = {
    "exact": KMM(ridge=0.1),
    "entropy": Entropy(),
    "chi2": Chi2(),
    "ulsif": ULSIF(),
    "rulsif": ULSIF(alpha=0.1),
    "logistic": Logistic(),
    "linear": Logistic(features="linear", penalty=1.0),
    "kernels": Logistic(gamma=0.5),
    "isotonic": Isotonic(),
}
EVERY = {**ESTIMATORS, "one class": OneClass()}
RATIOS = {name: each for name, each in ESTIMATORS.items() if name != "exact"}


def fresh(estimator):
    return type(estimator)(**estimator.get_params())


def fitted(estimator, train=TRAIN, trusted=TRUSTED):
    return fresh(estimator).fit(train, trusted)


@pytest.mark.parametrize("name", EVERY)
def test_fit_gives_weights_and_a_status(name):
    estimator = fresh(EVERY[name])
    assert estimator.fit(TRAIN, TRUSTED) is estimator
    w = estimator.weights_
    assert (w.shape, w.dtype, estimator.status_) == ((120,), np.float64, "optimal")
    assert np.isfinite(w).all()
    assert 0 <= w.min() <= w.max() <= getattr(estimator, "bound", np.inf)
    assert w.mean() == pytest.approx(1, abs=0.2)
    assert np.array_equal(fresh(estimator).fit_weights(TRAIN, TRUSTED), w)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_training_values_are_predicted_their_weights(name):
    estimator = fitted(ESTIMATORS[name])
    assert estimator.predict(TRAIN) == pytest.approx(estimator.weights_, abs=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_predictions_are_weights_row_by_row(name):
    estimator = fitted(EVERY[name])
    w = estimator.predict(NEW)
    assert w.shape == (30,)
    assert np.isfinite(w).all()
    assert 0 <= w.min() <= w.max() <= getattr(estimator, "bound", np.inf)
    assert estimator.predict(NEW[::-1])[::-1] == pytest.approx(w, abs=1e-9)
    assert estimator.predict(NEW[:1]) == pytest.approx(w[:1], abs=1e-9)
    far = estimator.predict([1e300, -1e300])
    assert np.isfinite(far).all()
    assert far.min() >= 0


@pytest.mark.parametrize("name", EVERY)
def test_the_order_of_values_does_not_matter(name):
    order = RNG.permutation(120)
    one, other = fitted(EVERY[name]), fitted(EVERY[name], TRAIN[order], TRUSTED[::-1])
    # Folds and centres are drawn by place, which moves what is chosen by them.
    close = 0.5 if "lsif" in name else 1e-5
    assert other.weights_ == pytest.approx(one.weights_[order], abs=close)


@pytest.mark.parametrize("name", RATIOS)
def test_a_shift_and_a_scale_of_the_values_change_nothing(name):
    if name == "kernels":
        pytest.skip("a width given as a number is in the units of the values")
    columns = "columns" if name == "isotonic" else "rows"
    train, trusted = (z if columns == "columns" else z[:, None] for z in (TRAIN, TRUSTED))
    one, other = (
        fitted(RATIOS[name], train, trusted),
        fitted(RATIOS[name], 9 * train + 7, 9 * trusted + 7),
    )
    assert other.weights_ == pytest.approx(one.weights_, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", RATIOS)
def test_the_ratio_is_nearer_than_equal_weights(name):
    rng = np.random.default_rng(0)
    train, trusted = rng.normal(size=1000), rng.normal(1, 1, 300)
    estimator, ratio = fitted(RATIOS[name], train[:, None], trusted[:, None]), np.exp(train - 0.5)
    if name != "rulsif":
        assert np.mean((estimator.weights_ - ratio) ** 2) < 0.5 * np.mean((1 - ratio) ** 2)
    assert np.corrcoef(estimator.predict(NEW[:, None]), np.exp(NEW))[0, 1] > 0.8


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_come_back_as_tensors(name, dtype):
    train, trusted, new = (torch.tensor(z, dtype=dtype) for z in (TRAIN, TRUSTED, NEW))
    estimator = fitted(EVERY[name], train.requires_grad_(), trusted)
    for w in (estimator.weights_, estimator.predict(new)):
        assert isinstance(w, torch.Tensor)
        assert (w.dtype, w.device, w.requires_grad) == (dtype, train.device, False)
    if dtype == torch.float64:
        assert np.array_equal(estimator.weights_.numpy(), fitted(EVERY[name]).weights_)


@pytest.mark.parametrize("name", EVERY)
def test_parameters_follow_scikit_learn(name):
    base = pytest.importorskip("sklearn.base")
    estimator = fitted(EVERY[name])
    copy = base.clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "weights_")
    assert np.array_equal(fitted(copy).weights_, estimator.weights_)
    kept = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(kept.predict(NEW), estimator.predict(NEW))
    assert repr(fresh(type(estimator)())) == f"{type(estimator).__name__}()"
    assert copy.set_params(gamma=2.0).get_params()["gamma"] == 2.0 if hasattr(copy, "gamma") else 1
    with pytest.raises(ValueError, match="sigma: is not a parameter of"):
        estimator.set_params(sigma=1.0)
    with pytest.raises(UsageError, match="is not fitted; call fit"):
        copy.predict(NEW)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "isotonic"])
def test_the_columns_of_a_table_go_by_name(name):
    pandas = pytest.importorskip("pandas")
    tables = [
        pandas.DataFrame({"a": z, "b": z**2 + 0.1 * np.cos(9 * z)}) for z in (TRAIN, TRUSTED, NEW)
    ]
    estimator = fitted(EVERY[name], tables[0], tables[1][["b", "a"]])
    assert list(estimator.feature_names_in_) == ["a", "b"]
    assert np.array_equal(estimator.weights_, fitted(EVERY[name], *tables[:2]).weights_)
    assert np.array_equal(estimator.predict(tables[2][["b", "a"]]), estimator.predict(tables[2]))
    with pytest.raises(UsageError, match="trusted: lacks the column 'b'"):
        fitted(EVERY[name], tables[0], tables[1][["a"]])
    with pytest.raises(UsageError, match="rows: lacks the column 'a'"):
        estimator.predict(tables[2][["b"]])


@pytest.mark.parametrize("name", EVERY)
def test_values_that_cannot_work_are_named(name):
    for train, trusted in (([np.nan, 1.0], [1.0]), ([1.0], [np.inf]), ([], [1.0]), ("x", [1.0])):
        with pytest.raises(ValueError, match=r"^z?_?(train|trusted): "):
            fitted(EVERY[name], train, trusted)
    estimator = fitted(EVERY[name])
    for rows, said in (([[1.0, 2.0]], "rows: 2 columns, but fit had 1"), ([np.nan], "rows: holds")):
        with pytest.raises(UsageError, match=said):
            estimator.predict(rows)


@pytest.mark.parametrize("name", EVERY)
def test_parameters_are_checked_by_fit_and_named(name):
    kind, wrong = type(EVERY[name]), {"bound": -1.0, "gamma": "mode", "penalty": 0.0, "tol": 0}
    wrong |= {"on_failure": "ignore", "rank": 0, "alpha": 1.0, "nu": 0.0, "features": "cubic"}
    checked = wrong.keys() & kind().get_params().keys()
    assert checked
    for parameter in checked:
        estimator = kind(**{parameter: wrong[parameter]})
        with pytest.raises(ValueError, match=f"^{parameter}: "):
            estimator.fit(TRAIN, TRUSTED)
    with pytest.raises(TypeError, match="sigma"):
        kind(sigma=1.0)


@pytest.mark.parametrize("name", EVERY)
def test_single_and_equal_values(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DIWWarning)  # one value has no neighbours
        assert np.isfinite(fitted(EVERY[name], TRAIN, TRUSTED[:1]).weights_).all()
        assert fitted(EVERY[name], TRAIN[:1], TRUSTED).weights_.shape == (1,)
        assert fitted(EVERY[name], [2.0, 2.0], [2.0]).weights_ == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_trusted_values_far_from_all_training_values_are_said(name):
    train, trusted = RNG.uniform(size=300), RNG.uniform(5, 6, 100)
    with pytest.warns(
        DIWWarning, match="100% of the trusted values lie where there are no"
    ) as said:
        estimator = fitted(ESTIMATORS[name], train, trusted)
    assert "effective sample size" in str(said[-1].message)
    assert said[-1].filename == __file__
    assert "no training values" in estimator.status_
    if name == "ulsif":
        return  # half of the trusted values are enough for a mean weight that does not show it
    with pytest.warns(DIWWarning, match=r"[45]\d% of the trusted values lie"):
        fitted(ESTIMATORS[name], train, np.r_[trusted, RNG.uniform(size=100)])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_overlap_in_half_is_said_whether_weights_get_small_or_large(name):
    rng = np.random.default_rng(0)
    train, trusted = rng.uniform(0, 1, 1000), rng.uniform(0.5, 1.5, 300)
    with pytest.warns(DIWWarning, match="49% of the trusted values lie where there are no"):
        assert "49% of the trusted" in fitted(ESTIMATORS[name], train, trusted).status_


@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_neighbours_are_missing_only_where_they_are(d):
    rng = np.random.default_rng(d)
    train, trusted = rng.normal(size=(3000, d)), rng.normal(1 / np.sqrt(d), 1, (300, d))
    assert uncovered(train, trusted) <= 0.06
    assert uncovered(train, trusted + 30) == 1.0
    half = np.concatenate([trusted, trusted + 30])
    assert uncovered(1e-9 * train + 5, 1e-9 * half + 5) == pytest.approx(0.5, abs=0.05)
    assert uncovered(train[:, :1].round(), train[::-7, :1].round()) <= 0.01


OLD = {"el": Entropy, "entropy": Entropy, "chi2": Chi2, "ulsif": ULSIF, "kliep": Logistic}
OLD |= {"logistic": Logistic, "isotonic": Isotonic}


@pytest.mark.parametrize("name", OLD)
def test_old_names_work_and_say_what_to_use(name):
    expected = OLD[name]().fit_weights(TRAIN, TRUSTED)
    use = rf"use diw\.matching\.{OLD[name].__name__}\(\)\.fit"
    calls = [
        lambda: kmm(TRAIN, TRUSTED, solver=name),
        lambda: kmm_batch([TRAIN], [TRUSTED], solver=name)[0],
        lambda: getattr(diw.matching, name)(TRAIN, TRUSTED),
    ]
    for call in calls:
        with pytest.warns(DeprecationWarning, match=use) as said:
            match = call()
        assert said[0].filename == __file__
        assert np.array_equal(match.weights, expected)
        assert match.status == "optimal"


def test_old_classes_options_and_words():
    for name, kind in (("EL", Entropy), ("KLIEP", Logistic)):
        with pytest.warns(DeprecationWarning, match=f"use {kind.__name__}"):
            assert getattr(diw.matching, name) is kind
    with pytest.warns(DeprecationWarning, match="use solver='exact'"):
        match = kmm(TRAIN, TRUSTED, solver="diw")
    assert np.array_equal(match.weights, kmm(TRAIN, TRUSTED).weights)
    with pytest.warns(DeprecationWarning, match="backend= is deprecated"):
        assert np.array_equal(kmm(TRAIN, TRUSTED, backend="torch").weights, match.weights)
    with (
        pytest.warns(DeprecationWarning, match="use"),
        pytest.raises(ValueError, match=r"^ridge: ULSIF does not"),
    ):
        kmm(TRAIN, TRUSTED, solver="ulsif", ridge=1.0)
    with (
        pytest.warns(DeprecationWarning, match="use"),
        pytest.raises(ValueError, match=r"^rank: Logistic does"),
    ):
        kmm(TRAIN, TRUSTED, solver="logistic", rank=3)
    with pytest.raises(AttributeError, match=r"diw\.methods\.adiw\.projected_steps"):
        _ = diw.matching.pgd
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = diw.matching.nothing
