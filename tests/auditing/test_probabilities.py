import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import diw
from diw.errors import DIWWarning, UsageError
from diw.metrics import auroc
from tests.auditing.made import make, some


def test_wrong_labels_are_found_and_counted() -> None:
    p, given, right = make()
    wrong = given != right
    found = diw.audit(probabilities=p, given=given, verified=some(right))
    assert found.wrong.low <= wrong.mean() <= found.wrong.high
    assert found.wrong.low < found.wrong.value < found.wrong.high
    assert auroc(found.score, wrong) > 0.95
    assert wrong[found.suspected].mean() > 0.85
    assert found.count == len(found.suspects) == pytest.approx(wrong.sum(), rel=0.2)
    assert (found.suggested[wrong & found.suspected] == right[wrong & found.suspected]).mean() > 0.9
    assert set(found.order.tolist()).isdisjoint(some(right))  # nobody need look at them again
    assert len(found.doubtful) == 0
    value, low, high = found.wrong_rows
    assert (low, value, high) == tuple(
        round(600 * share) for share in (found.wrong.low, found.wrong.value, found.wrong.high)
    )
    pairs = found.as_json()["pairs"]
    assert {(pair["right"], pair["given"]) for pair in pairs} == {
        ("0", "1"),
        ("1", "2"),
        ("2", "0"),
    }


def test_a_suspect_is_more_probably_of_another_class() -> None:
    p, given, right = make()
    found = diw.audit(probabilities=p, given=given, verified=some(right))
    ranked = found.order
    assert (found.score[ranked] == 1 - found.weight[ranked]).all()
    expected = (found.weight < 0.5) & (found.probability > found.weight)
    assert (found.suspected[ranked] == expected[ranked]).all()
    assert (np.diff(found.score[ranked]) <= 0).all()


def test_without_verified_rows_predictions_are_taken_at_face_value() -> None:
    p, given, _ = make()
    found = diw.audit(probabilities=p, given=given)
    assert found.wrong is None
    assert found.wrong_rows is None
    assert found.score == pytest.approx(1 - p[np.arange(len(p)), given], abs=1e-3)
    assert "No row is verified" in found.notes[0]


def test_no_wrong_and_all_wrong_labels_are_answers() -> None:
    p, _, right = make(wrong=0.0)
    found = diw.audit(probabilities=p, given=right, verified=some(right))
    assert found.wrong.value == found.wrong.low == 0
    assert 0 < found.wrong.high < 0.06
    found = diw.audit(probabilities=p, given=(right + 1) % 3, verified=some(right))
    assert found.wrong.value == found.wrong.high == 1
    assert found.wrong.low > 0.94


@settings(max_examples=5, deadline=None)
@drawn(seed=st.integers(0, 1000))
def test_names_and_the_order_of_classes_do_not_matter(seed: int) -> None:
    p, given, right = make(120, seed=seed)
    names, verified = np.array(["cat", "ant", "bee"]), some(right, 30)
    found = diw.audit(probabilities=p, given=given, verified=verified)
    words = {row: names[label] for row, label in verified.items()}
    order = np.argsort(names)  # columns in the order of the sorted labels, as scikit-learn has them
    named = diw.audit(probabilities=p[:, order], given=names[given], verified=words)
    assert named.score == pytest.approx(found.score, abs=1e-4)
    assert named.wrong.value == pytest.approx(found.wrong.value, abs=1e-4)
    assert [named.classes[k] for k in named.suggested] == [names[k] for k in found.suggested]


def test_a_data_frame_names_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    p, given, right = make(100)
    frame = pandas.DataFrame(p, columns=["z", "y", "x"])
    labels = pandas.Series(np.array(["z", "y", "x"])[given])
    found = diw.audit(probabilities=frame, given=labels, verified=some(right, 20) and {0: "z"})
    assert found.classes == ("z", "y", "x")
    assert (found.labels == given).all()


def test_probabilities_of_rows_that_were_learned_are_suspected() -> None:
    _, given, _ = make()
    with pytest.warns(DIWWarning, match=r"100.0% of the given labels .* cross_val_predict"):
        diw.audit(probabilities=0.9 * np.eye(3)[given] + 0.1 / 3, given=given)


def test_doubtful_verified_labels_are_listed() -> None:
    p, given, right = make(2000, 0.2)
    verified = some(right, 400)
    mistaken = list(verified)[:40]
    said = {row: (label + 1) % 3 if row in mistaken else label for row, label in verified.items()}
    found = diw.audit(probabilities=p, given=given, verified=said)
    assert np.isin(found.doubtful, mistaken).mean() > 0.8


P, Y = np.full((4, 2), 0.5), [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"probabilities": P}, "given: give the label of each row"),
        ({"probabilities": P, "given": [0, 1]}, "probabilities: expected a row per label"),
        ({"probabilities": P, "given": [0, 1, None, 1]}, "given: row 2 has no label"),
        ({"probabilities": P, "given": [0.5, 1, np.nan, 1]}, "given: row 2 has no label"),
        ({"probabilities": P, "given": ["a", 1, "a", 1]}, "given: row 1 is 1 and row 0 'a'"),
        ({"probabilities": P, "given": np.eye(4)}, "several labels per row are not supported"),
        ({"probabilities": P, "given": [0, 0, 0, 0]}, "given: all labels are '0'"),
        ({"probabilities": P, "given": [0, 1, 2, 0]}, "given: row 2: '2' is none of the 2 columns"),
        ({"probabilities": P, "given": list("abca")}, "3 different labels; name the columns"),
        ({"probabilities": P * 1.2, "given": Y}, r"row 0 \(0.6, 0.6, …\) is not one in all"),
        ({"probabilities": np.log(P), "given": Y}, "is negative: are these logarithms"),
        ({"probabilities": P * [1, np.nan], "given": Y}, "is NaN or infinite"),
        ({"probabilities": [["a"] * 2] * 4, "given": Y}, "probabilities: expected numbers"),
        ({"probabilities": P, "given": Y, "classes": ["a"]}, "classes: expected the names of 2"),
        ({"verified": {4: 0}}, "verified: row 4 is not in the data, which have 4 rows"),
        ({"verified": [0, 1]}, "verified: expected 4 labels, one a row with NaN or None"),
        ({"verified": {0: 7}}, "verified: row 0: no row is given as 7; is it 1"),
        ({"verified": [True, False, True, True]}, "verified: holds truth values, as a mask does"),
        ({"verified": {0: "a"}}, "row 0: the label 'a' is a word, but the given labels are num"),
        ({"given": list("abab"), "verified": {0: 1}}, "the label 1 is a number, but the given"),
        ({"trusted": [True] * 4}, "trusted: is for a history"),
        ({"losses": [[1.0] * 4], "labels": Y, "verified": {0: 1}}, "verified: is for probab"),
    ],
)
def test_wrong_arguments_are_named(arguments, words: str) -> None:
    if "probabilities" not in arguments and "losses" not in arguments:
        arguments = {"probabilities": P, "given": Y, **arguments}
    with pytest.raises(UsageError, match=words):
        diw.audit(**arguments)


def test_labels_that_are_truth_values_are_labels() -> None:
    p = np.array([[0.9, 0.1], [0.2, 0.8]] * 20)
    given = np.array([False, True] * 20)
    found = diw.audit(probabilities=p, given=given, verified=dict(enumerate(given[:30])))
    assert found.wrong is not None
    assert found.wrong.low == 0


def test_the_nearest_class_is_suggested() -> None:
    with pytest.raises(UsageError, match=r"no row is given as 'catt'; is it 'cat'\?"):
        diw.audit(probabilities=P, given=["cat", "dog"] * 2, verified={0: "catt"})
    with pytest.raises(UsageError, match="80 different values in 100 rows are a quantity"):
        prices = np.append(np.arange(80), np.zeros(20))
        diw.audit(probabilities=np.full((100, 2), 0.5), given=prices)
