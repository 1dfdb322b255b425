"""scikit-learn's conventions, kept; and weights that find what is wrong."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import diw
from diw import KMM, DIWClassifier, DIWRegressor, ImportanceWeighted
from diw.errors import DIWWarning, UsageError
from diw.matching import LabelShift
from diw.methods import find, make
from diw.step import Horizon

LIGHT = {"steps": 25, "learning_rate": 0.01, "random_state": 0}
"""So that a fit takes a moment."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [DIWClassifier(**LIGHT), DIWRegressor(**LIGHT)])
def test_the_checks_of_scikit_learn(estimator) -> None:
    results = check_estimator(estimator, on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert skipped in ([], ["check_array_api_input"])  # needs SCIPY_ARRAY_API in the environment


def noisy(n=400, seed=0, rate=0.4):
    """Two classes by the sign of a sum, with wrong labels; and which ones are wrong."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4)) * [1, 10, 0.1, 1]
    true = np.where(X @ [1, 0.1, 10, 0] > 0, "yes", "no")
    wrong = generator.random(n) < rate
    return X, np.where(wrong, np.where(true == "yes", "no", "yes"), true), true, wrong


def test_weights_find_wrong_labels() -> None:
    X, y, true, wrong = noisy(rate=0.3)
    X_trusted, _, y_trusted, _ = noisy(60, seed=1)
    model = DIWClassifier(steps=150, random_state=0).fit(X, y, X_trusted, y_trusted)
    assert roc_auc_score(~wrong, model.weights_) > 0.8
    assert np.mean(wrong[model.suspects_[:50]]) > 0.9
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(X, true) > 0.85
    assert model.weights_.shape == (400,)
    assert model.history_[-1]["epoch"] == len(model.history_)
    probabilities = model.predict_proba(X)
    assert np.array_equal(model.classes_[probabilities.argmax(1)], model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), probabilities)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "weights_")
    same = copy.fit(X, y, X_trusted, y_trusted)
    assert np.array_equal(same.weights_, model.weights_)


@pytest.mark.parametrize("method", ["siw-f", "diw3-l", "glc"])
def test_methods_that_pretrain_do_so_with_the_same_network(method) -> None:
    X, y, true, _ = noisy(rate=0.2)
    y[:60] = true[:60]
    options = {"steps": 60, "learning_rate": 0.01, "random_state": 0}
    model = DIWClassifier(make(method, {"pretraining": 3}), **options)
    model.fit(X, y, trusted=np.arange(60))
    assert model.score(X, true) > 0.85
    again = clone(model).fit(X, y, trusted=np.arange(60))
    assert np.array_equal(again.weights_, model.weights_)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_rows_of_X_may_be_the_trusted_ones() -> None:
    X, y, true, _ = noisy()
    y[:40] = true[:40]
    mask = np.arange(400) < 40
    by_mask = DIWClassifier(**LIGHT).fit(X, y, trusted=mask)
    for same in (np.arange(40), mask.astype(int), mask.astype(np.uint8).tolist()):
        other = DIWClassifier(**LIGHT).fit(X, y, trusted=same)
        assert np.array_equal(by_mask.weights_, other.weights_)
    assert np.array_equal(by_mask.trusted_, np.arange(40))


def test_verified_rows_are_trusted_and_tell_how_many_labels_are_wrong() -> None:
    X, y, true, wrong = noisy(rate=0.3)
    verified = np.where(np.arange(400) % 4 == 0, true.astype(object), None)
    model = DIWClassifier(steps=150, random_state=0).fit(X, y, verified=verified)
    assert np.array_equal(model.trusted_, np.arange(0, 400, 4))
    assert model.label_model_.share.low <= wrong.mean() <= model.label_model_.share.high
    assert wrong[model.suspects_].mean() > 0.8
    assert wrong[model.suspects_].sum() > 0.6 * wrong.sum()
    assert set(model.suspects_).isdisjoint(model.trusted_)
    assert model.score(X, true) > 0.85
    mapped = {row: true[row] for row in range(0, 400, 4)}
    same = clone(model).fit(X, y, verified=mapped)
    assert np.array_equal(same.weights_, model.weights_)
    corrected = np.where(np.arange(400) % 4 == 0, true, y)
    trusted = clone(model).fit(X, corrected, trusted=np.arange(0, 400, 4))
    assert np.array_equal(trusted.weights_, model.weights_)  # trained on right labels
    search = GridSearchCV(DIWClassifier(**LIGHT), {"batch_size": [16]}, cv=2)
    search.fit(X, y, verified=verified)  # split along with X
    assert search.best_score_ > 0.5


def test_without_trusted_samples_a_share_of_each_class_serves() -> None:
    X, y, _, _ = noisy(100)
    y = y.astype(object)
    y[0] = "seldom"
    with pytest.warns(DIWWarning, match=r"^X_trusted: not given, so 1\d of the 100 samples"):
        model = DIWClassifier(**LIGHT).fit(X, y)
    assert set(y[model.trusted_]) == {"no", "yes", "seldom"}
    with pytest.warns(DIWWarning, match=r"^X_trusted: not given, so 10 of the 100"):
        DIWRegressor(**LIGHT).fit(X, X[:, 0])


def test_tables_with_words_categories_and_missing_values() -> None:
    _, y, _, _ = noisy(60)
    table = pd.DataFrame(
        {
            "number": pd.array([1, 2, None] * 20, dtype="Int64"),
            "yes": pd.array([True, None, False] * 20, dtype="boolean"),
            "word": ["a", "b", None] * 20,
            "kind": pd.Categorical(["x", "y", "z"] * 20),
            "text": pd.array(["u", "v", "w"] * 20, dtype="string"),
        }
    )
    model = DIWClassifier("uniform", **LIGHT).fit(table, pd.Series(y), trusted=[0, 1, 2, 3, 4, 5])
    assert model.feature_names_in_.tolist() == list(table)
    assert set(model.predict(table)) <= {"no", "yes"}
    other = table.assign(kind=pd.Categorical(["new"] * 60))  # a category that was never seen
    assert model.predict_proba(other).shape == (60, 2)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[list(table)[::-1]])
    whole = table[["number"]].assign(more=1.5)
    DIWRegressor("uniform", **LIGHT).fit(whole, np.arange(60.0), trusted=[1, 2]).predict(whole)


def test_searches_pipelines_and_scores() -> None:
    X, y, _, _ = noisy(120)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DIWClassifier(**LIGHT)),
        {"diwclassifier__method": ["uniform", make("diw", {"bound": 10.0})]},
        scoring={
            "accuracy": "accuracy",
            "own": make_scorer(roc_auc_score, response_method="predict_proba"),
        },
        refit="accuracy",
        cv=2,
        error_score="raise",
    )
    search.fit(X, y, diwclassifier__trusted=np.arange(120) % 4 == 0)
    assert np.isfinite(search.cv_results_["mean_test_own"]).all()
    page = search.best_estimator_._repr_html_()
    assert "DIWClassifier" in page
    columns = make_column_transformer((StandardScaler(), make_column_selector()))
    with pytest.warns(DIWWarning):
        scores = cross_val_score(
            make_pipeline(columns, DIWRegressor(**LIGHT)), pd.DataFrame(X), X[:, 1], cv=2
        )
    assert np.isfinite(scores).all()


def test_routed_metadata_reaches_fit() -> None:
    X, y, _, _ = noisy(80)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(),
            DIWClassifier(**LIGHT).set_fit_request(X_trusted=True, y_trusted=True),
            transform_input=["X_trusted"],
        )
        pipeline.fit(X, y, X_trusted=X[:20], y_trusted=y[:20])
    assert pipeline[-1].trusted_.tolist() == list(range(80, 100))


def test_a_network_of_ones_own() -> None:
    images = np.random.default_rng(0).normal(size=(30, 1, 12, 12))
    y = np.arange(30) % 3

    def factory(shape, num_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(144, num_classes))

    for module in ("lenet5", factory, factory((1, 12, 12), 3)):
        model = DIWClassifier(module=module, **LIGHT).fit(images, y, trusted=[0, 1, 2])
        assert model.predict(images).shape == (30,)
    assert model.module_ is not module  # a copy was trained


@pytest.mark.parametrize(("n", "batch_size"), [(17, 4), (33, 32), (400, 256)])
@pytest.mark.parametrize("method", ["remember", "clean"])
def test_as_many_steps_as_asked_and_told_on_nearly_equal_batches(
    n, batch_size, method, monkeypatch
) -> None:
    """The network counts its steps; batch norm refuses a mini-batch of one sample."""
    sizes: list[int] = []
    told: list[Horizon] = []
    monkeypatch.setattr(find(method), "adapt", lambda self, horizon: told.append(horizon))

    class Counting(nn.Module):
        def __init__(self, shape, num_classes):
            super().__init__()
            self.layers = nn.Sequential(nn.BatchNorm1d(*shape), nn.Linear(*shape, num_classes))

        def forward(self, inputs):
            if self.training:
                sizes.append(len(inputs))
            return self.layers(inputs)

    X, y, _, _ = noisy(n)
    options = {"steps": 25, "batch_size": batch_size, "random_state": 0, "module": Counting}
    model = DIWClassifier(method, **options).fit(X, y, trusted=[0, 1, 2, 3])
    assert len(sizes) == 25
    assert [horizon.steps for horizon in told] == [25]
    assert max(sizes) <= batch_size
    assert len(model.history_) <= 50
    if method == "clean":
        assert not model.weights_.any()
        assert len(model.suspects_) == 0


class InADict(nn.Module):
    """As networks of libraries that return a mapping."""

    def __init__(self, shape, num_classes):
        super().__init__()
        self.layer = nn.Linear(*shape, num_classes)

    def forward(self, inputs):
        return {"logits": self.layer(inputs)}


def test_a_network_that_returns_a_mapping_predicts_too() -> None:
    X, y, _, _ = noisy(40)
    inside = DIWClassifier(module=InADict, **LIGHT).fit(X, y, trusted=[0, 1, 2])
    plain = DIWClassifier(module=lambda **sizes: InADict(**sizes).layer, **LIGHT)
    plain.fit(X, y, trusted=[0, 1, 2])
    np.testing.assert_array_equal(inside.predict_proba(X), plain.predict_proba(X))
    values = X[:, 0]
    fitted = DIWRegressor(module=InADict, **LIGHT).fit(X, values, trusted=[0, 1, 2])
    assert fitted.predict(X).shape == (40,)


def test_numbers_of_any_size_are_predicted_or_refused() -> None:
    X, y, _, _ = noisy(40)
    model = DIWClassifier(**LIGHT).fit(X, y, trusted=[0, 1, 2])
    far = np.full((2, 4), [[1e300], [-1e300]])
    assert np.isfinite(model.predict_proba(far)).all()
    X[3, 2] = 1e300
    with pytest.raises(UsageError, match=r"^X: holds numbers that are missing or too large"):
        DIWClassifier(**LIGHT).fit(X, y, trusted=[0, 1, 2])
    flat = DIWClassifier(module=lambda **_: nn.Flatten(), **LIGHT)
    with pytest.raises(UsageError, match=r"^X: holds numbers that are missing or too large"):
        flat.fit(X.reshape(40, 2, 2), y, trusted=[0, 1, 2])


X, Y, _, _ = noisy(20)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"method": "dwi"}, {"trusted": [0]}, "^method: there is no 'dwi'"),
        ({"steps": 0}, {"trusted": [0]}, "^steps: must be at least 1"),
        ({"batch_size": 0}, {"trusted": [0]}, "^batch_size: must be positive"),
        ({"trusted_share": 1.5}, {}, "^trusted_share: must be in"),
        ({"module": lambda shape, num_classes: 3}, {"trusted": [0]}, "^module: it returned a int"),
        ({}, {"trusted": [99]}, r"^trusted: row numbers must lie in 0\.\.19"),
        ({}, {"trusted": "all"}, r"^trusted: give a mask \(20,\) or row numbers"),
        ({}, {"verified": {0: "yes"}, "trusted": [1]}, "^verified: these rows are the trusted on"),
        ({}, {"verified": {}}, "^verified: no row is verified"),
        ({}, {"verified": {0: "maybe"}}, "^verified: row 0: no row is given as 'maybe'"),
        ({}, {"X_trusted": X}, "^X_trusted: give X_trusted and y_trusted together"),
        ({}, {"X_trusted": X[:, :2], "y_trusted": Y}, "^X_trusted: X has 2 features"),
        ({}, {"X_trusted": X, "y_trusted": Y[:3]}, r"^y_trusted: 20 trusted samples, but labels"),
        (
            {},
            {"X_trusted": X, "y_trusted": ["maybe"] * 20},
            r"^y_trusted: 'maybe' is not a class",
        ),
    ],
)
def test_wrong_use_is_one_line(options, arguments, message) -> None:
    with pytest.raises(UsageError, match=message):
        DIWClassifier(**{**LIGHT, **options}).fit(X, Y, **arguments)


def test_kmm_takes_columns_by_name() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    X_trusted = X[:10] + 0.5
    model = KMM().fit(X, X_trusted)
    assert np.array_equal(KMM().fit(X, X_trusted[["b", "a"]]).weights_, model.weights_)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    assert not hasattr(model.fit(X.to_numpy(), X_trusted.to_numpy()), "feature_names_in_")
    with pytest.raises(ValueError, match=r"^trusted: lacks the column 'b'"):
        KMM().fit(X, X_trusted.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match=r"^trusted: also has the column 'c'"):
        KMM().fit(X, X_trusted.assign(c=1.0))
    tags = get_tags(KMM())
    assert not tags.target_tags.required
    with pytest.warns(DIWWarning, match=r"^bound: 0.5 is below one"):
        KMM(bound=0.5).fit(X, X_trusted)


def shifted(n=300):
    """A curve that a line fits differently where the trusted samples are."""
    generator = np.random.default_rng(0)
    X, X_trusted = generator.normal(0, 1, (n, 1)), generator.normal(1.5, 0.3, (n, 1))
    return X, X[:, 0] ** 2, X_trusted, X_trusted[:, 0] ** 2


def test_weighted_fits_where_the_trusted_samples_are() -> None:
    X, y, X_trusted, y_trusted = shifted()
    plain = LinearRegression().fit(X, y)
    ours = ImportanceWeighted(LinearRegression()).fit(X, y, X_trusted)
    by_hand = LinearRegression().fit(X, y, KMM().fit_weights(X, X_trusted))
    assert np.allclose(ours.coef_, by_hand.coef_)
    error = np.mean((ours.predict(X_trusted) - y_trusted) ** 2)
    assert error < 0.3 * np.mean((plain.predict(X_trusted) - y_trusted) ** 2)
    assert pickle.loads(pickle.dumps(ours)).score(X, y) == ours.score(X, y)
    assert "LinearRegression" in ours._repr_html_()
    at_start = ImportanceWeighted(LinearRegression(), KMM(bound=5.0), X_trusted)
    assert np.isfinite(cross_val_score(at_start, X, y, cv=2)).all()
    assert (
        clone(at_start).set_params(kmm__bound=7.0, estimator__fit_intercept=False).kmm.bound == 7.0
    )


def test_weighted_routes_metadata_and_combines_weights() -> None:
    X, y, X_trusted, _ = shifted(50)
    given = np.linspace(0, 2, 50)
    matched = KMM().fit_weights(X, X_trusted)
    expected = LogisticRegression().fit(X, y > 1, matched * given).coef_
    plain = ImportanceWeighted(LogisticRegression()).fit(X, y > 1, X_trusted, sample_weight=given)
    assert np.allclose(plain.coef_, expected)
    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = ImportanceWeighted(inner).set_fit_request(X_trusted=True)
        pipeline = make_pipeline(routed).fit(X, y > 1, X_trusted=X_trusted, sample_weight=given)
        assert pipeline.score(X, y > 1) == plain.score(X, y > 1)
    assert np.allclose(pipeline[-1].coef_, expected)
    assert get_tags(plain).estimator_type == "classifier"


def test_weighted_says_what_it_needs() -> None:
    with pytest.raises(UsageError, match=r"^X_trusted: give the samples to match"):
        ImportanceWeighted(DummyClassifier()).fit(X, Y)
    with pytest.raises(UsageError, match=r"^estimator: KNeighborsClassifier.fit takes no sample_w"):
        ImportanceWeighted(KNeighborsClassifier()).fit(X, Y, X)
    with pytest.raises(NotFittedError):
        ImportanceWeighted(LogisticRegression()).predict(X)
    with pytest.raises(AttributeError, match="nothing"):
        _ = ImportanceWeighted(LogisticRegression()).nothing


def test_a_regressor_matches_losses_without_a_word() -> None:
    """The default method needs classes; without them it matches losses, which is what is done."""
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X @ [1.0, 2.0, 3.0]
    found = [
        DIWRegressor(*method, **LIGHT).fit(X, y, trusted=np.arange(20)).weights_
        for method in ([], ["diw"])
    ]
    np.testing.assert_array_equal(*found)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "diw.integrations.sklearn")
    with pytest.raises(ImportError, match=r"is not installed: pip install 'diw\[sklearn\]'$"):
        _ = diw.DIWClassifier
    assert "DIWClassifier" in dir(diw)


def by_shares(shares, n, seed, move=0.0):
    generator = np.random.default_rng(seed)
    y = generator.choice(["no", "yes"], n, p=shares)
    return generator.normal(size=(n, 2)) + 1.5 * (y == "yes")[:, None] + move, y


@pytest.mark.parametrize("learner", [LogisticRegression(), SVC()])
def test_weights_by_class_follow_a_target_with_other_class_shares(learner) -> None:
    X, y = by_shares([0.5, 0.5], 600, 0)
    target, right = by_shares([0.1, 0.9], 600, 1)
    plain = learner.fit(X, y).score(target, right)
    model = ImportanceWeighted(learner, LabelShift()).fit(X, y, X_trusted=target)
    assert model.kmm_.shares_ == pytest.approx([0.1, 0.9], abs=0.06)
    assert model.weights_[y == "no"] == pytest.approx(model.kmm_.class_weights_[0])
    assert model.score(target, right) > plain + 0.03
    with pytest.warns(DIWWarning, match="more than the class shares differs"):
        moved = ImportanceWeighted(learner, LabelShift()).fit(X, y, X_trusted=target + 2)
    assert (moved.weights_ == 1).all()
    with pytest.raises(UsageError, match=r"^y: class 'no' has 3 rows; 10 or more are needed"):
        ImportanceWeighted(learner, LabelShift()).fit(X[:13], ["no"] * 3 + ["yes"] * 10, X)
