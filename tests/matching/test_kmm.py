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
from diw.errors import DIWWarning, MatchingError, UsageError
from diw.matching import KMM, Options, kmm, kmm_batch

RNG = np.random.default_rng(0)
LOSSES, TRUSTED_LOSSES = RNG.exponential(size=50), RNG.exponential(size=30)
HARD = {"gamma": 30.0, "bound": 1.5, "max_iterations": 1}  # more than one step can solve
TRAIN, TRUSTED = RNG.normal(size=(50, 3)), RNG.normal(size=(30, 3)) + 0.5


def test_a_match_of_a_mini_batch_is_read_in_few_files():
    """One call at n = 256 stays inside five files of the package."""
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
    assert len(files) <= 5, sorted(files)


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


def test_every_option_is_a_keyword():
    first, second, *rest, _ = inspect.signature(kmm).parameters.values()
    assert (first.name, second.name) == ("z_train", "z_trusted")
    defaults = {parameter.name: parameter.default for parameter in rest}
    assert defaults == KMM().get_params() == vars(Options())
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in rest)
    for function in (kmm, lambda a, b, **more: kmm_batch([a], [b], **more)):
        with pytest.raises(TypeError, match="sigma"):
            function([1.0], [1.0], sigma=1.0)


def test_a_warning_points_at_the_caller():
    with pytest.warns(DIWWarning) as caught:
        kmm(LOSSES, TRUSTED_LOSSES, on_failure="warn", **HARD)
    assert caught[0].filename == __file__


def test_the_estimator_is_the_function():
    estimator = KMM(bound=5.0, ridge=1e-3).fit(TRAIN, TRUSTED)
    match = kmm(TRAIN, TRUSTED, bound=5.0, ridge=1e-3)
    assert np.array_equal(estimator.weights_, match.weights)
    assert (estimator.match_.status, estimator.gamma_) == (match.status, match.gamma)


@pytest.mark.parametrize("n", [1200, 9000])
def test_new_values_get_what_they_would_have_got_as_one_more_training_value(n):
    """A copy of a training value gets its weight, on the matrix as on a factor."""
    rng = np.random.default_rng(n)
    train, trusted = rng.exponential(size=n), rng.exponential(size=300) / 2
    estimator = KMM(ridge=0.1, bound=3.0).fit(train, trusted)
    assert estimator.predict(train[::7]) == pytest.approx(estimator.weights_[::7], abs=1e-6)
    rows, trusted = rng.normal(size=(n, 12)), rng.normal(0.3, 1, (200, 12))
    estimator = KMM(rank=80, ridge=1e-2).fit(rows, trusted)
    assert estimator.status_ == "approximate"
    assert estimator.predict(rows[::7]) == pytest.approx(estimator.weights_[::7], abs=1e-6)
    with pytest.raises(UsageError, match="predict: needs solver='exact'"):
        KMM(solver="stopped").fit(TRAIN, TRUSTED).predict(TRAIN)


@pytest.mark.parametrize(("rows", "small"), [(50, True), (200_001, False)])
def test_small_matches_use_one_blas_thread(monkeypatch: pytest.MonkeyPatch, rows: int, small: bool):
    """With several, each of many small calls would wait for a thread that other work delays."""
    module = import_module("diw.matching.kmm")
    make_problem, seen = module.make_problem, list[list[int]]()

    def numbers() -> list[int]:
        return [library["num_threads"] for library in module._blas().info()]

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append(numbers())
        return make_problem(*arguments, **options)

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
