import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diw.training import evaluate
from diw.training.scores import Scores, calibration_error
from tests.problems import tiny_split


def test_evaluate_counts_every_sample_and_balances_classes() -> None:
    split = tiny_split()

    class Always(torch.nn.Module):
        def forward(self, x):
            return torch.eye(3)[0].expand(len(x), 3)

    scores = evaluate(Always(), split.test)
    row = scores.as_row()
    share = (split.test.targets == 0).double().mean().item()
    assert row["test_accuracy"] == pytest.approx(share)
    assert scores.confusion.tolist() == [[n, 0, 0] for n in split.test.class_counts.tolist()]
    assert row["balanced_accuracy"] == pytest.approx(1 / 3)
    confidence = torch.eye(3)[0].softmax(0)[0].item()
    assert row["calibration_error"] == pytest.approx(abs(share - confidence))


def test_calibration_error_is_the_mean_gap_of_the_bins() -> None:
    # 0.95 and 0.97 share the last bin (half right), 0.5 is alone in the eighth and right.
    error = calibration_error(torch.tensor([0.95, 0.97, 0.5]), torch.tensor([True, False, True]))
    assert error == pytest.approx((abs(1 - 0.95 - 0.97) + 0.5) / 3)
    assert calibration_error(torch.ones(4), torch.ones(4, dtype=torch.bool)) == 0
    assert calibration_error(torch.zeros(4), torch.ones(4, dtype=torch.bool)) == 1


counts = arrays.arrays(np.int64, (4, 4), elements=st.integers(0, 50)).filter(lambda c: c.any())


@given(counts)
def test_accuracies_are_those_of_the_listed_rows(confusion) -> None:
    scores = Scores(("a", "b", "c", "d"), confusion)
    pairs = [(i, j) for i in range(4) for j in range(4) for _ in range(confusion[i, j])]
    true, predicted = np.array(pairs).T
    assert scores.rows == len(pairs)
    assert scores.accuracy == pytest.approx(np.mean(true == predicted))
    recalls = [np.mean(predicted[true == i] == i) for i in range(4) if (true == i).any()]
    assert scores.balanced_accuracy == pytest.approx(np.mean(recalls))
    assert json.loads(json.dumps(scores.as_json()))["confusion_matrix"] == confusion.tolist()


def test_no_rows_are_no_score() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        Scores(("a", "b"), np.zeros((2, 2), np.int64))
