"""The monotone ratio against its definition."""

import numpy as np
import pytest

from diw.matching import Isotonic


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
    weights = Isotonic(bound=1e6).fit(train, trusted).weights_
    assert weights == pytest.approx(by_definition(train, trusted, falling), rel=1e-9)
    order = np.argsort(train)
    steps = np.diff(weights[order])
    assert (steps <= 1e-12).all() if falling else (steps >= -1e-12).all()


def test_between_two_values_the_ratio_is_that_of_the_nearer():
    estimator = Isotonic().fit([0.0, 1.0, 2.0, 3.0], [2.0, 3.0, 3.0])
    low, high = estimator.weights_[[1, 2]]
    assert low < high
    assert estimator.predict([-9.0, 1.4, 1.6, 9.0]) == pytest.approx(
        [low, low, high, estimator.weights_[3]]
    )


def test_one_number_per_row():
    with pytest.raises(ValueError, match="train: has 2 columns; Isotonic needs one number per row"):
        Isotonic().fit(np.ones((3, 2)), np.ones((3, 2)))


def test_the_bound_holds_and_many_values_take_no_time():
    rng = np.random.default_rng(0)
    assert Isotonic(bound=1.5).fit(rng.normal(size=50), rng.normal(1, 1, 50)).weights_.max() <= 1.5
    many = Isotonic().fit(rng.normal(size=200_000), rng.normal(0.5, 1, 1000)).weights_
    assert many.mean() == pytest.approx(1, abs=0.05)
