from itertools import combinations

import numpy as np
import pytest

from diw.labels.share import estimate_share, exact_share


def by_enumeration(wrong, m, n, tail):
    """All totals whose tails are at least so probable, by counting every sample."""
    kept = []
    for total in range(n + 1):
        counts = np.array([sum(i < total for i in rows) for rows in combinations(range(n), m)])
        if (counts >= wrong).mean() >= tail and (counts <= wrong).mean() >= tail:
            kept.append(total)
    return kept[0] / n, kept[-1] / n


@pytest.mark.parametrize("wrong", range(5))
def test_the_exact_interval_is_that_of_all_samples(wrong):
    found = exact_share(wrong, 4, 9)
    tail = 0.05 if wrong in (0, 4) else 0.025
    assert (found.low, found.high) == by_enumeration(wrong, 4, 9, tail)


def test_all_rows_verified_leave_nothing_open():
    assert exact_share(3, 20, 20).as_list() == [0.15, 0.15, 0.15]
    observed = np.arange(40) < 12
    found = estimate_share(observed, np.zeros((40, 1)), np.zeros(1), 40)
    assert found.as_list() == pytest.approx([0.3, 0.3, 0.3])


def test_without_information_it_is_wilsons():
    observed = np.arange(1000) < 300
    found = estimate_share(observed, np.full((1000, 1), 0.5), np.full(1, 0.5), 10**9)
    assert [found.low, found.high] == pytest.approx([0.2724, 0.3291], abs=2e-4)


def draws(quality, rate, m, times=400, n=2000, drawn=None):
    """How often the interval holds the truth, its mean width, and the mean of the estimates."""
    rng = np.random.default_rng(0)
    wrong = rng.random(n) < rate
    noise = rng.normal(0, 0.05, (n, 2))
    predicted = np.clip((quality * wrong + (1 - quality) * rate)[:, None] + noise, 0, 1)
    held, widths, values = 0, [], []
    for _ in range(times):
        if drawn is None:
            rows, weights = rng.permutation(n)[:m], None
        else:
            rows = np.flatnonzero(rng.random(n) < drawn(predicted[:, 0]))
            weights = drawn(predicted[:, 0])[rows]
        found = estimate_share(
            wrong[rows],
            predicted[rows],
            np.delete(predicted, rows, axis=0).mean(axis=0),
            n,
            weights,
        )
        held += found.low <= wrong.mean() <= found.high
        widths.append(found.high - found.low)
        values.append(found.value)
    return held / times, float(np.mean(widths)), float(np.mean(values) - wrong.mean())


@pytest.mark.parametrize(("rate", "m"), [(0.08, 60), (0.3, 60), (0.45, 200), (0.0, 60)])
@pytest.mark.parametrize("quality", [0.0, 0.6])
def test_it_holds_the_truth(quality, rate, m):
    held, _, off = draws(quality, rate, m)
    assert held > 0.92
    assert abs(off) < 0.01


def test_good_predictions_make_it_narrower_and_bad_ones_do_not_make_it_wider():
    blind, good = draws(0.0, 0.3, 200)[1], draws(0.7, 0.3, 200)[1]
    assert good < 0.6 * blind
    assert blind < 1.03 * 2 * 1.96 * np.sqrt(0.3 * 0.7 / 200 * 0.9)


def test_drawing_probabilities_are_allowed_for():
    held, _, off = draws(0.5, 0.3, 0, drawn=lambda g: 0.05 + 0.15 * g)
    assert held > 0.92
    assert abs(off) < 0.01
