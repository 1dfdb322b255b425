"""The weights a run settled on, and the groups of samples whose weights should differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.diagnostics import mean_absolute_error, root_mean_square_error
from diw.records import Row, Run

WINDOW = 10
"""How many final epochs are averaged: one mini-batch's weights are noisy."""

MOST_GROUPS = 4
"""True weights that take more values than this are not a grouping of the samples."""


@dataclass(frozen=True)
class Group:
    """Samples that a perfect weighting would treat alike."""

    name: str
    members: NDArray[np.bool_]
    """Shape (n,)."""


def weighted_epochs(rows: list[Row]) -> list[Row]:
    """The last ten epochs in which the method weighed; warm-up epochs do not count."""
    return [row for row in rows if row.get("weighted")][-WINDOW:]


def settled_weights(run: Run) -> NDArray[np.float64] | None:
    """Each training sample's mean weight over the last ten weighted epochs.

    Returns:
        Shape (n,), NaN for a sample that none of these epochs saw. None where
        there is nothing to compare: no training weights, or all of them equal.
    """
    epochs = [int(row["epoch"]) - 1 for row in weighted_epochs(run.metrics())]
    ledger = run.ledger()
    epochs = [epoch for epoch in epochs if epoch < len(ledger)]
    if not epochs or ledger.size == 0:
        return None
    window = np.asarray(ledger[epochs], dtype=np.float64)
    seen = np.isfinite(window)
    if not seen.any() or np.ptp(window[seen]) == 0:
        return None
    counts = seen.sum(axis=0)
    totals = np.where(seen, window, 0.0).sum(axis=0)
    return np.divide(totals, counts, out=np.full(counts.shape, np.nan), where=counts > 0)


def distances_to_truth(run: Run, samples: Mapping[str, NDArray[Any]]) -> tuple[float, float] | None:
    """Mean absolute and root-mean-square distance from the run's weights to the true ones.

    Each epoch's own weights are compared, and the distances averaged over the
    last ten weighted epochs (the last ten of all for a method that never weighs):
    averaging the weights first would hide what training really saw.

    Returns:
        (MAE, RMSE), or None where the true weights are unknown or there are no training weights.
    """
    true, rows, ledger = samples.get("true_weights"), run.metrics(), run.ledger()
    chosen = [int(row["epoch"]) - 1 for row in weighted_epochs(rows) or rows[-WINDOW:]]
    if true is None or ledger.size == 0:
        return None
    pairs: list[tuple[float, float]] = []
    for weights in np.asarray(ledger[[e for e in chosen if e < len(ledger)]], dtype=np.float64):
        seen = np.isfinite(weights)
        if seen.any():
            w, t = weights[seen], true[seen]
            pairs.append((mean_absolute_error(w, t), root_mean_square_error(w, t)))
    if not pairs:
        return None
    mae, rmse = np.mean(pairs, axis=0)
    return float(mae), float(rmse)


def groups(samples: Mapping[str, NDArray[Any]]) -> list[Group]:
    """How a simulated shift divides the samples; empty where the truth is unknown.

    Label noise divides them into intact and mislabelled; a shift with few
    distinct true weights (class prior) into one group for each.
    """
    if "flipped" in samples and samples["flipped"].any():
        flipped = samples["flipped"].astype(bool)
        return [Group("intact", ~flipped), Group("mislabelled", flipped)]
    if "true_weights" in samples:
        true = samples["true_weights"].astype(np.float64)
        values = np.unique(true.round(6))
        if 1 < values.size <= MOST_GROUPS:
            return [Group(f"true weight {v:.3g}", np.isclose(true, v, atol=1e-6)) for v in values]
    return []
