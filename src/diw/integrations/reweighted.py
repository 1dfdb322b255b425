"""scikit-learn: a meta-estimator that fits any estimator with matched weights."""

from typing import Any, Self

import numpy as np

from diw.errors import UsageError
from diw.integrations import missing
from diw.matching import KMM, Estimator

try:
    from sklearn import get_config
    from sklearn.base import BaseEstimator, MetaEstimatorMixin
    from sklearn.base import clone as clone_estimator
    from sklearn.utils import get_tags
    from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
    from sklearn.utils.validation import has_fit_parameter
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None


class ImportanceWeighted(MetaEstimatorMixin, BaseEstimator):
    """Any estimator, fitted with weights under which X looks like the trusted samples.

    Kernel mean matching of the inputs (`diw.KMM`) gives the estimator's `sample_weight`: right
    under covariate shift, where the inputs differ and the labels for given inputs do not. Put
    numbers of different scales on one scale first: distances between rows decide.

    Args:
        estimator: Has `sample_weight` in `fit`.
        kmm: How to weigh, an estimator of `diw.matching`; None for `KMM()`.
        X_trusted: (m, d) samples as they will be met, without labels; may be given to `fit`.

    Attributes:
        estimator_: The fitted estimator.
        weights_: (n,) the matched weights.
        kmm_: The fitted estimator of the weights, with its status.
    """

    def __init__(self, estimator: Any, kmm: Estimator | None = None, X_trusted: Any = None):
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
        self.kmm_ = clone(self.kmm or KMM()).fit(X, X_trusted)
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
