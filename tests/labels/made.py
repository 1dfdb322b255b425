"""Made evidence: classes side by side, labels of which some are wrong, and verified rows."""

from typing import Any

import numpy as np

from diw.labels import Evidence, verified_log_p
from diw.labels.evidence import draw_folds


def made(
    seed: int = 0,
    n: int = 900,
    m: int = 90,
    k: int = 3,
    rate: float = 0.3,
    systematic: bool = False,
) -> tuple[Evidence, np.ndarray]:
    """Evidence and the right labels of all rows.

    Wrong labels are the next class: at random, or for all rows beyond a threshold, which the
    predictions then have learned.
    """
    rng = np.random.default_rng(seed)
    right = rng.integers(0, k, n)
    X = rng.normal(size=(n, 4)) + 3 * np.eye(max(k, 4))[right][:, :4]
    where = X[:, 3] if systematic else rng.normal(size=n)
    given = np.where(where > np.quantile(where, 1 - rate), (right + 1) % k, right)
    shown = given if systematic else right
    log_p = np.full((n, k), np.log(0.2 / (k - 1)))
    log_p[np.arange(n), np.where(rng.random(n) < 0.15, rng.integers(0, k, n), shown)] = np.log(0.8)
    rows = np.sort(rng.permutation(n)[:m])
    fold = draw_folds(m, seed)
    log_v = verified_log_p(X, rows, right[rows], fold, k)
    return Evidence(log_p, given, rows, right[rows], fold=fold, log_v=log_v), right


def with_(evidence: Evidence, **changes: Any) -> Evidence:
    """The same evidence with some fields changed."""
    return Evidence(**{**vars(evidence), **changes})
