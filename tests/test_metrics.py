import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.metrics import (
    auroc,
    average_precision,
    effective_sample_size,
    mean_absolute_error,
    root_mean_square_error,
)
from diw.shifts import parse_shift

finite = st.floats(-100, 100)


def class_prior_truth(ratio: float) -> np.ndarray:
    """The true weights of the paper's class-prior shift: 4,000 of each of 8 majority classes."""
    labels = np.repeat(np.arange(10), 6000)
    shifted = parse_shift(f"prior:0.2,{ratio:g},4000").apply(
        labels, 10, 0, protected=np.zeros(len(labels), bool)
    )
    assert shifted.true_weights is not None
    return shifted.true_weights


def test_true_weights_are_the_papers() -> None:
    mu, rho = 0.2, 100
    true = class_prior_truth(rho)
    assert set(true.round(9)) == {round(1 - mu + mu / rho, 9), round(mu + rho - mu * rho, 9)}


@pytest.mark.parametrize(("ratio", "mae", "rmse"), [(100, 0.395, 3.96), (200, 0.398, 5.63)])
def test_the_distance_of_uniform_weights_from_the_truth(ratio, mae, rmse) -> None:
    # By hand: a share s = 2/(2 + 8ρ) of minority samples, weights 0.8 + 0.2/ρ and 0.2 + 0.8ρ.
    true = class_prior_truth(ratio)
    ones = np.ones(len(true))
    assert mean_absolute_error(ones, true) == pytest.approx(mae, abs=5e-4)
    assert root_mean_square_error(ones, true) == pytest.approx(rmse, abs=5e-3)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=20))
def test_the_squares_weigh_large_misses_more(pairs) -> None:
    weights, true = np.array(pairs).T
    mae, rmse = mean_absolute_error(weights, true), root_mean_square_error(weights, true)
    assert 0 <= mae <= rmse * (1 + 1e-12) + 1e-150
    assert mean_absolute_error(true, true) == root_mean_square_error(true, true) == 0


@pytest.mark.parametrize("function", [mean_absolute_error, root_mean_square_error])
@pytest.mark.parametrize("truth", [[1.0], [], [[1.0, 1.0]]])
def test_shapes_must_agree(function, truth) -> None:
    with pytest.raises(ValueError, match="weights, truth: expected two vectors of the same length"):
        function([1.0, 2.0], truth)


samples = st.lists(
    st.tuples(st.integers(-3, 3).map(float), st.booleans()), min_size=2, max_size=40
).filter(lambda pairs: len({positive for _, positive in pairs}) == 2)


@given(samples)
def test_auroc_counts_every_pair_and_ties_half(pairs: list[tuple[float, bool]]) -> None:
    high = [score for score, positive in pairs if positive]
    low = [score for score, positive in pairs if not positive]
    wins = sum((h > n) + 0.5 * (h == n) for h in high for n in low)
    assert auroc(*zip(*pairs, strict=True)) == pytest.approx(wins / (len(high) * len(low)))


def test_auroc_agrees_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    positive = rng.random(5000) < 0.6
    scores = (rng.normal(size=5000) + positive).astype(np.float16)
    assert auroc(scores, positive) == pytest.approx(metrics.roc_auc_score(positive, scores))


def test_negated_scores_have_the_complementary_auroc() -> None:
    scores, positive = [0.1, 0.4, 0.4, 0.9], [False, True, False, True]
    assert auroc(scores, positive) + auroc(-np.array(scores), positive) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "positive", "message"),
    [
        ([1.0, 2.0], [True, True], "at least one positive and one negative"),
        ([1.0, np.nan], [True, False], "must be finite"),
        ([1.0], [True, False], "two vectors of the same length"),
    ],
)
def test_auroc_refuses_what_has_no_area(
    scores: list[float], positive: list[bool], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        auroc(scores, positive)


def test_effective_sample_size_of_known_weights() -> None:
    assert effective_sample_size([2.0, 2.0, 2.0]) == 1.0
    assert effective_sample_size([0.0, 5.0, 0.0, 0.0]) == 0.25
    assert effective_sample_size([0.0, 0.0]) == 0.0
    assert effective_sample_size([1.0, 3.0]) == pytest.approx(16 / 20)
    for wrong in ([], [[1.0]]):
        with pytest.raises(ValueError, match="non-empty vector"):
            effective_sample_size(wrong)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_average_precision_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    from sklearn.metrics import average_precision_score

    scores, positive = (np.array(column) for column in zip(*pairs, strict=True))
    if not positive.any():
        with pytest.raises(ValueError, match="positive"):
            average_precision(scores, positive)
        return
    expected = average_precision_score(positive, scores)
    assert average_precision(scores, positive) == pytest.approx(expected)
