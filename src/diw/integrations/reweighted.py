"""scikit-learn: a meta-estimator that fits any estimator with matched weights."""

from typing import Any, Self

import numpy as np

from diw.errors import UsageError
from diw.integrations import missing
from diw.matching import KMM, Estimator, LabelShift
from diw.matching.label_shift import FEWEST, softmax

try:
    from sklearn import get_config
    from sklearn.base import BaseEstimator, MetaEstimatorMixin
    from sklearn.base import clone as clone_estimator
    from sklearn.model_selection import StratifiedKFold
    from sklearn.utils import get_tags
    from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
    from sklearn.utils.validation import has_fit_parameter
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None


class ImportanceWeighted(MetaEstimatorMixin, BaseEstimator):
    """Any estimator, fitted with weights under which X looks like the trusted samples.

    Kernel mean matching of the inputs (`diw.KMM`) gives the estimator's `sample_weight`: right
    under covariate shift, where the inputs differ and the labels for given inputs do not. Put
    numbers of different scales on one scale first: distances between rows decide. With
    `LabelShift()` in its place the weights go by class: right where the classes' shares differ
    and the inputs of each class do not; its probabilities are the estimator's, from five fits that
    leave a fifth of the rows out.

    Args:
        estimator: Has `sample_weight` in `fit`.
        kmm: How to weigh, an estimator of `diw.matching` or `LabelShift`; None for `KMM()`.
        X_trusted: (m, d) samples as they will be met, without labels; may be given to `fit`.

    Attributes:
        estimator_: The fitted estimator.
        weights_: (n,) the matched weights.
        kmm_: The fitted estimator of the weights, with its status.
    """

    def __init__(
        self, estimator: Any, kmm: Estimator | LabelShift | None = None, X_trusted: Any = None
    ):
        self.estimator = estimator
        self.kmm = kmm
        self.X_trusted = X_trusted

    def fit(self, X: Any, y: Any = None, X_trusted: Any = None, **params: Any) -> Self:
        """Match X to the trusted samples and fit the estimator with the weights.

        Args:
            X: (n, d) training samples.
            y: (n,) their labels, or what the estimator takes.
            X_trusted: (m, d), instead of the one given at the start.
            params: For the estimator; a `sample_weight` is multiplied by the matched weights.
        """
        X_trusted = self.X_trusted if X_trusted is None else X_trusted
        if X_trusted is None:
            raise UsageError(
                "X_trusted: give the samples to match, here or to ImportanceWeighted(…)"
            )
        if not has_fit_parameter(self.estimator, "sample_weight"):
            name = type(self.estimator).__name__
            raise UsageError(
                f"estimator: {name}.fit takes no sample_weight, so it cannot be weighted"
            )
        if get_config()["enable_metadata_routing"]:
            routed: Any = process_routing(self, "fit", **params)
            params = dict(routed.estimator.fit)
        clone: Any = clone_estimator
        self.kmm_ = clone(self.kmm or KMM())
        if isinstance(self.kmm_, LabelShift):
            _fit_shares(self.kmm_, clone(self.estimator), X, y, X_trusted)
        else:
            self.kmm_.fit(X, X_trusted)
        self.weights_ = np.asarray(self.kmm_.weights_, dtype=np.float64)
        given = params.pop("sample_weight", None)
        weights = self.weights_ if given is None else self.weights_ * np.asarray(given)
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=weights, **params)
        return self

    def __getattr__(self, name: str) -> Any:
        """`predict`, `score`, `classes_`, …: those of the estimator, fitted where it is."""
        if name.startswith("__") or name in ("estimator", "estimator_"):
            raise AttributeError(name)
        inner = vars(self).get("estimator_", vars(self).get("estimator"))
        if inner is None or name.startswith("_"):
            raise AttributeError(f"'ImportanceWeighted' object has no attribute {name!r}")
        return getattr(inner, name)

    def get_metadata_routing(self) -> Any:
        """What `fit` and `score` pass on, for scikit-learn's metadata routing."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


FOLDS = 5
"""Fits of the estimator whose probabilities tell the target's class shares."""


def _fit_shares(shift: LabelShift, estimator: Any, X: Any, y: Any, target: Any) -> None:
    """Class shares by the estimator's own probabilities for rows that it has not learned."""
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    size = min(np.bincount(codes))
    if size < FEWEST:
        few = classes[int(np.bincount(codes).argmin())]
        raise UsageError(f"y: class {str(few)!r} has {size} rows; {FEWEST} or more are needed")
    held, theirs = np.empty((len(codes), len(classes))), np.zeros((len(target), len(classes)))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=shift.seed)
    clone: Any = clone_estimator
    for fitted_on, left_out in folds.split(codes, codes):
        some = clone(estimator).fit(_some(X, fitted_on), codes[fitted_on])
        held[left_out] = _probabilities(some, _some(X, left_out))
        theirs += _probabilities(some, target) / FOLDS
    rows = {"rows": X, "target_rows": target} if _numeric(X) and _numeric(target) else {}
    shift.fit(held, codes, theirs, **rows)


def _some(X: Any, places: Any) -> Any:
    """Rows of an array, a table or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if hasattr(X, "shape") else np.asarray(X)[places]


def _probabilities(fitted: Any, X: Any) -> Any:
    """(n, k) probabilities, or those that decision values stand for up to a temperature."""
    if hasattr(fitted, "predict_proba"):
        return fitted.predict_proba(X)
    scores = fitted.decision_function(X)
    return softmax(np.stack([0 * scores, scores], axis=1) if scores.ndim == 1 else scores)


def _numeric(X: Any) -> bool:
    """Whether rows are numbers, which the assumption can be tested on."""
    return np.asarray(X).dtype.kind in "fiub"
