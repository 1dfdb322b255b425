import json

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from diw.errors import UsageError
from diw.labels import Coefficients, LabelModel, fit
from diw.labels.fitting import BIAS_PENALTY, PENALTIES, _Fit, log_ratios
from diw.labels.model import FLOOR
from diw.metrics import auroc
from tests.labels.made import made, with_


def posterior(model, evidence):
    return model.posterior(evidence.log_p, evidence.given, evidence.log_v)


def test_the_posterior_is_the_softmax_of_the_score_written_out():
    evidence, _ = made(n=60, m=20)
    model, k = fit(evidence), 3
    a, b, c, d = vars(model.coefficients).values()
    expected = np.empty((60, k))
    for i in range(60):
        v = np.log(np.exp(evidence.log_v[:, i].astype(float)) + FLOOR)
        v = (v - v.mean(1, keepdims=True)).mean(0)
        for y in range(k):
            expected[i, y] = (
                a * np.log(np.exp(evidence.log_p[i, y]) + FLOOR)
                + b * (y == evidence.given[i])
                + c * model.log_ratios[y, evidence.given[i]]
                + d * v[y]
                + model.biases[y]
            )
    assert np.allclose(posterior(model, evidence), softmax(expected, axis=1), atol=1e-6)


def test_coefficients_maximise_the_penalised_likelihood():
    evidence, _ = made(m=40)
    found = _Fit.of(evidence, 0)
    model = found.without(np.zeros(40, bool))

    def loss(t):
        P = softmax(found.features @ t[:4] + t[4:], axis=1)
        fitted = -np.log(P[np.arange(40), found.right]).sum()
        usual = np.array([*vars(Coefficients()).values()])
        far = np.array([*vars(PENALTIES).values()]) @ (t[:4] - usual) ** 2
        return fitted + far + BIAS_PENALTY * (t[4:] ** 2).sum()

    other = minimize(loss, np.zeros(7), method="BFGS").x
    own = np.append([*vars(model.coefficients).values()], model.biases)
    assert np.allclose(own, other, atol=2e-3)


@pytest.mark.parametrize("systematic", [False, True])
def test_wrong_labels_are_found_also_where_the_predictions_have_learned_them(systematic):
    evidence, right = made(systematic=systematic)
    model = fit(evidence)
    found, wrong = posterior(model, evidence), evidence.given != right
    unchecked = np.setdiff1d(np.arange(900), evidence.rows)
    score = 1 - found[np.arange(900), evidence.given]
    alone = -evidence.log_p[np.arange(900), evidence.given]
    assert auroc(score[unchecked], wrong[unchecked]) > (0.75 if systematic else 0.93)
    assert auroc(score[unchecked], wrong[unchecked]) > auroc(alone[unchecked], wrong[unchecked])
    assert model.share.low < wrong.mean() < model.share.high
    assert model.share.high - model.share.low < 0.2
    suspects = model.suspects(found, evidence.given)
    assert wrong[suspects].mean() > 0.6


def test_no_label_is_suspected_where_none_is_wrong():
    evidence, _ = made(rate=0.0)
    model = fit(evidence)
    assert model.suspects(posterior(model, evidence), evidence.given).mean() < 0.005
    assert model.share.value == model.share.low == 0
    assert model.share.high < 0.05


def test_all_wrong_is_an_answer():
    evidence, _ = made(rate=1.0)
    model = fit(evidence)
    assert model.share.value == model.share.high == 1
    assert model.suspects(posterior(model, evidence), evidence.given).mean() > 0.9


def test_a_suspect_has_a_more_probable_class_and_less_than_one_half():
    model = fit(made()[0])
    found = np.array([[0.4, 0.35, 0.25], [0.4, 0.45, 0.15], [0.5, 0.5, 0.0]])
    assert model.suspects(found, np.array([0, 0, 0])).tolist() == [False, True, False]


@settings(max_examples=10, deadline=None)
@for_all(st.permutations(range(3)))
def test_names_of_classes_do_not_matter(order):
    evidence, _ = made(n=200, m=40)
    place = np.argsort(order)
    other = with_(
        evidence,
        log_p=evidence.log_p[:, order],
        log_v=evidence.log_v[:, :, order],
        given=place[evidence.given],
        trusted=place[evidence.trusted],
    )
    model, renamed = fit(evidence), fit(other)
    assert np.allclose(posterior(renamed, other), posterior(model, evidence)[:, order], atol=1e-3)
    assert np.allclose(renamed.share.as_list(), model.share.as_list(), atol=1e-3)


def test_rows_may_come_in_any_order():
    evidence, _ = made(n=300, m=50)
    order = np.random.default_rng(1).permutation(50)
    other = with_(
        evidence,
        rows=evidence.rows[order],
        trusted=evidence.trusted[order],
        fold=evidence.fold[order],
    )
    assert np.allclose(posterior(fit(other), other), posterior(fit(evidence), evidence), atol=1e-3)


def test_a_class_that_nobody_verified_is_named_and_not_suspected_more():
    evidence, right = made(n=1500, m=200, rate=0.1)
    kept = evidence.trusted != 2
    other = with_(
        evidence,
        rows=evidence.rows[kept],
        trusted=evidence.trusted[kept],
        fold=evidence.fold[kept],
        log_v=np.where(np.arange(3) == 2, np.nan, evidence.log_v),
    )
    model = fit(other)
    assert model.unseen.tolist() == [2]
    assert any("Nobody verified a row of class 2" in note for note in model.notes)
    suspected = model.suspects(posterior(model, other), other.given)
    fine = right == other.given
    assert suspected[fine & (right == 2)].mean() <= suspected[fine & (right != 2)].mean() + 0.01


def test_a_hundred_classes_with_thirty_verified_rows():
    rng = np.random.default_rng(0)
    right = rng.integers(0, 100, 2000)
    given = np.where(rng.random(2000) < 0.3, rng.integers(0, 100, 2000), right)
    log_p = np.full((2000, 100), np.log(0.2 / 99))
    log_p[np.arange(2000), right] = np.log(0.8)
    evidence = with_(made()[0], log_p=log_p, given=given, rows=np.arange(30), trusted=right[:30],
                     fold=None, log_v=None)  # fmt: skip
    model = fit(evidence)
    suspected = model.suspects(posterior(model, evidence), given)
    assert len(model.unseen) > 70
    assert suspected[given == right].mean() < 0.02
    assert suspected[given != right].mean() > 0.7


def test_picked_rows_train_the_model_and_do_not_estimate_the_share():
    evidence, _ = made()
    picked = evidence.given[evidence.rows] != evidence.trusted
    some = with_(evidence, drawn=np.where(picked, 0.0, 0.1))
    model = fit(some)
    assert model.coefficients == fit(evidence).coefficients
    assert model.share.value == picked.sum() / 900  # all others are estimated to be right
    assert any("picked" in note for note in model.notes)
    assert fit(with_(evidence, drawn=np.zeros(90))).share is None


def test_shares_by_class_and_by_pair_add_up():
    evidence, right = made(m=300)
    model = fit(evidence)
    assert set(model.pairs) == {(0, 1), (1, 2), (2, 0)}
    for (i, j), share in model.pairs.items():
        of_class = evidence.given == j
        assert share.low < (right[of_class] == i).mean() < share.high
        assert share.value == pytest.approx(model.by_class[j].value, abs=0.03)


def test_without_pairs_transitions_come_from_trusted_samples():
    evidence, right = made()
    others = slice(0, 300)
    without = with_(evidence, rows=None, fold=None, log_v=None,
                    trusted=right[others], trusted_log_p=evidence.log_p[others])  # fmt: skip
    model = fit(without)
    assert "verifying rows of the training data would tell more" in model.notes[0]
    assert model.share.low < 0.3 < model.share.high
    assert auroc(
        -model.posterior(without.log_p, without.given)[np.arange(900), without.given],
        without.given != right,
    ) > 0.9  # fmt: skip


def test_without_anything_predictions_are_taken_at_face_value():
    evidence, _ = made()
    bare = with_(evidence, rows=None, trusted=None, fold=None, log_v=None)
    model = fit(bare)
    assert model.share is None
    assert np.allclose(model.posterior(bare.log_p, bare.given), np.exp(bare.log_p), atol=1e-3)


def test_errors_among_verified_labels_are_doubted_and_only_those():
    evidence, _ = made(n=3000, m=600, rate=0.2)
    assert fit(evidence).doubtful.max() == 0
    wrong = np.zeros(600, bool)
    wrong[:60] = True
    trusted = np.where(wrong, (evidence.trusted + 2) % 3, evidence.trusted)
    doubtful = fit(with_(evidence, trusted=trusted)).doubtful
    assert doubtful[wrong].mean() > 10 * doubtful[~wrong].mean() > 0


def test_transitions_are_those_of_the_data():
    evidence, _ = made(m=200)
    expected = 0.7 * np.eye(3) + 0.3 * np.roll(np.eye(3), 1, axis=1)
    assert np.allclose(fit(evidence).transitions, expected, atol=0.08)


def test_log_ratios_shrink_to_one_rate_of_errors():
    found = log_ratios(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 1]), 3)
    rate = 3 / 8
    row = (np.array([2, 2, 0]) + 2 * np.array([1 - rate, rate / 2, rate / 2])) / 6
    assert np.allclose(found[0], np.log(row / [1 - rate, rate / 2, rate / 2]))
    assert np.allclose(found[2], 0)


def test_a_model_is_a_json_file():
    evidence, _ = made()
    model = fit(evidence)
    again = LabelModel.from_json(model.to_json())
    assert np.array_equal(posterior(again, evidence), posterior(model, evidence))
    assert again.to_json() == model.to_json()
    assert (again.share, again.by_class, again.pairs) == (model.share, model.by_class, model.pairs)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"label_model": 1}', '{"label_model": 2}'])
def test_other_files_are_refused_in_one_line(text):
    with pytest.raises(UsageError, match=r"^label model: .*"):
        LabelModel.from_json(text)


def test_a_page_can_show_the_coefficients_in_words():
    assert "believe the model 0.9, the given label 1.4" in str(Coefficients(0.9, 1.4))
    assert json.loads(fit(made()[0]).to_json())["notes"][0].startswith("Your verified rows say")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": np.arange(90) + 850}, "rows: row 900 is not in the data, which have 900"),
        ({"rows": np.r_[np.arange(89), 3]}, "rows: row 3 is verified twice"),
        ({"trusted": np.full(90, 3)}, "trusted: classes are 0 to 2, and one is 3"),
        ({"given": np.zeros(5, int)}, "given: expected 900 class numbers"),
        ({"log_p": np.zeros((900, 1))}, "log_p: expected .rows, at least 2 classes."),
        ({"log_p": np.full((900, 3), np.nan)}, "log_p: row 0, column 0 is NaN"),
        ({"rows": None}, "trusted: needs rows"),
        ({"trusted": None}, "trusted: give the right labels"),
        ({"drawn": np.full(90, 2.0)}, "drawn: expected 90 probabilities"),
        ({"fold": None}, "fold: give it together with log_v"),
        ({"fold": np.full(90, 7)}, "fold: classes are 0 to 4"),
        ({"log_v": np.zeros((5, 900, 4))}, "log_v: expected .folds, 900, 3."),
    ],
)
def test_evidence_that_cannot_be_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        with_(made()[0], **changes)


def test_predictions_for_seen_rows_are_noticed():
    evidence, _ = made()
    seen = np.log(np.eye(3)[evidence.given] * 0.9 + 0.03)
    assert with_(evidence, log_p=seen).looks_in_sample
    assert not evidence.looks_in_sample
