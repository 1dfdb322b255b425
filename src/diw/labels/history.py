"""How strongly a training sample's history says that its label is wrong.

A network learns right labels first. So the losses of a sample over all epochs say more than those
at any one time: a wrong label has a low probability p = exp(−ℓ) early on, and with weights later,
too. The score is 1 − mean p^0.3 over the epochs. A mean of p itself would forget how small a small
p is, which tells pair flips from hard samples; a mean of ℓ lets a single epoch decide. This was
chosen by measurement (docs/audit.md).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.errors import UsageError
from diw.labels.transitions import TINY, Bools, Floats, Ints

POWER = 0.3
SUSPECT = 0.5
"""The score from which on a sample is a suspect, where there is no estimate of how many."""


def loss_scores(losses: ArrayLike, kept: int | None = None) -> Floats:
    """(n,) 1 − mean over epochs of exp(−0.3 ℓ), in [0, 1): high where a label looks wrong.

    A sample that was never seen has the score zero, below all others: nothing speaks against it.

    Args:
        losses: (epochs, n) cross entropies of the given labels; NaN where a sample was not seen.
        kept: The epoch, from 1, that was kept for its held-out trusted loss, if one was. After
            it labels are learned by heart, and only the epochs up to it count (at least a third).
    """
    values = _by_epoch("losses", losses)
    if kept is not None:
        values = values[: max(kept, -(-len(values) // 3))]
    scores = 1 - _mean(np.exp(-POWER * np.maximum(values, 0)), empty=1.0)
    return _unseen_last(scores, values)


def with_opinion(scores: Floats, probability: Floats, share: float) -> Floats:
    """(n,) scores that also count what another classifier says of the given labels.

    (1 − a) s + a (1 − p)

    Args:
        scores: s, (n,) of the samples' histories.
        probability: p, (n,) of the given label by a classifier fitted without the sample.
        share: a, how much that counts.
    """
    return (1 - share) * scores + share * (1 - probability)


def weight_scores(weights: ArrayLike) -> Floats:
    """(n,) 1/(1 + mean weight), for runs without losses: high where a sample hardly counts.

    Args:
        weights: (epochs, n) or (n,); NaN where a sample was not seen.
    """
    return _unseen_last(1 / (1 + mean_weights(weights)), np.atleast_2d(weights))


def mean_weights(weights: ArrayLike, window: int = 10) -> Floats:
    """(n,) mean weight over the last ten epochs in which weights differ; 1 where there are none.

    Args:
        weights: (epochs, n) or (n,).
        window: The number of epochs.
    """
    values = np.atleast_2d(np.asarray(weights, np.float64))
    values = _by_epoch("weights", values)
    seen = [row[np.isfinite(row)] for row in values]
    telling = [row for row, own in zip(values, seen, strict=True) if own.size and np.ptp(own) > 0]
    if not telling:
        return np.ones(values.shape[1])
    return _mean(np.array(telling[-window:]), empty=1.0)


def suggest(probabilities: NDArray[np.floating], labels: Ints) -> tuple[Ints, Floats]:
    """(n,) the most probable other label of each sample, and (n,) its probability.

    Args:
        probabilities: (n, k)
        labels: (n,) the given labels.
    """
    others = np.array(probabilities, np.float64)
    rows = np.arange(len(labels))
    others[rows, labels] = -1.0
    best = others.argmax(1)
    return best, others[rows, best]


def suspected(scores: Floats, ranked: Bools | None = None, share: float | None = None) -> Bools:
    """(n,) which samples are suspects: more probably wrong than right.

    A score is no probability. Where the share of wrong labels is known, one half is put where as
    many scores are above it as labels are wrong; where it is not, scores are taken as they are.

    Args:
        scores: (n,)
        ranked: (n,) which samples the share is of; None: all.
        share: The share of wrong labels among these; None or NaN where it is not known.
    """
    if share is None or not np.isfinite(share):
        return scores > 0.5
    among = np.sort(scores if ranked is None else scores[ranked])
    wrong = min(round(share * len(among)), len(among))
    return scores >= among[-wrong] if wrong else np.zeros(len(scores), bool)


def _mean(values: Floats, empty: float) -> Floats:
    """(n,) means over the rows that are not NaN; `empty` where all are."""
    seen = np.isfinite(values)
    counts = seen.sum(0)
    totals = np.where(seen, values, 0.0).sum(0)
    return np.divide(totals, counts, out=np.full(counts.shape, empty), where=counts > 0)


def _unseen_last(scores: Floats, values: ArrayLike) -> Floats:
    seen = ~np.isnan(np.asarray(values, np.float64)).all(axis=0)
    return np.where(seen, np.maximum(scores, TINY), 0.0)


def _by_epoch(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or not array.size:
        raise UsageError(f"{name}: expected one row per epoch (epochs, n), got {array.shape}")
    return array
