"""How many labels are wrong: from verified rows, made narrower by predictions for all rows.

The share of wrong labels among m rows drawn at random is an estimate by itself. With g(x) the
predicted probability that a label is wrong, or several of them,

    λ·(mean of g over the other rows) + mean over the verified rows of (wrong − λ·g)

estimates the share among the rows that nobody verified without a bias, whatever g is, if no row is
predicted by what was fitted on it; the better g, the smaller is the variance. The verified ones are
known. This is cross-prediction-powered inference (Zrnic and Candès 2024): verified rows of a fold
meet the predictions fitted on the other folds, and the mean over the other rows is that of the same
fits. λ is as it makes the variance smallest (Angelopoulos et al. 2023).

The interval is Wilson's, with the variance of the binomial scaled by what the predictions leave of
it and by 1 − m/n, since the rows are drawn without replacement. Where few verified labels are wrong
(or few are right), it is the exact one of the hypergeometric distribution, or of the binomial one
with as many rows as those drawn with different probabilities are worth.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, hypergeom, t

from diw.labels.transitions import Bools, Floats, Ints

FEW = 8
"""With fewer wrong (or right) labels among the verified ones the interval is exact."""
LEVEL = 0.95
RANK = 1e-3
"""Combinations of predictions that vary less, relative to the others, are none."""
MISSED = 2.0
"""Verified rows on which predictions are quite wrong and that chance left out: their number."""


@dataclass(frozen=True)
class Share:
    """A share of rows, with its 95% interval."""

    value: float
    low: float
    high: float

    def joined(self, known: Bools, n: int) -> "Share":
        """The share of these n rows and of others, for which it is known."""
        total, extra = n + len(known), float(known.sum())
        return Share(*((n * value + extra) / total for value in self.as_list()))

    def as_list(self) -> list[float]:
        """For a JSON file."""
        return [self.value, self.low, self.high]


def estimate_share(
    observed: Bools, predicted: Floats, mean: Floats, n: int, drawn: Floats | None = None
) -> Share:
    """The share of rows for which something holds, such as a wrong label.

    Args:
        observed: (m,) whether it holds for the verified rows.
        predicted: (m, q) its probability for them, by q predictions from fits without the row.
        mean: (q,) their means over the rows that nobody verified, by the same fits.
        n: How many rows there are in all.
        drawn: (m,) probabilities with which the rows were drawn; None: all the same.
    """
    # A row drawn with probability π stands for (1 − π)/π rows that nobody verified.
    weights = np.ones(len(observed)) if drawn is None else (1 - drawn) / drawn + 1e-12
    m = float(weights.sum() ** 2 / (weights**2).sum())
    p = float(np.average(observed, weights=weights))
    if min(p, 1 - p) * m < FEW:
        if np.ptp(weights) <= RANK * weights.max():
            return exact_share(round(p * round(m)), round(m), n)
        return _effective_share(p, m).joined(observed, n - len(observed))
    root = np.sqrt(weights / weights.sum())[:, None]
    design = root * (predicted - np.average(predicted, axis=0, weights=weights))
    power = np.linalg.lstsq(design, root[:, 0] * (observed - p), rcond=RANK)[0]
    left = observed - predicted @ power
    rest = float(np.average(left, weights=weights))
    # A row that decides λ is fitted too well: its residual is what it is when left out.
    axes, sizes, _ = np.linalg.svd(design, full_matrices=False)
    leverage = (axes[:, sizes > RANK * sizes.max()] ** 2).sum(axis=1) + root[:, 0] ** 2
    errors = (left - rest) / np.maximum(1 - leverage, 0.1)
    variance = float(np.average(errors**2, weights=weights**2))
    variance = min(variance + MISSED / m, max(variance, p * (1 - p)))
    free = max(m - 1 - len(power), 1.0)
    verified = len(observed) / n
    value = verified * float(observed.mean()) + (1 - verified) * (float(mean @ power) + rest)
    value = min(max(value, 0.0), 1.0)
    variance = float(np.average((left - rest) ** 2, weights=weights**2)) * m / max(m - 2, 1)
    variance = min(variance + MISSED / m, max(variance, p * (1 - p)))
    return _wilson(value, variance / (p * (1 - p)) * (1 - verified) / m, free)


def _wilson(value: float, scale: float, free: float) -> Share:
    """All θ with (value − θ)² ≤ t² scale θ (1 − θ); t is Student's, with its degrees of freedom."""
    factor = float(t.ppf(0.5 + LEVEL / 2, free)) ** 2 * scale
    centre = (value + factor / 2) / (1 + factor)
    half = np.sqrt(factor * (value * (1 - value) + factor / 4)) / (1 + factor)
    return Share(value, float(max(centre - half, 0.0)), float(min(centre + half, 1.0)))


def _effective_share(value: float, m: float) -> Share:
    """Clopper and Pearson's interval for a share found in effectively m rows (Korn, Graubard 1998).

    One-sided where all or none are wrong, as `exact_share`.
    """
    wrong, right = m * value, m * (1 - value)
    tail = 1 - LEVEL if value in (0, 1) else (1 - LEVEL) / 2
    low = float(beta.ppf(tail, wrong, right + 1)) if value > 0 else 0.0
    high = float(beta.isf(tail, wrong + 1, right)) if value < 1 else 1.0
    return Share(value, low, high)


def exact_share(wrong: int, m: int, n: int) -> Share:
    """Clopper and Pearson's interval for rows drawn without replacement.

    All totals under which so many wrong ones among the m, or more, and so many or fewer, have a
    probability of at least 2.5%; where all are right or all are wrong, 5% on the one side that is
    left.

    Args:
        wrong: For how many of the verified rows it holds.
        m: The number of verified rows.
        n: The number of all rows.
    """
    low, high = exact_totals([wrong], m, n)
    return Share(wrong / m, float(low[0]) / n, float(high[0]) / n)


def exact_totals(wrong: ArrayLike, m: int, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The smallest and the largest totals of wrong rows among n, given those among m of them.

    Args:
        wrong: (c,) numbers of wrong ones among m verified rows.
        m: The number of verified rows.
        n: The number of all rows.
    """
    found = np.atleast_1d(np.asarray(wrong, np.int64))
    one_sided = (found == 0) | (found == m)
    tail = np.where(one_sided, 1 - LEVEL, (1 - LEVEL) / 2)
    least, most = found, n - (m - found)

    def more(total: Ints) -> Floats:
        return hypergeom.sf(found - 1, n, total, m)

    def fewer(total: Ints) -> Floats:
        return hypergeom.cdf(found, n, total, m)

    low = _first(lambda total: more(total) >= tail, least, most)
    high = n - _first(lambda right: fewer(n - right) >= tail, n - most, n - least)
    return np.where(found == 0, 0, low), np.where(found == m, n, high)


def _first(holds: Any, low: Ints, high: Ints) -> Ints:
    """(c,) the smallest integers from `low` to `high` for which a monotone condition holds."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true, low, np.minimum(middle + 1, high)), np.where(true, middle, high)
    return low
