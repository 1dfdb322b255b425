"""The monotone ratio against its definition."""

import numpy as np
import pytest

from diw.matching import Isotonic, isotonic, kmm


def by_definition(train, trusted, falling: bool):
    """p_i = max over a ≤ i of the min over b ≥ i of the share of trusted samples in [a, b]."""
    values = np.unique(np.r_[train, trusted])
    if falling:
        values = values[::-1]
    ours = np.array([(train == v).sum() for v in values])
    theirs = np.array([(trusted == v).sum() for v in values])
    size = len(values)
    p = np.empty(size)
    for i in range(size):
        p[i] = max(
            min(theirs[a : b + 1].sum() / (ours + theirs)[a : b + 1].sum() for b in range(i, size))
            for a in range(i + 1)
        )
    place = {v: i for i, v in enumerate(values)}
    p = p[[place[v] for v in train]]
    return p / (1 - p) * len(train) / len(trusted)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("falling", [True, False])
def test_it_is_the_monotone_fit(seed, falling):
    rng = np.random.default_rng(seed)
    train, trusted = rng.normal(size=25), rng.normal(-1 if falling else 1, 1, 15)
    if seed % 2:
        train, trusted = train.round(1), trusted.round(1)  # ties
    match = isotonic(train, trusted, bound=1e6)
    assert match.weights == pytest.approx(by_definition(train, trusted, falling), rel=1e-12)
    order = np.argsort(train)
    steps = np.diff(match.weights[order])
    assert (steps <= 1e-12).all() if falling else (steps >= -1e-12).all()


def test_a_column_and_the_front_door_give_the_same():
    rng = np.random.default_rng(0)
    train, trusted = rng.normal(size=50), rng.normal(0.5, 1, 30)
    w = isotonic(train, trusted).weights
    assert np.array_equal(isotonic(train[:, None], trusted[:, None]).weights, w)
    assert np.array_equal(kmm(train, trusted, solver="isotonic").weights, w)
    assert np.array_equal(Isotonic().fit_weights(train, trusted), w)


def test_bound_and_columns():
    rng = np.random.default_rng(0)
    assert isotonic(rng.normal(size=50), rng.normal(2, 1, 50), bound=1.5).weights.max() <= 1.5
    with pytest.raises(ValueError, match="z_train: has 2 columns"):
        isotonic(np.ones((3, 2)), np.ones((3, 2)))


def test_separate_values_and_equal_ones():
    assert (isotonic([1.0, 2.0], [3.0, 4.0]).weights == 0).all()
    assert isotonic([1.0, 1.0], [1.0]).weights == pytest.approx(1)


def test_many_values_take_few_steps_of_python():
    rng = np.random.default_rng(0)
    match = isotonic(rng.normal(size=200_000), rng.normal(0.5, 1, 1000))
    assert match.weights.mean() == pytest.approx(1, abs=0.05)
