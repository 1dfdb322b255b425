import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.special import log_softmax

from diw.labels.small import SIZE, verified_log_p

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 30)
X = rng.normal(size=(80, 50)) + 2.0
X[:30] += 2 * np.eye(50)[LABELS]
ROWS, FOLD = np.arange(30), np.arange(30) % 3


def test_it_is_softmax_regression_with_a_ridge_on_all_columns():
    found = verified_log_p(X, ROWS, LABELS, FOLD, 3)
    Z = X - X.mean(0)
    Z *= np.sqrt(SIZE / (Z**2).sum(1).mean())
    kept = FOLD != 1

    def loss(flat):
        W, b = flat[:150].reshape(50, 3), flat[150:]
        logs = log_softmax(Z[:30][kept] @ W + b, axis=1)
        fitted = logs[np.arange(20), LABELS[kept]].sum()
        return 0.5 * (W**2).sum() + 0.05 * (b**2).sum() - fitted

    flat = minimize(loss, np.zeros(153), method="L-BFGS-B", options={"maxfun": 10**6}).x
    expected = log_softmax(Z @ flat[:150].reshape(50, 3) + flat[150:], axis=1)
    assert np.allclose(found[1], expected, atol=5e-3)


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_rows_are_not_centred(kind):
    balanced = np.concatenate([X - X.mean(0), X.mean(0) - X])
    dense = verified_log_p(balanced, ROWS, LABELS, FOLD, 3)
    assert np.allclose(verified_log_p(kind(balanced), ROWS, LABELS, FOLD, 3), dense, atol=1e-4)


def test_classes_that_a_fit_does_not_see_are_nan():
    labels = np.where(np.arange(30) == 4, 2, np.arange(30) % 2)
    found = verified_log_p(X, ROWS, labels, FOLD, 4)
    assert np.isnan(found[:, 0, 3]).all()
    assert np.isnan(found[:, 0, 2]).tolist() == [False, True, False]


def test_one_class_says_nothing():
    assert np.isnan(verified_log_p(X, ROWS, np.zeros(30, int), FOLD, 3)).all()
