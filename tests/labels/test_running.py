"""What is known as a whole: it is kept, averaged, and decides how strictly labels are judged."""

import numpy as np
import pytest

from diw.labels.running import Running
from diw.labels.transitions import right_shares

K = 4


def test_tables_survive_saving() -> None:
    tables = Running.empty(K, 6)
    assert not tables.ready
    generator = np.random.default_rng(2)
    q = generator.dirichlet(np.ones(K), size=30)
    labels = generator.integers(0, K, 30)
    tables.note(np.arange(30))
    tables.add(q, labels)
    tables.enter(np.arange(6), np.log(q[:6]), labels[:6])
    tables.match(40)
    tables.right(tables.judge(np.log(q), labels), labels, labels < 0, True)
    again = Running.from_state_dict(tables.state_dict())
    for name, value in vars(tables).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    again.add(q, labels)
    assert tables.train.sum() != again.train.sum()


def test_a_pass_is_long_by_its_samples_and_the_largest_batch() -> None:
    """The last batch of a pass, and passes that count as one epoch, do not make it longer."""
    tables = Running.empty(K, 0)
    assert not tables.long_passes
    tables.note(np.arange(0, 990, 10))
    for _ in range(200):
        tables.note(np.array([3, 998]))
    assert (tables.samples, tables.batch) == (999, 99)
    assert not tables.long_passes
    tables.note(np.array([100 * 99 - 1]))
    assert tables.long_passes


@pytest.mark.parametrize(("samples", "left"), [(100, 0.95), (400, 0.95), (1600, 0.95**0.25)])
def test_tables_fade_by_matches_or_by_passes_if_these_are_longer(samples: int, left: float) -> None:
    tables = Running.empty(2, 10)
    tables.note(np.arange(samples - 10, samples))
    q, labels = np.full((10, 2), 0.5), np.arange(10) % 2
    tables.add(q, labels)
    tables.enter(np.arange(10), np.log(q), labels)
    before = tables.train.sum(), tables.trusted.sum()
    tables.match(40)
    np.testing.assert_allclose(
        (tables.train.sum(), tables.trusted.sum()), np.multiply(before, left)
    )


def test_predictions_of_trusted_samples_are_averaged_over_visits() -> None:
    tables = Running.empty(2, 2)
    for p in (0.2, 0.4):
        tables.enter(np.array([1]), np.log([[p, 1 - p]]), np.array([0]))
    np.testing.assert_allclose(np.exp(tables.log_p[1]), [0.3, 0.7])
    assert tables.visits.tolist() == [0, 2]


def test_as_many_labels_of_each_class_seem_right_as_are() -> None:
    """Predictions that are too sure drop right labels of class 0, unless its share is heeded."""
    generator = np.random.default_rng(4)
    n, rate = 6000, 0.4
    classes = generator.integers(0, K, n)
    wrong = generator.random(n) < rate
    labels = np.where(wrong, (classes + generator.integers(1, K, n)) % K, classes)
    scores = generator.normal(size=(n, K)) + 4 * np.eye(K)[classes]
    scores[classes == 0] -= 3.5 * np.eye(K)[0]  # hardly told from the others
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    tables = Running.empty(K, K)
    tables.transitions = (1 - rate) * np.eye(K) + rate / (K - 1) * (1 - np.eye(K))
    tables.power = 4.0  # trusted samples, learned by heart, would say so
    tables.enter(np.arange(K), np.log(np.full((K, K), 1 / K)), np.arange(K))
    known = np.zeros(n, bool)
    odds = tables.judge(log_p, labels)
    own = (labels == 0) & ~wrong
    strict = tables.right(odds, labels, known, by_share=False)
    assert strict[own].mean() < 0.6
    by_share = tables.right(odds, labels, known, by_share=True)
    assert by_share[own].mean() > strict[own].mean() + 0.1
    face = 1 / (1 + np.exp(-odds[0]))
    for label, wanted in enumerate(right_shares(tables.transitions, np.full(K, 1 / K))):
        least, found, most = (part[labels == label].mean() for part in (strict, by_share, face))
        assert found == pytest.approx(np.clip(wanted, least, most), abs=1e-6)


def test_trusted_labels_are_right_and_do_not_enter_the_shares() -> None:
    tables = Running.empty(2, 2)
    tables.enter(np.arange(2), np.log(np.full((2, 2), 0.5)), np.arange(2))
    odds = np.full((2, 3), -8.0)
    known = np.array([True, False, False])
    right = tables.right(odds, np.array([0, 0, 1]), known, by_share=True)
    assert right[0] == 1
    assert (right[1:] < 0.001).all()
    np.testing.assert_array_equal(tables.judged[0], [1, 1])
