import numpy as np
import pytest

pytest.importorskip("sklearn")

import pandas as pd
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from diw import TrustedClassifier
from diw.errors import DIWWarning, UsageError
from diw.integrations.vectors import as_vectors, probabilities

N, CHECKED = 400, 70


def made(seed=0, k=3, rate=0.35):
    """X, given labels, right ones, and verified ones with NaN; errors beyond a threshold."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, k, N)
    X = rng.normal(size=(N, 5)) + 2 * np.eye(5)[right]
    given = np.where(X[:, 4] > np.quantile(X[:, 4], 1 - rate), (right + 1) % k, right)
    verified = np.full(N, np.nan)
    rows = rng.permutation(N)[:CHECKED]
    verified[rows] = right[rows]
    return X, given, right, verified


X, GIVEN, RIGHT, VERIFIED = made()
LOGISTIC = LogisticRegression()


def trained(estimator=LOGISTIC, y=GIVEN, verified=VERIFIED, data=X, groups=None, **options):
    model = TrustedClassifier(estimator, random_state=0, **options)
    return model.fit(data, y, verified=verified, groups=groups)


@pytest.mark.filterwarnings("ignore::diw.errors.DIWWarning")
def test_the_checks_of_scikit_learn():
    results = check_estimator(TrustedClassifier(LOGISTIC), on_skip=None)
    assert {one["status"] for one in results} <= {"passed", "skipped"}


@pytest.mark.parametrize("correct", ["auto", True, False])
def test_it_is_better_than_given_labels_and_than_the_verified_rows_alone(correct):
    model = trained(correct=correct)
    checked = ~np.isnan(VERIFIED)
    assert model.score(X, RIGHT) > LOGISTIC.fit(X, GIVEN).score(X, RIGHT) + 0.03
    assert model.score(X, RIGHT) > LOGISTIC.fit(X[checked], RIGHT[checked]).score(X, RIGHT) - 0.02
    assert model.correct_ == {"auto": model.correct_, True: 1.0, False: 0.0}[correct]


def test_what_it_says_of_labels():
    model = trained()
    wrong = RIGHT != GIVEN
    assert wrong[model.suspects_].mean() > 0.75
    assert np.isnan(VERIFIED[model.suspects_]).all()
    assert (np.diff(model.weights_[model.suspects_]) >= 0).all()
    assert model.label_model_.share.low < wrong.mean() < model.label_model_.share.high
    checked = ~np.isnan(VERIFIED)
    assert np.array_equal(model.weights_[checked], (RIGHT == GIVEN)[checked].astype(float))
    assert np.allclose(model.posterior_.sum(1), 1)


def test_where_no_label_is_wrong_nothing_is_lost():
    digits, y = load_digits(return_X_y=True)
    digits, y = digits / 16, y
    verified = np.where(np.arange(len(y)) % 12 == 0, y, np.nan)
    half = np.arange(len(y)) % 2 == 0
    plain = LogisticRegression(max_iter=300)
    model = trained(plain, y[half], verified[half], digits[half])
    assert (
        model.score(digits[~half], y[~half])
        > plain.fit(digits[half], y[half]).score(digits[~half], y[~half]) - 0.01
    )
    assert len(model.suspects_) < 5


def test_forms_of_verified_labels_are_the_same():
    expected = trained().posterior_
    checked = np.flatnonzero(~np.isnan(VERIFIED))
    words = np.array(["a", "b", "c"])
    as_words = np.full(N, None, object)
    as_words[checked] = words[RIGHT[checked]]
    forms = [
        (GIVEN, {int(row): int(RIGHT[row]) for row in checked}),
        (GIVEN, np.ma.masked_invalid(VERIFIED)),
        (GIVEN, pd.Series(VERIFIED).astype("Int64")),
        (GIVEN, list(VERIFIED)),
        (words[GIVEN], as_words),
        (pd.Series(words[GIVEN]), pd.Series(as_words)),
        (GIVEN.astype(float), VERIFIED),
    ]
    for y, verified in forms:
        assert np.array_equal(trained(y=y, verified=verified).posterior_, expected)


def test_without_verified_rows_it_is_the_plain_learner_with_a_warning():
    for verified in (None, np.full(N, np.nan), {}):
        with pytest.warns(DIWWarning, match="^verified: no row is verified"):
            model = trained(verified=verified)
        assert np.array_equal(model.predict_proba(X), LOGISTIC.fit(X, GIVEN).predict_proba(X))
        assert not len(model.suspects_)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(9), LinearSVC(), Perceptron(), SGDClassifier(random_state=0),
        GaussianNB(), HistGradientBoostingClassifier(max_iter=5),
        make_pipeline(StandardScaler(), LOGISTIC),
    ],
    ids=lambda one: type(one).__name__,
)  # fmt: skip
def test_any_learner(estimator):
    model = trained(estimator)
    assert model.score(X, RIGHT) > clone(estimator).fit(X, GIVEN).score(X, RIGHT)
    assert hasattr(model, "predict_proba") == hasattr(estimator, "predict_proba")


def test_a_learner_without_weights_is_trained_on_the_most_probable_classes():
    model = trained(KNeighborsClassifier(9))
    assert model.correct_ == 1.0
    expected = KNeighborsClassifier(9).fit(X, model.posterior_.argmax(1))
    assert np.array_equal(model.predict(X), expected.predict(X))


def test_sparse_rows_texts_and_tables():
    dense = trained(LogisticRegression(), data=csr_array(X)).score(csr_array(X), RIGHT)
    assert dense > 0.8
    sentences = [" ".join(f"{'abc'[j]}{int(v > 1)}" for j, v in enumerate(row[:3])) for row in X]
    reader = make_pipeline(TfidfVectorizer(token_pattern=r"\w+"), LogisticRegression(C=10))
    assert trained(reader, data=sentences).score(sentences, RIGHT) > 0.7
    table = pd.DataFrame(
        {"text": sentences, "place": np.where(X[:, 3] > 0, "x", "y"), "n": X[:, 4]}
    )
    columns = make_column_transformer(
        (TfidfVectorizer(token_pattern=r"\w+"), "text"), (OneHotEncoder(), ["place"]),
        ("passthrough", ["n"]),
    )  # fmt: skip
    whole = make_pipeline(columns, LogisticRegression(C=10))
    model = trained(whole, data=table.set_index(np.arange(N)[::-1]))
    assert model.score(table, RIGHT) > 0.7
    assert list(model.feature_names_in_) == ["text", "place", "n"]


def test_columns_of_many_words_are_no_categories_and_missing_numbers_are_filled():
    table = pd.DataFrame(
        {"name": [f"n{i}" for i in range(N)], "n": np.where(X > 2, np.nan, X)[:, 0]}
    )
    assert as_vectors(table, LOGISTIC).shape == (N, 1)
    assert as_vectors([["a"], ["b"]], LOGISTIC) is None


@pytest.mark.parametrize("routing", [True, False])
def test_a_cross_validation_splits_verified_labels_along(routing):
    model = TrustedClassifier(LogisticRegression(), random_state=0)
    params = {"verified": VERIFIED}
    with config_context(enable_metadata_routing=routing):
        if routing:
            model = model.set_fit_request(verified=True)
        found = cross_validate(model, X, GIVEN, cv=3, params=params, return_estimator=True)
        search = GridSearchCV(model, {"estimator__C": [0.1, 1.0], "correct": [True, False]}, cv=2)
        search.fit(X, GIVEN, **params)
    assert np.mean([one.score(X, RIGHT) for one in found["estimator"]]) > 0.75
    assert len(found["estimator"][0].weights_) in (266, 267)
    assert search.best_estimator_.label_model_.share is not None


def test_groups_are_never_split(monkeypatch):
    seen = []
    original = TrustedClassifier._predicted

    def record(self, data, rows, numbers, asked):
        seen.append((rows, asked))
        return original(self, data, rows, numbers, asked)

    monkeypatch.setattr(TrustedClassifier, "_predicted", record)
    groups = np.arange(N) // 4
    trained(groups=groups)
    assert len(seen) == 5
    for rows, asked in seen:
        assert not set(groups[rows]) & set(groups[asked])


def test_the_same_seed_gives_the_same_model():
    first, second = trained(), trained()
    assert np.array_equal(first.posterior_, second.posterior_)
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert np.array_equal(clone(first).fit(X, GIVEN, verified=VERIFIED).weights_, first.weights_)


def test_a_class_that_a_fold_does_not_see():
    y = np.where(np.arange(N) == 7, 3, GIVEN)
    model = trained(y=y)
    assert model.posterior_.shape == (N, 4)
    assert model.predict_proba(X).shape == (N, 4)


def test_decision_values_stand_for_log_odds():
    two = LinearSVC().fit(X, GIVEN > 0)
    said = probabilities(two, X, two.classes_)
    assert np.allclose(np.log(said[:, 1] / said[:, 0]), two.decision_function(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verified": {400: 1}}, "verified: row 400 is not in the data, which have 400 rows"),
        ({"verified": {-1: 1}}, "verified: row -1 is not in the data"),
        ({"verified": {"a": 1}}, "verified: 'a' is no row number"),
        ({"verified": {3: 7}}, "verified: row 3: no row is given as 7; is it 2"),
        (
            {"verified": {3: "b"}},
            "verified: row 3: the label 'b' is a word, but the given labels are",
        ),
        ({"verified": np.where(np.isnan(VERIFIED), -1, VERIFIED)}, "rows that nobody checked NaN"),
        ({"verified": VERIFIED[:9]}, "verified: expected 400 labels"),
        ({"y": np.zeros(N)}, "y: holds one class only"),
        ({"y": np.where(np.arange(N) == 5, np.nan, GIVEN)}, "y: row 5 is NaN"),
        ({"groups": np.zeros(N)}, "groups: all rows are of one group"),
        ({"groups": np.zeros(3)}, "groups: expected 400"),
        ({"correct": "yes"}, "correct: 'auto', True or False"),
        ({"correct": False, "estimator": KNeighborsClassifier()}, "takes no sample_weight"),
        ({"folds": 1}, "folds: must be at least 2"),
    ],
)
def test_bad_input_is_one_line(change, message):
    with pytest.raises(UsageError, match=message) as caught:
        trained(**change)
    assert "\n" not in str(caught.value)


def test_words_beside_numbers_and_nearly_right_words_are_named():
    words = np.array(["spam", "ham", "eggs"])[GIVEN]
    with pytest.raises(UsageError, match="row 3: the label 2 is a number, but the given"):
        trained(y=words, verified={3: 2})
    with pytest.raises(UsageError, match="row 3: no row is given as 'spma'; is it 'spam'"):
        trained(y=words, verified={3: "spma"})


@pytest.mark.parametrize("y", [X[:, 0], np.stack([GIVEN > 0, GIVEN > 1], axis=1)])
def test_numbers_and_several_labels_are_refused(y):
    with pytest.raises(ValueError) as caught:
        trained(y=y)
    assert "\n" not in str(caught.value)
