import numpy as np
import pytest

from diw.labels.crossfit import CrossFit, Embedding, second_opinion
from diw.metrics import auroc


def problem(kind: str, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two classes, on two sides of a plane or inside and outside a ball; 30% wrong labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    right = (x[:, 0] > 0 if kind == "plane" else (x**2).sum(1) > 2.4).astype(np.int64)
    wrong = rng.random(n) < 0.3
    labels = right ^ wrong
    return x, labels, wrong


def opinion(x: np.ndarray, labels: np.ndarray, history: np.ndarray) -> tuple[np.ndarray, float]:
    embedding, nobody = Embedding.fit(x, 0), np.zeros(len(x), bool)
    p, share = second_opinion(lambda rows: x[rows], embedding, labels, 2, history, nobody, 0)
    assert p.sum(1) == pytest.approx(1)
    return p[np.arange(len(x)), labels], share


@pytest.mark.parametrize("kind", ["plane", "ball"])
def test_it_finds_wrong_labels_by_itself(kind: str) -> None:
    x, labels, wrong = problem(kind)
    p, share = opinion(x, labels, np.zeros(len(labels)))
    assert share == (0.5 if kind == "plane" else 0.2)
    assert ((p > 0) & (p < 1)).all()
    assert auroc(-p, wrong) > 0.85


def test_a_good_history_makes_it_better() -> None:
    x, labels, wrong = problem("ball")
    alone, _ = opinion(x, labels, np.zeros(len(labels)))
    helped, _ = opinion(x, labels, np.where(wrong, 0.9, 0.1))
    assert auroc(-helped, wrong) > auroc(-alone, wrong)


def test_a_sample_has_no_part_in_its_own_opinion() -> None:
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(40, 4)), rng.integers(0, 3, 40)
    everything = slice(0, 40)

    def opinions(given: np.ndarray) -> np.ndarray:
        fit = CrossFit(40, 3, seed=0)
        fit.add(everything, features, given, np.ones(40))
        fit.solve(1e-2)
        return fit.predict(everything, features)

    changed = labels.copy()
    changed[7] = (labels[7] + 1) % 3
    before, after = opinions(labels), opinions(changed)
    assert before[7] == pytest.approx(after[7])
    assert not np.allclose(before, after)


def test_parts_give_what_the_whole_gives() -> None:
    rng = np.random.default_rng(2)
    features, labels, weights = rng.normal(size=(50, 3)), rng.integers(0, 2, 50), rng.random(50)
    whole, parts = CrossFit(50, 2, 0), CrossFit(50, 2, 0)
    whole.add(slice(0, 50), features, labels, weights)
    for rows in (slice(0, 20), slice(20, 50)):
        parts.add(rows, features[rows], labels[rows], weights[rows])
    for fit in (whole, parts):
        fit.solve(1e-2)
    late = slice(20, 50)
    assert parts.predict(late, features[late]) == pytest.approx(
        whole.predict(slice(0, 50), features)[20:]
    )


def test_units_of_columns_and_absurd_cells_do_not_matter() -> None:
    x, *_ = problem("plane")
    units = np.array([1e4, 1.0, 1e-6])
    shifted = x * units + np.array([1.7e9, 0.0, 0.0])
    shifted[0, 1] = 1e300
    fits = (Embedding.fit(v, 0, columns=True).components(v)[1:] for v in (x, shifted))
    own, other = (np.linalg.norm(z[:, None] - z[::20], axis=2) for z in fits)  # axes may turn
    assert other == pytest.approx(own, abs=0.05)
    assert np.isfinite(Embedding.fit(np.ones((9, 2)), 0, columns=True).components(x[:, :2])).all()
