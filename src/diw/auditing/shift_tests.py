"""Tests of whether training and trusted samples differ, and in what; all by permutation.

Under the hypothesis that they do not differ, it is chance alone which samples are called trusted.
So a statistic is compared with its values for other choices of as many samples. The p-value
(1 + those at least as large) / (1 + all of them) is valid at any sample size.
"""

import numpy as np
from numpy.typing import NDArray

from diw.labels.transitions import Floats, Ints
from diw.seeding import numpy_generator

PERMUTATIONS = 999
MMD_FEATURES = 300
"""Random features of which the discrepancy is made."""
OUTSIDE = 0.99
"""Quantile of the distances between training samples beyond which a sample is outside of them."""
REFERENCE = 4000
"""Training samples to which distances are measured."""


def feature_test(features: Floats, trusted: int, seed: int, labels: Ints | None = None) -> float:
    """P-value of the maximum mean discrepancy between the inputs, p(x).

    MMD² = ‖mean φ(train) − mean φ(trusted)‖² (Gretton et al. 2012). With `labels` the samples
    are permuted within each class, and p(x|y) is tested.

    Args:
        features: (n + m, d) φ of the training samples, then of the trusted ones.
        trusted: m.
        seed: Decides the permutations.
        labels: (n + m,), or None.
    """
    total = len(features)
    phi = features[:, :MMD_FEATURES].astype(np.float32)
    groups = [np.arange(total)]
    if labels is not None:
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels[-trusted:])]
    generator = numpy_generator(seed, "feature test")
    difference, others = np.zeros(phi.shape[1]), np.zeros((PERMUTATIONS, phi.shape[1]))
    for group in groups:
        m, sums = int((group >= total - trusted).sum()), phi[group].sum(0)
        if m == len(group):
            continue

        def apart(
            chosen: Floats, m: int = m, n: int = len(group) - m, sums: Floats = sums
        ) -> Floats:
            return m * ((sums - chosen) / n - chosen / m)

        difference += apart(phi[group[group >= total - trusted]].sum(0))
        for turn in range(PERMUTATIONS):
            others[turn] += apart(phi[generator.choice(group, m, replace=False)].sum(0))
    return _p_value(float(np.square(difference).sum()), np.square(others).sum(1))


def label_test(train: Ints, trusted: Ints, seed: int) -> float:
    """P-value of a difference between the class counts (k,) of both, by Pearson's statistic."""
    pooled = train + trusted
    expected = np.maximum(pooled * (trusted.sum() / pooled.sum()), 1e-12)
    generator = numpy_generator(seed, "label test")
    draws = generator.multivariate_hypergeometric(pooled, int(trusted.sum()), PERMUTATIONS)
    others = (np.square(draws - expected) / expected).sum(1)
    return _p_value(float((np.square(trusted - expected) / expected).sum()), others)


def loss_test(losses: Floats, labels: Ints, trusted: int, seed: int) -> float:
    """P-value of training labels fitting their inputs worse than trusted ones, given the class.

    The statistic is the mean over trusted samples of their class's mean training loss less
    their own loss. Samples are permuted within each class, so that other class shares alone
    do not count.

    Args:
        losses: (n + m,) losses under predictions of a classifier that was fitted without
            the sample, training samples first.
        labels: (n + m,) the given labels.
        trusted: m.
        seed: Decides the permutations.
    """
    generator = numpy_generator(seed, "loss test")
    is_trusted = np.arange(len(losses)) >= len(losses) - trusted
    found, others = 0.0, np.zeros(PERMUTATIONS)
    for label in np.unique(labels[is_trusted]):
        own = losses[labels == label]
        m = int((is_trusted & (labels == label)).sum())
        n = len(own) - m
        if not n:
            continue
        # m times the difference of means is (Σ own − Σ chosen)·m/n − Σ chosen.
        chosen = np.array(
            [own[generator.choice(len(own), m, replace=False)].sum() for _ in range(PERMUTATIONS)]
        )
        others += (own.sum() - chosen) * m / n - chosen
        mine = float(losses[is_trusted & (labels == label)].sum())
        found += (own.sum() - mine) * m / n - mine
    return _p_value(found, others)


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """P-values adjusted by Holm (1979): together they err in at most 5% at the 5% level."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def class_ratios(train: Ints, trusted: Ints) -> NDArray[np.float64]:
    """(k, 3) share of each class among trusted over that among training labels; 95% interval.

    Columns: ratio, lower and upper limit, by the normal approximation of its logarithm with half
    a sample added to each count.
    """
    a, b = trusted + 0.5, train + 0.5
    ratio = (a / a.sum()) / (b / b.sum())
    error = np.sqrt(np.maximum(1 / a - 1 / a.sum() + 1 / b - 1 / b.sum(), 0))
    return np.stack([ratio, ratio * np.exp(-1.96 * error), ratio * np.exp(1.96 * error)], axis=1)


def outside_share(points: Floats, trusted: int, seed: int) -> tuple[float, float, float]:
    """Share of trusted samples outside the training samples, and its 95% interval (Wilson).

    Outside is whoever is farther from the nearest training sample than 99% of other training
    samples are. So 1% is what no shift gives.

    Args:
        points: (n + m, d), training samples first.
        trusted: m.
        seed: Decides to which training samples distances are measured.
    """
    n = len(points) - trusted
    order = numpy_generator(seed, "support").permutation(n)
    half = max(1, n // 2)
    reference, others = points[order[:half][:REFERENCE]], points[order[half:][:REFERENCE]]
    limit = float(np.quantile(_nearest(others, reference), OUTSIDE))
    share = float((_nearest(points[n:], reference) > limit).mean())
    return (share, *wilson(share, trusted))


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    z2 = 1.96**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _nearest(points: Floats, reference: Floats) -> Floats:
    """(n,) squared distance of each point to the nearest reference point."""
    squares = np.square(reference).sum(1)
    pieces = [
        (np.square(piece).sum(1)[:, None] - 2 * piece @ reference.T + squares).min(1)
        for piece in np.array_split(points, max(1, len(points) // 500))
    ]
    return np.concatenate(pieces)


def _p_value(found: float, others: Floats) -> float:
    # Rounding must not make a tie a difference.
    slack = 1e-9 * max(1.0, abs(found))
    return (1 + int((others >= found - slack).sum())) / (1 + len(others))
