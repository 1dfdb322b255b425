"""Instance-dependent noise: doubtful samples are flipped, to their second choice, at the rate."""

import numpy as np
import pytest
import torch

from diw.data.dataset import TensorInputs
from diw.errors import UsageError
from diw.shifts import parse_shift
from diw.shifts.instance import annotated, flip_probability, log_probabilities

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
    logs = log_probabilities(inputs, labels, 2, np.random.default_rng(1).permutation(N)[:5000])
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
    with pytest.raises(ValueError, match="inputs: a shift that depends on them needs them"):
        parse_shift("instance:0.4").apply(labels, 2, 0)


def digits(n: int = 3000) -> tuple[TensorInputs, np.ndarray]:
    """Five overlapping classes in eight dimensions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, n)
    x = rng.normal(size=(5, 8))[labels] * 1.2 + rng.normal(size=(n, 8))
    return TensorInputs(torch.from_numpy(x).float()), labels


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.4, 0.7, 0.9])
def test_an_annotator_is_wrong_as_often_as_asked(rate):
    inputs, labels = digits()
    chance = annotated(inputs, labels, 5, rate, np.random.default_rng(0))
    assert chance.sum(axis=1) == pytest.approx(1)
    assert 1 - chance[np.arange(len(labels)), labels].mean() == pytest.approx(rate, abs=1e-5)
    shifted = parse_shift(f"annotator:{rate}").apply(labels, 5, 0, inputs=inputs)
    spread = np.sqrt(rate * (1 - rate) / len(labels))
    assert abs(shifted.facts["flip_rate"] - rate) <= 4 * spread


def test_the_errors_of_an_annotator_are_a_function_of_the_sample():
    """A model of the given labels says which are wrong less than under even noise of that rate."""
    inputs, labels = digits()
    rows = np.arange(0, len(labels), 2)
    losses = {}
    for shift in ("annotator:0.4", "symmetric:0.4"):
        given = parse_shift(shift).apply(labels, 5, 0, inputs=inputs).targets
        logs = log_probabilities(inputs, given, 5, rows)
        losses[shift] = -logs[np.arange(len(given)), given][1::2].mean()
    assert losses["annotator:0.4"] < losses["symmetric:0.4"] - 0.2


def test_a_weak_annotator_has_seen_few_rows():
    """Asked for the errors that so few rows allow, no more rows are read."""
    inputs, labels = digits()
    rng = np.random.default_rng(3)
    order = np.random.default_rng(3).permutation(len(labels))[: 5 * 30]
    logs = log_probabilities(inputs, labels, 5, np.sort(order))
    chance = annotated(inputs, labels, 5, 0.5, rng)
    ratio = np.log(chance) - np.log(chance[:, :1])
    expected = logs - logs[:, :1]
    beta = float((ratio * expected).sum() / (expected**2).sum())
    np.testing.assert_allclose(ratio, beta * expected, atol=1e-8)


@pytest.mark.parametrize(
    "shift", ["annotator:0.4+symmetric:0.3", "instance:0.3+pair:0.4", "pair:0.4+annotator:0.4"]
)
def test_true_weights_are_exact_where_noise_follows_noise(shift):
    """Weighted, intact samples of every class and every doubt are as many as all samples.

    A label may become wrong, and right again: three in ten of the hardest intact ones did.
    """
    inputs, labels = digits()
    logs = log_probabilities(inputs, labels, 5, np.arange(1000))
    doubt = -logs[np.arange(len(labels)), labels]
    hard = doubt > np.quantile(doubt, 0.9)
    found = [
        parse_shift(shift).apply(labels, 5, seed, protected=[0, 5], inputs=inputs).true_weights
        for seed in range(12)
    ]
    assert np.mean([weights[hard].mean() for weights in found]) == pytest.approx(1, abs=0.12)
    for label in range(5):
        each = [weights[labels == label].mean() for weights in found]
        assert np.mean(each) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("shift", ["annotator:0.4", "instance:0.3", "symmetric:0.4+pair:0.2"])
def test_protected_rows_say_what_they_would_have_been_given(shift):
    inputs, labels = digits(600)
    free = parse_shift(f"prior:0.4,2+{shift}").apply(labels, 5, 3, inputs=inputs)
    rows = np.arange(0, 600, 7)
    kept = parse_shift(shift).apply(labels, 5, 3, inputs=inputs, protected=rows)
    same = parse_shift(shift).apply(labels, 5, 3, inputs=inputs)
    assert np.array_equal(kept.unprotected, same.targets)
    assert np.array_equal(kept.targets[rows], labels[rows])
    assert len(free.unprotected) == len(free.keep)


def test_an_annotator_ignores_labels_that_came_before():
    inputs, labels = digits(600)
    alone = parse_shift("annotator:0.4").apply(labels, 5, 0, inputs=inputs)
    after = parse_shift("none+symmetric:0.9+annotator:0.4").apply(labels, 5, 0, inputs=inputs)
    assert abs(after.facts["flip_rate"] - alone.facts["flip_rate"]) < 0.1


def test_wrong_annotators_are_refused():
    labels = digits(600)[1]
    gaussians, two, _ = two_gaussians()
    assert np.array_equal(parse_shift("annotator:0").apply(labels, 5, 0).targets, labels)
    with pytest.raises(UsageError, match=r"the rate of annotator lies in \[0, 1\), got 1"):
        parse_shift("annotator:1")
    with pytest.raises(
        UsageError, match=r"an annotator can make 0\.8\d\d of these labels wrong at"
    ):
        parse_shift("annotator:0.95").apply(two, 2, 0, inputs=gaussians)
    with pytest.raises(ValueError, match="inputs: a shift that depends on them needs them"):
        parse_shift("annotator:0.4").apply(labels, 5, 0)
