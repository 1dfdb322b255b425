"""`auroc` against its definition (every pair counted) and a second implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.diagnostics import auroc

samples = st.lists(
    st.tuples(st.integers(-3, 3).map(float), st.booleans()), min_size=2, max_size=40
).filter(lambda pairs: len({positive for _, positive in pairs}) == 2)


@given(samples)
def test_counts_every_pair_and_ties_half(pairs: list[tuple[float, bool]]) -> None:
    high = [score for score, positive in pairs if positive]
    low = [score for score, positive in pairs if not positive]
    wins = sum((h > n) + 0.5 * (h == n) for h in high for n in low)
    assert auroc(*zip(*pairs, strict=True)) == pytest.approx(wins / (len(high) * len(low)))


def test_agrees_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    positive = rng.random(5000) < 0.6
    scores = (rng.normal(size=5000) + positive).astype(np.float16)
    assert auroc(scores, positive) == pytest.approx(metrics.roc_auc_score(positive, scores))


def test_turning_the_scores_round_turns_the_area_round() -> None:
    scores, positive = [0.1, 0.4, 0.4, 0.9], [False, True, False, True]
    assert auroc(scores, positive) + auroc(-np.array(scores), positive) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "positive", "message"),
    [
        ([1.0, 2.0], [True, True], "at least one positive and one negative"),
        ([1.0, np.nan], [True, False], "must be finite"),
        ([1.0], [True, False], "two vectors of one length"),
    ],
)
def test_refuses_what_has_no_area(scores: list[float], positive: list[bool], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        auroc(scores, positive)
