from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from diw.auditing.shift_tests import (
    class_ratios,
    feature_test,
    holm,
    label_test,
    loss_test,
    outside_share,
    wilson,
)


def uniformity(p_values: list[float]) -> float:
    """The largest excess of P(p ≤ t) over t: a valid test has none but by chance."""
    return float(stats.kstest(p_values, "uniform", alternative="greater").pvalue)


def test_p_values_are_valid_without_a_shift() -> None:
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"features": [], "within": [], "labels": [], "losses": []}
    for seed in range(60):
        labels = rng.integers(0, 3, 90)
        features, losses = rng.normal(size=(90, 4)), rng.random(90)
        found["features"].append(feature_test(features, 30, seed, permutations=99))
        found["within"].append(feature_test(features, 30, seed, labels, permutations=99))
        counts = [np.bincount(part, minlength=3) for part in (labels[:60], labels[60:])]
        found["labels"].append(label_test(counts[0], counts[1], seed, permutations=99))
        found["losses"].append(2 * min(loss_test(losses, labels, 30, seed, permutations=99)))
    for name, p_values in found.items():
        assert uniformity(p_values) > 0.01, name


def test_each_test_sees_its_shift_and_no_other() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 400)
    features = rng.normal(size=(400, 3))
    moved = features + (np.arange(400) >= 300)[:, None]
    assert feature_test(features, 100, 0) > 0.05
    assert feature_test(moved, 100, 0) == 0.001
    assert feature_test(moved, 100, 0, labels) == 0.001
    # Inputs that depend on the class alone: p(x) moves with the class shares, p(x|y) does not.
    shares = np.where(np.arange(400) < 300, rng.random(400) < 0.2, rng.random(400) < 0.8).astype(
        int
    )
    by_class = rng.normal(size=(400, 3)) + 2 * shares[:, None]
    assert feature_test(by_class, 100, 0) == 0.001
    assert feature_test(by_class, 100, 0, shares) > 0.05
    assert label_test(np.bincount(shares[:300]), np.bincount(shares[300:]), 0) == 0.001
    losses = rng.random(400) + 0.5 * shares
    assert min(loss_test(losses, shares, 100, 0)) > 0.05
    assert loss_test(losses + 0.3 * (np.arange(400) < 300), shares, 100, 0) == (0.001, 1.0)
    assert loss_test(losses - 0.3 * (np.arange(400) < 300), shares, 100, 0) == (1.0, 0.001)


def test_few_samples_by_enumeration() -> None:
    """All ways to choose one trusted sample of three and two of four, with equal chances."""
    losses, labels = np.array([1.0, 4, 0, 2, 7, 3, 1]), np.array([0, 0, 1, 1, 0, 1, 1])

    def statistic(chosen: tuple[int, ...]) -> float:
        total = 0.0
        for label in (0, 1):
            own = losses[labels == label]
            mine = losses[[place for place in chosen if labels[place] == label]]
            total += len(mine) * ((own.sum() - mine.sum()) / (len(own) - len(mine)) - mine.mean())
        return total

    ways = [(a, *b) for a in (0, 1, 4) for b in combinations((2, 3, 5, 6), 2)]
    values = np.array([statistic(way) for way in ways])
    worse, better = loss_test(losses, labels, 3, 0, permutations=20_000)
    assert worse == pytest.approx((values >= statistic((4, 5, 6)) - 1e-9).mean(), abs=0.015)
    assert better == pytest.approx((values <= statistic((4, 5, 6)) + 1e-9).mean(), abs=0.015)


def test_holm_by_hand() -> None:
    assert holm({"a": 0.04, "b": 0.01, "c": 0.9}) == {"a": 0.08, "b": 0.03, "c": 0.9}
    assert holm({"a": 0.02, "b": 0.019}) == {"a": pytest.approx(0.038), "b": pytest.approx(0.038)}


def test_ratios_and_intervals() -> None:
    ratios = class_ratios(np.array([900, 100]), np.array([50, 50]))
    assert ratios[:, 0] == pytest.approx([0.5 / 0.9, 0.5 / 0.1], rel=0.02)
    assert (ratios[:, 1] < ratios[:, 0]).all()
    assert (ratios[:, 0] < ratios[:, 2]).all()
    expected = stats.binomtest(3, 40).proportion_ci(method="wilson")
    assert wilson(3 / 40, 40) == pytest.approx((expected.low, expected.high), abs=1e-3)


def test_the_share_outside_the_support() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1200, 2))
    points[-50:] += 10
    share, low, high = outside_share(points, 200, 0)
    assert share == pytest.approx(0.26, abs=0.03)
    assert low < 0.25 < high
