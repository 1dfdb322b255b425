"""Kernel models of the ratio, against their definitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diw.errors import MatchingError
from diw.matching import KLIEP, ULSIF, kliep, kmm, ulsif
from diw.matching.ratios import (
    Features,
    largest_likelihood,
    left_out_errors,
    left_out_likelihoods,
    spread_out,
)
from diw.seeding import numpy_generator

RNG = np.random.default_rng(1)
TRAIN, TRUSTED = RNG.normal(size=(80, 2)), RNG.normal(0.6, 0.8, (50, 2))
GAMMA = 0.4


def features(z, centres=TRUSTED):
    return np.exp(-GAMMA * cdist(z, centres, "sqeuclidean"))


def fitted(A, T, penalty):
    H = A.T @ A / len(A)
    return np.maximum(np.linalg.solve(H + penalty * np.eye(H.shape[0]), T.mean(0)), 0)


def test_ulsif_is_its_closed_form():
    match = ulsif(TRAIN, TRUSTED, gamma=GAMMA, penalty=0.1)
    A, T = features(TRAIN), features(TRUSTED)
    alpha = fitted(A, T, 0.1)
    assert match.weights == pytest.approx(A @ alpha, rel=1e-9, abs=1e-12)
    H = A.T @ A / 80
    objective = 0.5 * alpha @ H @ alpha - T.mean(0) @ alpha + 0.05 * alpha @ alpha
    assert match.objective == pytest.approx(objective, rel=1e-9)
    assert (match.status, match.penalty, match.gamma, match.rank) == ("optimal", 0.1, GAMMA, 50)
    assert match.error_bound <= 1e-8


@pytest.mark.parametrize("sizes", [(30, 30), (40, 25), (20, 35)])
def test_the_error_left_out_is_that_of_models_fitted_again(sizes):
    n, m = sizes
    A, T = features(TRAIN[:n]), features(TRUSTED[:m])
    values = []
    generator = numpy_generator(0, "pairs left out")
    count = min(n, m)
    ours, theirs = generator.permutation(n)[:count], generator.permutation(m)[:count]
    for penalty in (0.2, 3.0):
        errors = []
        for i, j in zip(ours, theirs, strict=True):
            alpha = fitted(np.delete(A, i, 0), np.delete(T, j, 0), penalty)
            errors.append(0.5 * (A[i] @ alpha) ** 2 - T[j] @ alpha)
        values.append(np.mean(errors))
    assert left_out_errors(A, T, (0.2, 3.0)) == pytest.approx(values, rel=1e-9)


def test_ulsif_chooses_what_errs_least_when_left_out():
    match = ulsif(TRAIN, TRUSTED)
    chosen = np.exp(-match.gamma * cdist(TRAIN, TRUSTED, "sqeuclidean"))
    trusted = np.exp(-match.gamma * cdist(TRUSTED, TRUSTED, "sqeuclidean"))
    least = left_out_errors(chosen, trusted, (match.penalty, 1.0))[0]
    assert match.iterations == 54
    others = left_out_errors(features(TRAIN), features(TRUSTED), (1e-3, 0.1, 10.0))
    assert least <= others.min() + 1e-2


def test_kliep_has_the_largest_likelihood():
    A, T = features(TRAIN), features(TRUSTED)
    match = kliep(TRAIN, TRUSTED, gamma=GAMMA)
    assert match.is_optimal()
    assert match.weights.mean() == pytest.approx(1, abs=1e-9)
    L, beta = T / A.mean(0), np.full(50, 0.02)
    for _ in range(3000):  # expectation and maximisation: slow, but the likelihood only rises
        beta = beta * (L / (L @ beta)[:, None]).mean(0)
    theirs = -np.log(L @ beta).mean()
    assert theirs - 1e-4 <= match.objective <= theirs + 1e-12


def test_centres_are_spread_out():
    values = RNG.normal(size=(400, 3))
    chosen = values[spread_out(values, 30)]
    assert len(np.unique(chosen, axis=0)) == 30
    reach = cdist(values, chosen).min(1).max()
    apart = cdist(chosen, chosen)[np.triu_indices(30, 1)].min()
    assert reach <= apart  # what makes a farthest-first choice: all are near, none is wasted
    assert spread_out(np.repeat(values[:2], 50, axis=0), 30).size == 2  # equal values once


def test_a_value_left_out_is_no_centre_of_its_model():
    """With kernels as narrow as this a value is likely under its own centre alone."""
    values = 10.0 * np.arange(40.0)[:, None]
    every = np.exp(-cdist(values, values, "sqeuclidean"))
    scores = left_out_likelihoods(Features(1.0, every, every, np.arange(40)))
    assert scores.max() < np.log(1e-20)


def test_kliep_narrows_the_kernel_where_that_is_clearly_likelier():
    rng = np.random.default_rng(5)
    train = rng.normal(size=(600, 1))
    smooth = rng.normal(0.3, 1.0, (300, 1))
    comb = 0.5 * rng.integers(-3, 4, (300, 1)) + rng.normal(0, 0.05, (300, 1))
    assert kliep(train, comb).gamma >= 8 * kliep(train, smooth).gamma


def test_kliep_satisfies_the_conditions_of_optimality():
    A, T = features(TRAIN), features(TRUSTED)
    alpha, steps, dual, gap = largest_likelihood(A, T)
    assert (alpha >= 0).all()
    assert (A @ alpha).mean() == pytest.approx(1, abs=1e-12)
    slope = (T / (T @ alpha)[:, None]).mean(0) / A.mean(0)
    assert slope.max() <= 1 + 1e-8
    assert slope[alpha * A.mean(0) > 1e-4] == pytest.approx(1, abs=1e-6)
    assert max(dual, gap) <= 1e-8
    assert steps < 60


def test_kliep_without_training_values_near_any_trusted_one_fails_by_name():
    with pytest.raises(MatchingError, match="kliep: not solved"):
        kliep(TRAIN, TRUSTED + 1e3, gamma=1.0)


@pytest.mark.parametrize("function", [ulsif, kliep])
def test_the_bound_holds(function):
    assert function(TRAIN, TRUSTED, bound=1.2).weights.max() <= 1.2


@pytest.mark.parametrize(
    ("name", "function", "kind"), [("ulsif", ulsif, ULSIF), ("kliep", kliep, KLIEP)]
)
def test_the_front_door_gives_the_same(name, function, kind):
    direct = function(TRAIN, TRUSTED).weights
    assert np.array_equal(kmm(TRAIN, TRUSTED, solver=name).weights, direct)
    assert np.array_equal(kind().fit_weights(TRAIN, TRUSTED), direct)


def test_one_trusted_value_is_enough():
    for function in (ulsif, kliep):
        assert np.isfinite(function(TRAIN, TRUSTED[:1]).weights).all()
