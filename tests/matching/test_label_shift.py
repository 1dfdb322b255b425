"""Class shares of a target without labels, against their definitions, and what guards them."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from diw.errors import DIWWarning, UsageError
from diw.matching import LabelShift
from diw.matching.label_shift import by_moments, calibration, likeliest, softmax

CENTRES = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


def rows_of(labels, rng, move=0.0):
    return CENTRES[labels] + move + rng.normal(size=(len(labels), 2))


def drawn(seed=0, shares=(0.1, 0.3, 0.6), n=600, m=400, move=0.0):
    """Arguments of `fit` by a model of other rows, the rows themselves, and the target's labels."""
    rng = np.random.default_rng(seed)
    first, labels = rng.choice(3, n), rng.choice(3, n)
    right = rng.choice(3, m, p=shares)
    model = LogisticRegression().fit(rows_of(first, rng), first)
    rows, target = rows_of(labels, rng), rows_of(right, rng, move)
    given = (model.predict_proba(rows), labels, model.predict_proba(target))
    return given, {"rows": rows, "target_rows": target}, right


def test_the_shares_of_a_target_are_found_within_their_errors():
    inside = []
    for seed in range(40):
        given, rows, _ = drawn(seed)
        found = LabelShift(level=0).fit(*given, **rows)
        inside.append(np.abs(found.shares_ - [0.1, 0.3, 0.6]) <= 1.96 * found.errors_)
        assert found.shares_.sum() == pytest.approx(1)
        assert np.abs(found.moment_shares_ - found.shares_).max() <= 0.15
    assert 0.88 <= np.mean(inside) <= 0.99


def test_weights_go_by_class_and_turn_the_training_shares_into_the_targets():
    given, rows, _ = drawn()
    found = LabelShift().fit(*given, **rows)
    labels = given[1]
    assert found.status_ == "optimal"
    assert found.p_value_ > 0.05
    assert np.array_equal(found.weights_, found.class_weights_[labels])
    weighted = np.bincount(labels, found.weights_) / len(labels)
    assert weighted == pytest.approx(found.shares_)
    assert found.train_shares_ == pytest.approx(np.bincount(labels) / len(labels))


def test_posteriors_and_ratios_of_new_rows_follow_bayes():
    given, rows, right = drawn(m=4000)
    found = LabelShift().fit(*given, **rows)
    p = found.posterior(given[2])
    assert p.sum(1) == pytest.approx(1)
    # Σ_y q_y/p_y P(y|x) is the ratio, and the posterior's mean over the target is its shares.
    x = found._calibration
    plain = softmax(np.log(given[2]) * x[0] + x[1:])
    assert found.predict(given[2]) == pytest.approx(plain @ found.class_weights_)
    assert p == pytest.approx(plain * found.class_weights_ / found.predict(given[2])[:, None])
    assert p.mean(0) == pytest.approx(found.shares_, abs=1e-4)
    assert (p.argmax(1) == right).mean() > (given[2].argmax(1) == right).mean()


def test_a_calibration_makes_the_labels_likeliest():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 500)
    log_p = np.log(softmax(4 * (np.eye(3)[labels] + rng.normal(size=(500, 3)))))

    def loss(x):
        p = softmax(log_p * x[0] + np.append(x[1:], 0))
        return -np.log(p[np.arange(500), labels]).mean()

    x, pulls = calibration(log_p, labels)
    theirs = minimize(loss, [1.0, 0, 0], tol=1e-12)
    assert x[0] == pytest.approx(theirs.x[0], rel=1e-3)
    assert x[1:3] - x[3] == pytest.approx(theirs.x[1:], abs=1e-3)
    means = softmax(log_p * x[0] + x[1:]).mean(0)
    assert means == pytest.approx(np.bincount(labels) / 500, abs=1e-5)
    # A row that counts once more moves it as its pull says.
    more, _ = calibration(np.vstack([log_p, log_p[7]]), np.append(labels, labels[7]))
    assert more - x == pytest.approx(pulls[7], abs=0.05 * np.abs(pulls[7]).max())


def test_the_shares_have_the_largest_likelihood():
    rng = np.random.default_rng(1)
    ratio = rng.uniform(0.01, 2, (200, 3))
    times = rng.integers(0, 3, 200).astype(float)
    found = likeliest(ratio, times, np.full(3, 1 / 3))

    def loss(shares):
        return -(times * np.log(ratio @ shares)).sum()

    theirs = minimize(
        loss, np.full(3, 1 / 3), bounds=[(1e-9, 1)] * 3, tol=1e-12,
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
    )  # fmt: skip
    assert loss(found) <= theirs.fun + 1e-6
    assert found == pytest.approx(theirs.x, abs=1e-3)


def test_moments_solve_their_equation():
    rng = np.random.default_rng(2)
    labels = rng.choice(3, 300)
    P = softmax(2 * np.eye(3)[labels] + rng.normal(size=(300, 3)))
    means = np.stack([P[labels == c].mean(0) for c in range(3)])
    shares = np.array([0.5, 0.3, 0.2])
    assert by_moments(P, labels, np.ones(300), shares @ means) == pytest.approx(shares)


@pytest.mark.parametrize("move", [0.7, 3.0])
def test_other_inputs_within_a_class_are_said_and_get_no_weights(move):
    given, rows, _ = drawn(move=move)
    with pytest.warns(DIWWarning, match="LabelShift: more than the class shares differs"):
        found = LabelShift().fit(*given, **rows)
    assert found.p_value_ < 0.05
    assert (found.weights_ == 1).all()
    assert not np.allclose(found.class_weights_, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taken = LabelShift(level=0).fit(*given, **rows)
    assert np.array_equal(taken.weights_, taken.class_weights_[given[1]])


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_probabilities_that_say_nothing_of_the_classes_give_no_weights(spread):
    """Their bootstrap would call the shares certain: the likelihood is flat."""
    rng = np.random.default_rng(0)
    said = softmax(spread * rng.normal(size=(900, 3)))
    with pytest.warns(DIWWarning, match="do not tell the classes apart"):
        found = LabelShift().fit(said[:500], rng.choice(3, 500), said[500:])
    assert (found.weights_ == 1).all()


def test_a_class_that_would_be_dropped_is_said():
    given, rows, _ = drawn(shares=(0.5, 0.5, 0.0))
    with pytest.warns(DIWWarning, match="class 2 is all but absent"):
        assert (LabelShift().fit(*given, **rows).weights_ == 1).all()


def test_it_says_how_many_labels_would_tell_as_much():
    """As many counted labels have the same standard errors, by the multinomial law."""
    given, rows, _ = drawn()
    found = LabelShift().fit(*given, **rows)
    counted = np.sqrt(found.shares_ * (1 - found.shares_) / found.labels_worth_)
    assert np.linalg.norm(counted) == pytest.approx(np.linalg.norm(found.errors_))
    assert 20 < found.labels_worth_ < 400


def test_it_is_always_the_same_and_can_be_cloned():
    given, rows, _ = drawn()
    one, other = (clone(LabelShift(seed=3)).fit(*given, **rows) for _ in range(2))
    assert np.array_equal(one.errors_, other.errors_)
    assert one.p_value_ == other.p_value_
    assert repr(one) == "LabelShift(seed=3)"
    # Without the rows the probabilities are tested.
    assert LabelShift().fit(*given).p_value_ > 0.05


P, Y = np.full((30, 2), 0.5), np.repeat([0, 1], 15)
BAD = {
    "labels: class 1 has 0 training rows": (P, np.zeros(30), P),
    "labels: class 0 has 5 training rows": (P, np.repeat([0, 1], [5, 25]), P),
    "labels: must be whole numbers from 0 to 1": (P, Y + 1, P),
    "labels: needs shape (30,)": (P, Y[:20], P),
    "target: probabilities of 3 classes": (P, Y, np.full((4, 3), 1 / 3)),
    "target: row 1 is not probabilities": (P, Y, np.array([[0.5, 0.5], [0.9, 0.9]])),
    "probabilities: row 0 is not": (P * np.nan, Y, P),
    "probabilities: needs shape (n, classes)": (P[:, 0], Y, P),
}


@pytest.mark.parametrize("message", BAD)
def test_wrong_use_names_the_argument(message):
    with pytest.raises(UsageError) as error:
        LabelShift().fit(*BAD[message])
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_wrong_rows_and_levels_are_named():
    with pytest.raises(UsageError, match=r"^rows: needs 30 rows"):
        LabelShift().fit(P, Y, P, rows=P[:3], target_rows=P)
    with pytest.raises(UsageError, match=r"^level: must be at least 0 and below 1"):
        LabelShift(level=1.0).fit(P, Y, P)
