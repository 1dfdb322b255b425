"""Tables as scikit-learn's users have them: DataFrames of numbers and categories, chosen rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.integrations import missing

try:
    from sklearn.compose import ColumnTransformer, make_column_selector
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None


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


def row_numbers(trusted: Any, n: int) -> NDArray[np.int64]:
    """Row numbers from row numbers or a mask: n truth values, or n zeros and ones."""
    values = np.asarray(trusted)
    if values.shape == (n,) and values.dtype.kind in "biu" and np.isin(values, (0, 1)).all():
        values = np.flatnonzero(values)
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        raise UsageError(f"trusted: give a mask ({n},) or row numbers, at least one row")
    if values.min() < -n or values.max() >= n:
        raise UsageError(f"trusted: row numbers must lie in 0..{n - 1}")
    return values.astype(np.int64) % n
