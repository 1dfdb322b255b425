import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diw.cli.evaluate import class_table, confusion_table
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


def test_short_names_head_the_columns_and_long_ones_are_numbered() -> None:
    table = confusion_table(Scores(("cat", "dog"), np.array([[3, 1], [0, 2]])))
    assert [column.title for column in table.columns] == ["true class", "cat", "dog"]
    assert [cell.text for cell in table.rows[1]] == ["dog", "·", "2"]
    long = confusion_table(Scores(("x" * 40, "y" * 40), np.eye(2, dtype=np.int64)))
    assert [column.title for column in long.columns] == ["true class", "0", "1"]
    assert long.rows[0][0].text == f"0 {'x' * 40}"


def test_the_most_frequent_confusions_come_first() -> None:
    confusion = np.diag(np.full(25, 9))
    confusion[3, 7], confusion[20, 1] = 2, 5
    table = confusion_table(Scores(tuple(map(str, range(25))), confusion))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["20", "1", "5"],
        ["3", "7", "2"],
    ]


def test_a_class_without_rows_is_a_dash() -> None:
    table = class_table(Scores(("a", "b"), np.array([[1, 1], [0, 0]])))
    assert [cell.text for cell in table.rows[0]] == ["a", "2", "50.00"]
    assert [cell.text for cell in table.rows[1]] == ["b", "0", "–"]
