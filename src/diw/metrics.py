"""Diagnostics of weights: effective sample size, separation, distance from the true weights.

Pure NumPy, so that reports and the solver may use it without torch.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def effective_sample_size(weights: ArrayLike) -> float:
    """Kish's effective sample size as a fraction of n.

    (Σ w)² / (n Σ w²): 1 for equal weights, 1/n when one sample has all the
    weight, 0 when every weight is zero.

    Args:
        weights: Shape (n,), non-negative.
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or w.size == 0:
        raise ValueError(f"weights: expected a non-empty vector, got shape {w.shape}")
    squares = float(w @ w)
    return float(w.sum()) ** 2 / (w.size * squares) if squares > 0 else 0.0


def weight_summary(weights: ArrayLike) -> dict[str, float]:
    """What to log of a batch's weights (n,): effective sample size, share of zeros, largest."""
    w = np.asarray(weights, dtype=np.float64)
    return {
        "ess": effective_sample_size(w),
        "share_zero": float((w == 0).mean()),
        "weight_max": float(w.max()),
    }


def auroc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Probability that a positive sample scores higher than a negative one; ties count half.

    The area under the ROC curve by rank sums (Mann and Whitney 1947), with mid-ranks
    for ties, in O(n log n).

    Args:
        scores: Shape (n,), finite.
        positive: Shape (n,), truth values; both kinds must occur.
    """
    s = np.asarray(scores, dtype=np.float64)
    is_positive = np.asarray(positive, dtype=bool)
    if s.ndim != 1 or s.shape != is_positive.shape:
        raise ValueError(
            f"scores, positive: expected two vectors of the same length, "
            f"got shapes {s.shape} and {is_positive.shape}"
        )
    if not np.isfinite(s).all():
        raise ValueError("scores: must be finite; leave out the samples without a score")
    positives = int(is_positive.sum())
    negatives = s.size - positives
    if positives == 0 or negatives == 0:
        raise ValueError("positive: needs at least one positive and one negative sample")
    rank_sum = float(_mid_ranks(s)[is_positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def average_precision(scores: ArrayLike, positive: ArrayLike) -> float:
    """Mean precision over the positive samples, each at the threshold of its own score.

    Σ_k (recall_k − recall_{k−1}) precision_k over the different scores, from the highest: the
    area under the precision–recall curve without interpolation.

    Args:
        scores: Shape (n,), finite.
        positive: Shape (n,), truth values; at least one is true.
    """
    s = np.asarray(scores, dtype=np.float64)
    is_positive = np.asarray(positive, dtype=bool)
    if s.ndim != 1 or s.shape != is_positive.shape or not is_positive.any():
        raise ValueError("scores, positive: expected vectors of one length, some of it positive")
    order = np.argsort(-s, kind="stable")
    hits = np.cumsum(is_positive[order])
    ends = np.append(np.flatnonzero(np.diff(s[order])), s.size - 1)
    gained = np.diff(hits[ends], prepend=0)
    return float((gained * hits[ends] / (ends + 1)).sum() / hits[-1])


def mean_absolute_error(weights: ArrayLike, truth: ArrayLike) -> float:
    """Σ |w_i − w_i*| / n, the distance from learned to true weights.

    Fang et al. 2020, Table 2 (class-prior shift).

    Args:
        weights: Shape (n,).
        truth: Shape (n,), the true weights.
    """
    return float(np.abs(_differences(weights, truth)).mean())


def root_mean_square_error(weights: ArrayLike, truth: ArrayLike) -> float:
    """√(Σ (w_i − w_i*)² / n): as `mean_absolute_error`, but large errors count more.

    Args:
        weights: Shape (n,).
        truth: Shape (n,), the true weights.
    """
    return float(np.sqrt(np.square(_differences(weights, truth)).mean()))


def _differences(weights: ArrayLike, truth: ArrayLike) -> NDArray[np.float64]:
    w, t = np.asarray(weights, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if w.ndim != 1 or w.size == 0 or w.shape != t.shape:
        raise ValueError(
            "weights, truth: expected two vectors of the same length, "
            f"got shapes {w.shape} and {t.shape}"
        )
    return w - t


def _mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
