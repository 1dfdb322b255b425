"""What any learner of scikit-learn reads and says, as numbers: tables, texts, sparse matrices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from diw.integrations import missing
from diw.labels.transitions import Floats, Ints

try:
    from sklearn.base import clone as clone_estimator
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None

MOST_WORDS = 100
"""Columns of words with more different ones are none of categories."""


def encoder(X: Any) -> Any:
    """How a table becomes numbers: learned from X, and kept."""
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    if not hasattr(X, "columns"):
        return numbers
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    kinds = ["category", "object", "string"]
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_exclude=kinds)),
            ("categories", words, make_column_selector(dtype_include=kinds)),
        ]
    )


def is_number(kind: Any) -> bool:
    """Whether a DataFrame's column type is a plain NumPy number."""
    return isinstance(kind, np.dtype) and kind.kind in "iufb"


def probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """(n, k) probabilities of `classes`, from whatever the fitted learner has.

    Without `predict_proba`, decision values stand for log-odds; without those, predictions do.
    """
    own = np.searchsorted(classes, model.classes_)
    if hasattr(model, "predict_proba"):
        said = np.asarray(model.predict_proba(X), np.float64)
    elif hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), np.float64)
        two = values.ndim == 1
        said = np.column_stack([expit(-values), expit(values)]) if two else softmax(values, axis=1)
    else:
        said = np.eye(len(own))[np.searchsorted(model.classes_, model.predict(X))]
    if len(own) == len(classes):
        return said
    found = np.zeros((len(said), len(classes)))
    found[:, own] = said
    return found


def as_vectors(X: Any, estimator: Any) -> Any:
    """(n, d) X as numbers of one scale, or a sparse matrix; None where only the learner can tell.

    Numbers are standardised and missing ones filled, categories one-hot; what else X may be, such
    as texts, goes through all but the last step of the learner if that is a pipeline.
    """
    if hasattr(X, "tocsr"):
        return X.tocsr()
    try:
        if hasattr(X, "columns"):
            few = [c for c in X.columns if is_number(X[c].dtype) or X[c].nunique() <= MOST_WORDS]
            if len(few) == len(X.columns) or not hasattr(estimator, "steps"):
                return encoder(X[few]).fit_transform(X[few]) if few else None
        else:
            values = np.asarray(X, np.float64)
            return encoder(values).fit_transform(values.reshape(len(values), -1))
    except (TypeError, ValueError):
        pass
    if not hasattr(estimator, "steps") or len(estimator.steps) < 2:
        return None
    clone: Any = clone_estimator
    found = clone(estimator[:-1]).fit_transform(X)
    if hasattr(found, "tocsr"):
        return found.tocsr()
    return StandardScaler().fit_transform(np.asarray(found, np.float64))


def take(X: Any, rows: Ints) -> Any:
    """These rows of an array, a sparse matrix, a DataFrame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]
