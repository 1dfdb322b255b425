"""Whether trusted labels look wrong: no alarm without cause, and the wrong ones are found."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from diw.labels.trusted import check_trusted

M, K = 500, 10


def drawn(
    seed: int, *, m: int = M, k: int = K, wrong: float = 0.0, rare: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """What Bayes' rule says (m, k) of Gaussian classes, their labels (m,), and which are wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, m)
    log_p = 3 * (3 * np.eye(k)[labels] + rng.normal(size=(m, k)))
    log_p[:, 0] += np.log(rare)  # the network has hardly met the first class
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    replaced = rng.random(m) < wrong
    others = (labels + rng.integers(1, k, m)) % k
    return p, np.where(replaced, others, labels), replaced


def seen(p: NDArray[np.float64], *, noise: float = 0.0, power: float = 1.0) -> NDArray[np.float64]:
    """What a network says that learned from labels of which some are wrong, or too little."""
    q = p**power
    q = (1 - noise) * q / q.sum(axis=1, keepdims=True) + noise / p.shape[1]
    return np.log(q)


WORLDS = [{}, {"noise": 0.4, "power": 0.5}, {"power": 2.0}, {"power": 0.4}]


@pytest.mark.parametrize("world", [*WORLDS, {"noise": 0.4}], ids=str)
@pytest.mark.parametrize("rare", [1.0, 0.02])
def test_right_labels_are_not_doubted(world: dict[str, float], rare: float) -> None:
    draws = (drawn(i, rare=rare) for i in range(20))
    found = [check_trusted(seen(p, **world), y) for p, y, _ in draws]
    assert not any(one.enough for one in found)


@pytest.mark.parametrize("world", WORLDS, ids=str)
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_labels_replaced_at_random_are_found(world: dict[str, float], share: float) -> None:
    p, labels, replaced = drawn(3, wrong=share)
    found = check_trusted(seen(p, **world), labels)
    assert found.enough
    assert found.share == pytest.approx(share * K / (K - 1), abs=0.05)
    listed = found.wrong > 0.5
    assert (listed & replaced).sum() > 0.75 * replaced.sum()
    assert (listed & ~replaced).sum() < 0.3 * listed.sum()


def test_a_few_classes_or_many() -> None:
    for k, m in ((2, 400), (100, 1000)):
        p, labels, replaced = drawn(5, m=m, k=k, wrong=0.1)
        found = check_trusted(seen(p), labels)
        assert found.wrong.shape == (m,)
        assert found.wrong[replaced].mean() > found.wrong[~replaced].mean()
        assert ((found.wrong >= 0) & (found.wrong <= 1)).all()


def test_the_likelihood_is_that_of_its_definition() -> None:
    """Predictions as they should be: what is left to fit is ε, by another optimiser."""
    p, labels, _ = drawn(7, wrong=0.08)
    of_label = p[np.arange(M), labels]

    def loss(share: NDArray[np.float64]) -> float:
        return -float(np.log((1 - share) * of_label + share / K).sum())

    best = minimize(loss, 0.1, bounds=[(0, 0.5)])
    found = check_trusted(np.log(p), labels)
    assert found.share == pytest.approx(float(best.x[0]), abs=0.025)
    expected = found.share / K / ((1 - found.share) * of_label + found.share / K)
    assert np.corrcoef(found.wrong, expected)[0, 1] > 0.9


def test_evidence_from_a_part_is_held_against_that_part() -> None:
    """Of many samples only some are looked at, and the others bring no evidence."""
    p, labels, replaced = drawn(9, m=50_000, wrong=0.05)
    found = check_trusted(seen(p, power=0.4), labels)
    assert found.samples == 5_000
    assert found.enough
    assert ((found.wrong > 0.5) & replaced).sum() > 0.75 * replaced.sum()
