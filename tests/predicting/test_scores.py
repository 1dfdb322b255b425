import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diw.predicting import Scores

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
