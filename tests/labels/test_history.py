import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import diw
from diw.errors import UsageError
from diw.labels.history import (
    loss_scores,
    mean_weights,
    suggest,
    suspected,
    weight_scores,
    with_opinion,
)


def test_the_score_is_what_its_equation_says() -> None:
    losses = np.array([[1.0, 2.0], *[[0.0, 1.0]] * 3]) / 0.3
    right = [3 / 4 + np.exp(-1) / 4, (3 * np.exp(-1) + np.exp(-2)) / 4]
    assert loss_scores(losses) == pytest.approx(1 - np.array(right))
    opinion = with_opinion(np.array([0.5, 0.5]), np.array([1.0, 0.1]), 0.2)
    assert opinion == pytest.approx([0.4, 0.4 + 0.2 * 0.9])


@given(arrays(np.float64, (6, 5), elements=st.floats(0, 50)), st.permutations(range(5)))
def test_scores_are_between_zero_and_one_and_follow_their_samples(losses, order) -> None:
    scores = loss_scores(losses)
    assert ((scores >= 0) & (scores < 1)).all()
    assert np.array_equal(loss_scores(losses[:, order]), scores[order])
    assert (loss_scores(losses + 1) > scores).all()


def test_epochs_that_did_not_see_a_sample_do_not_count() -> None:
    losses = np.array([[1.0, 2.0], [np.nan, 2.0], [1.0, np.nan]])
    assert loss_scores(losses) == pytest.approx(1 - np.exp([-0.3, -0.6]))


def test_samples_that_were_never_seen_come_last() -> None:
    losses = np.array([[np.nan, 1.0, np.nan, 0.0], [np.nan, 2.0, 3.0, 0.0]])
    assert np.argsort(loss_scores(losses)).tolist() == [0, 3, 1, 2]
    found = diw.audit(losses=losses, labels=[0, 1, 0, 1])
    assert found.order.tolist() == [2, 1, 3, 0]
    weights = [[np.nan, 0.1, 1.0], [np.nan, 0.2, 1.8]]
    assert diw.audit(weights=weights, labels=[0, 1, 0]).order.tolist() == [1, 2, 0]
    assert weight_scores(weights)[0] == 0


def test_as_many_are_suspects_as_labels_are_wrong() -> None:
    scores, ranked = np.array([0.9, 0.2, 0.6, 0.1, 0.3]), np.array([0, 1, 1, 1, 1], bool)
    assert suspected(scores).tolist() == [True, False, True, False, False]
    assert suspected(scores, share=0.6).tolist() == [True, False, True, False, True]
    assert (suspected(scores, ranked, 0.5) & ranked).tolist() == [False, False, True, False, True]
    assert not suspected(scores, share=0.0).any()
    assert suspected(scores, share=np.nan).sum() == 2


def test_mean_weights_leave_out_epochs_of_equal_weights() -> None:
    weights = np.array([[1.0, 1.0], [0.5, 1.5], [0.0, 2.0]])
    assert mean_weights(weights).tolist() == [0.25, 1.75]
    assert mean_weights(np.ones((3, 2))).tolist() == [1, 1]
    low, high = weight_scores(weights)
    assert low > high


def test_the_suggested_label_is_another_one() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    labels, probability = suggest(p, np.array([0, 1]))
    assert labels.tolist() == [1, 2]
    assert probability == pytest.approx([0.2, 0.6])


def test_an_audit_of_arrays_ranks_and_leaves_trusted_samples_out() -> None:
    losses = np.tile([3.0, 0.1, 5.0, 1.0], (10, 1))
    p = np.array([[0.1, 0.9], [0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    found = diw.audit(
        losses=losses, labels=[0, 0, 0, 0], probabilities=p, trusted=[False, False, True, False]
    )
    assert found.order.tolist() == [0, 3, 1]
    assert list(found.suspects["row"]) == [0]
    assert [row["suggested"] for row in found.rows(3)] == ["1", "1", "1"]
    assert found.wrong is None
    assert found.quality() is None
    assert found.to_csv().splitlines()[1].startswith("0,,0,0,1,0.9,")


def test_names_serve_as_labels_and_weights_alone_are_enough() -> None:
    weights = np.array([[0.1, 1.5, 1.4]] * 3)
    found = diw.audit(weights=weights, labels=["cat", "dog", "cat"])
    assert found.suspects.iloc[0]["label"] == "cat"
    assert found.order[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"labels": [0]}, "losses: give a run"),
        ({"losses": [[1.0]]}, "labels: give the label"),
        ({"losses": [1.0], "labels": [0]}, "losses: expected one row per epoch"),
        ({"losses": [[1.0, 2.0]], "labels": [0]}, r"labels: expected one entry per sample \(2,\)"),
        ({"losses": [[1.0]], "labels": [3], "probabilities": [[1.0, 0.0]]}, "labels: expected"),
        ({"run": "model", "labels": [0]}, "labels: give a run or arrays"),
    ],
)
def test_wrong_arguments_are_named(arguments, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        diw.audit(**arguments)
