"""Transitions, odds and shares, against simulations and Bayes' rule written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.labels.running import shrunk_shares, strictness, tamed
from diw.labels.transitions import (
    information,
    log_odds,
    right_shares,
    shrunk_transitions,
    temperature,
    tempered,
    transitions,
    trusted_table,
)

K = 4


def noise(rate: float) -> np.ndarray:
    """Pair flips: class i is labelled i + 1 with some probability."""
    return (1 - rate) * np.eye(K) + rate * np.roll(np.eye(K), 1, axis=1)


def exact_tables(noise: np.ndarray, prior: np.ndarray, ratio: np.ndarray, skill: float):
    """M and J of an infinite sample, with predictions that are right with probability `skill`."""
    predicts = skill * np.eye(K) + (1 - skill) / K
    trusted = prior[:, None] * predicts
    train = noise.T @ ((prior * ratio)[:, None] * predicts)
    return train / train.sum(), trusted


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.45])
@pytest.mark.parametrize("skill", [0.95, 0.7])
def test_transitions_are_found_whatever_the_predictions_are_worth(rate, skill) -> None:
    prior, ratio = np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 0.5, 2.0, 1.0])
    train, trusted = exact_tables(noise(rate), prior, ratio, skill)
    scale = float(prior @ ratio)
    R = transitions(train, trusted, iterations=2000)
    np.testing.assert_allclose(R, noise(rate) * ratio[:, None] / scale, atol=2e-3)
    np.testing.assert_allclose(R.T @ trusted, train, atol=1e-4)


def test_few_iterations_are_close_and_never_negative() -> None:
    prior = np.full(K, 0.25)
    R = transitions(*exact_tables(noise(0.4), prior, np.ones(K), 0.9))
    assert (R >= 0).all()
    np.testing.assert_allclose(np.diagonal(R), 0.6, atol=0.05)


def test_odds_are_bayes_rule() -> None:
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.ones(K), size=50)
    labels = generator.integers(0, K, 50)
    R = noise(0.3) * np.array([1.0, 0.2, 1.0, 3.0])[:, None] + 0.01
    odds = log_odds(np.log(p), labels, R)
    for one, label, found in zip(p, labels, odds, strict=True):
        joint = [one[i] * R[i, label] for i in range(K)]
        right = joint[label] / sum(joint)
        assert 1 / (1 + np.exp(-found)) == pytest.approx(right, rel=1e-6)


def test_the_temperature_is_that_of_the_labels() -> None:
    generator = np.random.default_rng(1)
    scores = generator.normal(size=(20_000, K))
    chances = np.exp(tempered(scores, 1.0))
    labels = np.array([generator.choice(K, p=chance) for chance in chances])
    flat = tempered(scores, 0.5)  # half as sure as it may be
    assert temperature(flat, labels) == pytest.approx(2.0, rel=0.1)


def test_shares_of_right_labels_are_those_of_a_simulation() -> None:
    prior, ratio = np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.0, 0.5, 2.0, 1.0])
    generator = np.random.default_rng(3)
    classes = generator.choice(K, p=prior * ratio / (prior @ ratio), size=200_000)
    given = np.where(generator.random(len(classes)) < 0.3, (classes + 1) % K, classes)
    shares = [np.mean(classes[given == label] == label) for label in range(K)]
    R = noise(0.3) * ratio[:, None] / (prior @ ratio)
    np.testing.assert_allclose(right_shares(R, prior), shares, atol=0.01)


@given(st.lists(st.floats(0, 1), min_size=K, max_size=K), st.integers(0, 1000))
def test_judgements_are_mixed_so_that_as_many_seem_right_as_are(
    wanted: list[float], seed: int
) -> None:
    face, strict = np.random.default_rng(seed).random((2, K))
    mix = strictness(face, strict, np.array(wanted))
    assert ((mix >= 0) & (mix <= 1)).all()
    mixed = (1 - mix) * face + mix * strict
    in_order = np.maximum(face, strict) > strict
    reached = np.clip(wanted, strict, np.maximum(face, strict))
    np.testing.assert_allclose(mixed[in_order], reached[in_order], atol=1e-9)
    assert (mix[~in_order] == 1).all()


@given(st.integers(0, 1000), st.floats(0.1, 4.0))
def test_tempered_probabilities_sum_to_one(seed: int, power: float) -> None:
    log_p = np.log(np.random.default_rng(seed).dirichlet(np.ones(K), size=5))
    np.testing.assert_allclose(np.exp(tempered(log_p, power)).sum(axis=1), 1)


def test_the_trusted_table_counts_labels_and_sums_to_one() -> None:
    q = np.eye(K)[[0, 0, 1, 2]] * 0.94 + 0.015
    q /= q.sum(axis=1, keepdims=True)
    table = trusted_table(q, np.array([0, 0, 1, 3]))
    assert table.sum() == pytest.approx(1)
    assert table[3, 2] > table[3, 0]
    assert (table.sum(axis=1) > 0).all()


def test_shares_follow_evidence_and_not_chance() -> None:
    present = np.array([0.25, 0.25, 0.25, 0.25])
    by_chance = shrunk_shares(np.array([0.27, 0.23, 0.26, 0.24]), present, 100)
    np.testing.assert_allclose(by_chance, present)
    wanted = np.array([0.7, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(shrunk_shares(wanted, present, 1000), wanted, atol=0.02)


def test_information_is_fishers_for_two_classes_and_one_without_noise() -> None:
    for rate in (0.0, 0.1, 0.4):
        T = np.array([[1 - rate, rate], [rate, 1 - rate]])
        assert information(np.diag([0.5, 2.0]) @ T) == pytest.approx((1 - 2 * rate) ** 2)
    assert information(np.diag([0.1, 1.0, 3.0])) == 1
    assert information(np.full((2, 2), 0.5)) == pytest.approx(0.04)  # nothing is left: the least


@pytest.mark.parametrize("m", [40, 100, 400])
def test_only_what_there_is_evidence_for_is_off_the_diagonal(m: int) -> None:
    generator = np.random.default_rng(3)

    def draw(n: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
        truth = np.arange(n) % K
        scores = 2.5 * np.eye(K)[truth] + generator.normal(size=(n, K))
        flipped = generator.random(n) < rate
        return np.exp(tempered(scores, 1.0)), np.where(flipped, (truth + 1) % K, truth)

    for rate in (0.0, 0.4):
        (q, labels), (trusted_q, trusted_labels) = draw(4000, rate), draw(m, 0.0)
        train = np.zeros((K, K))
        np.add.at(train, labels, q / len(q))
        found = transitions(train, trusted_table(trusted_q, trusted_labels))
        kept = shrunk_transitions(found, train, trusted_q, trusted_labels)
        np.testing.assert_array_equal(np.diagonal(kept), np.diagonal(found))
        wrong = (kept - np.diag(np.diagonal(kept))).sum() / kept.sum()
        assert wrong < 0.04 if rate == 0 else wrong > 0.25, (rate, wrong)


def effective(factors: np.ndarray, shares: np.ndarray) -> float:
    """Kish's effective sample size of 10,000 samples that are weighted by their class."""
    weights = np.repeat(factors, (10_000 * shares).astype(int))
    return weights.sum() ** 2 / (len(weights) * (weights**2).sum())


def test_mild_class_factors_stay_as_they_are() -> None:
    factors, shares = np.array([0.8, 1.0, 1.5, 0.9]), np.full(K, 0.25)
    assert tamed(factors, shares) is factors


def test_class_factors_of_rare_classes_leave_an_effective_sample_size() -> None:
    shares = np.array([0.001, 0.333, 0.333, 0.333])
    factors = 0.25 / shares  # all classes alike
    assert effective(factors, shares) < 0.02
    found = tamed(factors, shares)
    assert effective(found, shares) == pytest.approx(0.5, abs=1e-6)
    assert found[0] > 5 * found[1]  # a rare class still counts far more
