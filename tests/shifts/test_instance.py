"""Instance-dependent noise: doubtful samples are flipped, to their second choice, at the rate."""

import numpy as np
import pytest
import torch

from diw.data.dataset import TensorInputs
from diw.errors import UsageError
from diw.shifts import parse_shift
from diw.shifts.instance import flip_probability, log_probabilities

N = 6000


def two_gaussians() -> tuple[TensorInputs, np.ndarray, np.ndarray]:
    """Classes 0 and 1 at −1 and +1 along the first of two features; the positions too."""
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 2
    x = rng.normal(size=(N, 2))
    x[:, 0] += 2 * labels - 1
    return TensorInputs(torch.from_numpy(x).float()), labels, x[:, 0]


def test_the_regression_finds_the_log_odds_of_two_gaussians():
    inputs, labels, x = two_gaussians()
    logs = log_probabilities(inputs, labels, 2, np.random.default_rng(1))
    assert np.exp(logs).sum(axis=1) == pytest.approx(1)
    slope, intercept = np.polyfit(x, logs[:, 1] - logs[:, 0], 1)
    assert slope == pytest.approx(2, rel=0.1)  # log p(1|x)/p(0|x) = 2x
    assert intercept == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("rate", [0.01, 0.4, 0.9])
def test_the_mean_probability_is_the_rate_and_grows_with_the_doubt(rate):
    doubt = np.random.default_rng(0).normal(scale=5, size=1000)
    probability = flip_probability(doubt, rate)
    assert probability.mean() == pytest.approx(rate, abs=1e-9)
    assert (np.diff(probability[np.argsort(doubt)]) >= 0).all()


def test_equal_doubt_flips_everything_alike():
    assert flip_probability(np.full(5, -3.0), 0.25) == pytest.approx(0.25)


def test_doubtful_labels_are_flipped_at_the_rate_in_expectation():
    inputs, labels, x = two_gaussians()
    shifted = parse_shift("instance:0.3").apply(labels, 2, 0, inputs=inputs)
    flipped = shifted.targets != labels
    assert abs(flipped.mean() - 0.3) <= 4 * np.sqrt(0.3 * 0.7 / N)
    easy = np.where(labels == 1, x, -x)
    assert flipped[easy < 0].mean() > 3 * flipped[easy > 1].mean()


def test_a_flip_goes_to_the_second_choice():
    rng = np.random.default_rng(0)
    labels = np.arange(N) % 3
    x = rng.normal(scale=0.3, size=(N, 1)) + labels[:, None]  # 0, 1 and 2 on a line
    inputs = TensorInputs(torch.from_numpy(x).float())
    targets = parse_shift("instance:0.3").apply(labels, 3, 0, inputs=inputs).targets
    ends = labels != 1
    assert (targets[ends & (targets != labels)] == 1).mean() > 0.99


def test_true_weights_are_one_over_the_chance_to_stay_intact():
    inputs, labels, x = two_gaussians()
    shifted = parse_shift("instance:0.3").apply(labels, 2, 0, inputs=inputs)
    intact = shifted.targets == labels
    assert (shifted.true_weights[~intact] == 0).all()
    # Weighted intact samples bring back what all samples have.
    easy = np.where(labels == 1, x, -x)
    assert np.average(easy, weights=shifted.true_weights) == pytest.approx(easy.mean(), abs=0.1)
    assert easy[intact].mean() > easy.mean() + 0.2


def test_protected_rows_keep_their_label_and_change_no_other_draw():
    inputs, labels, _ = two_gaussians()
    shift = parse_shift("instance:0.4")
    free = shift.apply(labels, 2, 3, inputs=inputs).targets
    rows = np.arange(0, N, 7)
    kept = shift.apply(labels, 2, 3, inputs=inputs, protected=rows).targets
    assert (kept[rows] == labels[rows]).all()
    others = np.setdiff1d(np.arange(N), rows)
    assert np.array_equal(kept[others], free[others])


def test_the_seed_decides():
    inputs, labels, _ = two_gaussians()
    shift = parse_shift("instance:0.4")
    first, again, other = (
        shift.apply(labels, 2, seed, inputs=inputs).targets for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_rate_of_zero_changes_nothing_and_a_wrong_one_is_refused():
    inputs, labels, _ = two_gaussians()
    shifted = parse_shift("instance:0").apply(labels, 2, 0, inputs=inputs)
    assert np.array_equal(shifted.targets, labels)
    with pytest.raises(UsageError, match=r"the rate of instance lies in \[0, 1\), got 1"):
        parse_shift("instance:1")
    with pytest.raises(ValueError, match="inputs: instance-dependent noise needs them"):
        parse_shift("instance:0.4").apply(labels, 2, 0)
