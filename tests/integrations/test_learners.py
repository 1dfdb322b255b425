"""Learners beside the network: on the same rows, and with the weights of a method."""

import numpy as np
import pytest

from diw.data.split import make_split
from diw.integrations.learners import is_small, learner_scores
from tests.problems import tiny_bundle

pytest.importorskip("sklearn")


def test_each_learner_on_each_choice_of_rows() -> None:
    split = make_split(tiny_bundle(), shift="symmetric:0.4", trusted=20, seed=0, selection=0.3)
    assert split.flipped is not None
    right = (~split.flipped).double().numpy()
    weights = {"truth": right, "none": np.full(len(right), np.nan)}
    scores = learner_scores(split, weights, 0, {"truth": split.flipped.numpy()})
    assert len(scores) == 12
    # A weight of zero is a row left out, a missing one counts as one.
    for name in ("logistic regression", "gradient boosting"):
        assert scores[f"{name}, weights of none"] == scores[f"{name}, all rows"]
        without = scores[f"{name}, without suspects of truth"]
        assert without == scores[f"{name}, weights of truth"]
        assert f"{name}, labels judged by verified rows" in scores
    weighted = scores["logistic regression, weights of truth"]
    assert weighted >= scores["logistic regression, all rows"]
    assert is_small(split)
