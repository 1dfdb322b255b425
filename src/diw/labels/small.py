"""A small model of the verified rows alone: what is learned from labels that are surely right.

Softmax regression with a ridge, in the span of the verified rows, so that many columns cost little.
It is fitted without each fold in turn: a row is never judged by a fit on its own label.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from diw.labels.transitions import Floats, Ints

SIZE = 10.0
"""The mean square of a row, to which all are scaled; the ridge is one."""
ITERATIONS = 100
PART = 65_536
"""Rows at a time."""


def verified_log_p(X: Any, rows: Ints, labels: Ints, fold: Ints, k: int) -> NDArray[np.float32]:
    """(folds, n, k) log v of all rows by fits on the verified rows of the other folds, in float32.

    Classes that a fit does not see are NaN.

    Args:
        X: (n, d) numbers, a dense array or a SciPy sparse matrix. Columns of a dense one are
            centred; put them on one scale first.
        rows: (m,) the verified rows.
        labels: (m,) their right labels.
        fold: (m,) the fold of each.
        k: Number of classes.
    """
    sparse = hasattr(X, "tocsr")
    table: Any = X.tocsr() if sparse else np.asarray(X)
    n = table.shape[0]
    centre = np.zeros(table.shape[1]) if sparse else table.mean(axis=0)
    square = float(table.multiply(table).sum() if sparse else np.einsum("ij,ij", table, table))
    scale = np.sqrt(SIZE * n / max(square - n * float(centre @ centre), 1e-12))
    chosen = (table[rows].toarray() if sparse else table[rows]) - centre
    _, size, axes = np.linalg.svd(chosen * scale, full_matrices=False)
    axes = axes[size > 1e-8 * max(float(size.max(initial=0.0)), 1e-12)].T * scale
    places = chosen @ axes
    found = np.full((int(fold.max(initial=0)) + 1, n, k), np.nan, np.float32)
    for f, one in enumerate(found):
        seen, numbers = np.unique(labels[fold != f], return_inverse=True)
        if len(seen) < 2:
            continue
        slopes = _softmax_regression(places[fold != f], numbers, len(seen))
        columns, intercepts = axes @ slopes[:-1], slopes[-1] - centre @ axes @ slopes[:-1]
        for start in range(0, n, PART):
            part = slice(start, start + PART)
            one[part, seen] = log_softmax(table[part] @ columns + intercepts, axis=1)
    return found


def _softmax_regression(Z: Floats, labels: Ints, k: int) -> Floats:
    """(r + 1, k) slopes, and in the last row intercepts, of the penalised maximum likelihood."""
    m, r = Z.shape
    design, one = np.column_stack([Z, np.ones(m)]), np.eye(k)[labels]
    penalty = np.append(np.ones(r), 0.1)[:, None]

    def loss(flat: Floats) -> tuple[float, Floats]:
        slopes = flat.reshape(r + 1, k)
        logs = log_softmax(design @ slopes, axis=1)
        value = 0.5 * float((penalty * slopes**2).sum()) - float((one * logs).sum())
        return value, (design.T @ (np.exp(logs) - one) + penalty * slopes).ravel()

    options = {"maxiter": ITERATIONS}
    start = np.zeros((r + 1) * k)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(r + 1, k)
