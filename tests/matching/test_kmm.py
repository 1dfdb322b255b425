"""The front door: `kmm`'s signature and failures, `kmm_batch`, and `KMM` as an estimator."""

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import diw
from diw.errors import DIWWarning, MatchingError
from diw.matching import KMM, Options, kmm, kmm_batch

RNG = np.random.default_rng(0)
LOSSES, TRUSTED_LOSSES = RNG.exponential(size=50), RNG.exponential(size=30)
HARD = {"gamma": 30.0, "bound": 1.5, "max_iterations": 1}  # more than one step can solve
TRAIN, TRUSTED = RNG.normal(size=(50, 3)), RNG.normal(size=(30, 3)) + 0.5


def test_a_match_of_a_mini_batch_is_read_in_few_files():
    """One call at n = 256 stays inside eight files of the package."""
    train, trusted = RNG.exponential(size=256), RNG.exponential(size=256) / 2
    package, files = Path(diw.__file__).parent, set()

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(package):
            files.add(path.relative_to(package).as_posix())

    sys.setprofile(note)
    try:
        match = kmm(train, trusted)
    finally:
        sys.setprofile(None)
    assert match.rank < 20
    assert "matching/newton.py" in files
    assert len(files) <= 8, sorted(files)


def test_a_match_that_is_not_reached_raises_with_its_residuals():
    with pytest.raises(MatchingError, match=r"not solved to tol=1e-08 .*dual [0-9.]+e"):
        kmm(LOSSES, TRUSTED_LOSSES, **HARD)


def test_a_match_that_is_not_reached_can_warn_instead_and_is_feasible():
    with pytest.warns(DIWWarning, match="not solved"):
        match = kmm(
            LOSSES,
            TRUSTED_LOSSES,
            gamma=30.0,
            bound=1.5,
            slack=0.01,
            max_iterations=1,
            on_failure="warn",
        )
    assert match.status.startswith("not solved")
    assert not match.is_optimal()
    assert 0 <= match.weights.min() <= match.weights.max() <= 1.5
    assert abs(match.weights.mean() - 1) <= 0.01 + 1e-14


def test_a_batch_is_the_single_matches():
    trains, trusteds = [TRAIN[:20], TRAIN[20:45], TRAIN[45:]], [TRUSTED[:9], *[TRUSTED] * 2]
    together = kmm_batch(trains, trusteds, bound=10.0)
    for match, train, trusted in zip(together, trains, trusteds, strict=True):
        assert np.abs(match.weights - kmm(train, trusted, bound=10.0).weights).max() <= 1e-9


def test_a_batch_needs_as_many_trusted_sets():
    with pytest.raises(ValueError, match="z_trusted: 1 sets"):
        kmm_batch([TRAIN, TRAIN], [TRUSTED])


@pytest.mark.parametrize("function", [kmm, kmm_batch])
def test_the_signature_shows_every_option(function):
    first, second, *rest = inspect.signature(function).parameters.values()
    assert (first.name, second.name) == ("z_train", "z_trusted")
    assert rest == list(inspect.signature(Options).parameters.values())
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in rest)
    with pytest.raises(TypeError, match="sigma"):
        function([1.0], [1.0], sigma=1.0)


def test_a_warning_points_at_the_caller():
    with pytest.warns(DIWWarning) as caught:
        kmm(LOSSES, TRUSTED_LOSSES, on_failure="warn", **HARD)
    assert caught[0].filename == __file__


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


@pytest.mark.parametrize(("rows", "small"), [(50, True), (200_001, False)])
def test_small_matches_use_one_blas_thread(monkeypatch: pytest.MonkeyPatch, rows: int, small: bool):
    """With several, each of many small calls would wait for a thread that other work delays."""
    module = import_module("diw.matching.kmm")
    make_problem, seen = module.make_problem, list[list[int]]()

    def numbers() -> list[int]:
        return [library["num_threads"] for library in module._blas().info()]

    def watched(*arguments: Any) -> Any:
        seen.append(numbers())
        return make_problem(*arguments)

    monkeypatch.setattr(module, "make_problem", watched)
    losses = np.random.default_rng(0).exponential(size=rows)
    with threadpool_limits(limits=2):
        before = numbers()
        assert 2 in before  # a library may know one thread only
        kmm(losses, losses[:40])
        with pytest.raises(ValueError, match="z_train"):
            kmm(np.array([np.nan]), losses[:40])
        assert numbers() == before
    assert seen[0] == ([1] * len(before) if small else before)
