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
NUMBERS = 2_000_000
"""Random numbers of permutations that are held at a time."""


def feature_test(
    features: Floats,
    trusted: int,
    seed: int,
    labels: Ints | None = None,
    permutations: int = PERMUTATIONS,
) -> float:
    """P-value of the maximum mean discrepancy between the inputs, p(x).

    MMD² = ‖mean φ(train) − mean φ(trusted)‖² (Gretton et al. 2012). With `labels` the samples
    are permuted within each class, and p(x|y) is tested.

    Args:
        features: (n + m, d) φ of the training samples, then of the trusted ones.
        trusted: m.
        seed: Decides the permutations.
        labels: (n + m,), or None.
        permutations: How many.
    """
    phi = features[:, :MMD_FEATURES].astype(np.float32)
    generator = numpy_generator(seed, "feature test")
    groups = np.zeros(len(phi), np.int64) if labels is None else labels
    found, others = _differences(phi, groups, trusted, generator, permutations)
    return _p_value(float(np.square(found).sum()), np.square(others).sum(1))


def label_test(train: Ints, trusted: Ints, seed: int, permutations: int = PERMUTATIONS) -> float:
    """P-value of a difference between the class counts (k,) of both, by Pearson's statistic."""
    pooled = train + trusted
    expected = np.maximum(pooled * (trusted.sum() / pooled.sum()), 1e-12)
    generator = numpy_generator(seed, "label test")
    draws = generator.multivariate_hypergeometric(pooled, int(trusted.sum()), permutations)
    others = (np.square(draws - expected) / expected).sum(1)
    return _p_value(float((np.square(trusted - expected) / expected).sum()), others)


def loss_test(
    losses: Floats, labels: Ints, trusted: int, seed: int, permutations: int = PERMUTATIONS
) -> tuple[float, float]:
    """P-values of training labels fitting worse, and better, than trusted ones, given the class.

    Labels that are wrong at random fit worse. Errors that follow from the inputs, as those of rules
    and people do, are learned as if they were right: then it is the trusted labels that fit worse.
    The statistic is the mean over trusted samples of their class's mean training loss less
    their own loss. Samples are permuted within each class, so that other class shares alone
    do not count.

    Args:
        losses: (n + m,) losses under predictions of a classifier that was fitted without
            the sample, training samples first.
        labels: (n + m,) the given labels.
        trusted: m.
        seed: Decides the permutations.
        permutations: How many.
    """
    generator = numpy_generator(seed, "loss test")
    found, others = _differences(losses[:, None], labels, trusted, generator, permutations)
    value = float(found[0])
    return _p_value(value, others[:, 0]), _p_value(-value, -others[:, 0])


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


def _differences(
    values: NDArray[np.floating],
    groups: Ints,
    trusted: int,
    generator: np.random.Generator,
    permutations: int,
) -> tuple[Floats, Floats]:
    """Σ over groups of m (mean of training − mean of trusted values): (d,), and permuted (p, d).

    A group's share is (m/n) Σ own − (m/n + 1) Σ chosen, m being its trusted samples and n the
    others. Which m are called trusted is permuted within each group.
    """
    is_trusted = np.arange(len(values)) >= len(values) - trusted
    sizes = np.bincount(groups)
    m = np.bincount(groups, is_trusted, len(sizes))
    rows = np.flatnonzero((m[groups] > 0) & (m[groups] < sizes[groups]))
    values, groups, is_trusted = values[rows], groups[rows], is_trusted[rows]
    factor = np.divide(m, sizes - m, out=np.zeros(len(m)), where=sizes > m)[groups, None]
    total, own = (factor * values).sum(0), ((factor + 1) * values).astype(values.dtype)
    # Sorted by group, the first m of each are those that are called trusted.
    sizes = np.where((m > 0) & (m < sizes), sizes, 0)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = rank < np.repeat(m, sizes)
    others = np.empty((permutations, values.shape[1]))
    part = max(1, NUMBERS // max(1, len(rows)))
    for start in range(0, permutations, part):
        turns = min(part, permutations - start)
        order = np.argsort(generator.random((turns, len(rows))) + groups, axis=1)[:, first]
        chosen = np.zeros((turns, len(rows)), values.dtype)
        np.put_along_axis(chosen, order, 1, axis=1)
        others[start : start + turns] = total - chosen @ own
    return total - is_trusted.astype(values.dtype) @ own, others


def _nearest(points: Floats, reference: Floats) -> Floats:
    """(n,) squared distance of each point to the nearest reference point."""
    squares = np.square(reference).sum(1)
    pieces = [
        (np.square(piece).sum(1)[:, None] - 2 * piece @ reference.T + squares).min(1)
        for piece in np.array_split(points, max(1, len(points) // 500))
    ]
    return np.concatenate(pieces)


def _p_value(found: float, others: Floats) -> float:
    # Rounding (of sums in float32) must not make a tie a difference.
    slack = 1e-6 * max(abs(found), float(np.abs(others).max(initial=0.0)))
    return (1 + int((others >= found - slack).sum())) / (1 + len(others))
