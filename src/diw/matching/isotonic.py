"""A ratio that rises or falls with the value: no kernel, no width.

For losses it is plain that the ratio of trusted to training density falls: what is hard for
the network is rarer among trusted samples. The monotone ratio of largest likelihood (Dykstra,
Kochar & Robertson 1995) comes from isotonic regression: among all values in their order, fit the
share p of trusted ones by a monotone function, and

    w = (n/m) · p/(1 − p).

Rising and falling are both fitted, and the likelier is taken.
"""

import numpy as np
from numpy.typing import NDArray

from diw.matching.backend import NUMPY, FloatArray, Values, like, to_numpy
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem


def isotonic(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """The monotone ratio at the training values.

    Raises:
        ValueError: The values have more than one column.
    """
    z = to_numpy(problem.z)
    if z.ndim == 2 and z.shape[1] > 1:
        raise ValueError(
            f"z_train: has {z.shape[1]} columns; the isotonic ratio needs one number per sample"
        )
    z, n = z.ravel(), problem.n
    values, places = np.unique(z, return_inverse=True)
    train = np.bincount(places[:n], minlength=len(values)).astype(np.float64)
    trusted = np.bincount(places[n:], minlength=len(values)).astype(np.float64)
    rising, falling = _fit(train, trusted), _fit(train[::-1], trusted[::-1])[::-1]
    fits = [(_likelihood(p, train, trusted), p) for p in (falling, rising)]
    likelihood, p = max(fits, key=lambda fit: fit[0])
    p = p[places[:n]]  # below one, because each level here holds a training value
    w = np.minimum(p / (1.0 - p) * (n / (len(z) - n)), problem.bound)
    match = Match(
        weights=like(z_train, NUMPY.array(w), problem.bound),
        status="optimal",
        iterations=2,
        gamma=0.0,
        rank=len(np.unique(p)),
        objective=-likelihood / len(z),
        primal_residual=0.0,
        dual_residual=0.0,
        complementarity=0.0,
        trace_error=0.0,
        error_bound=0.0,
    )
    return match, True


def _fit(train: FloatArray, trusted: FloatArray) -> FloatArray:
    """The rising shares of trusted samples, one per distinct value: pooled adjacent violators."""
    starts, ours, theirs = _runs(train, trusted)
    levels: list[tuple[float, float, int]] = []  # trusted, all, first value
    for start, a, b in zip(starts.tolist(), ours.tolist(), theirs.tolist(), strict=True):
        good, total, first = b, a + b, start
        while levels and levels[-1][0] * total >= good * levels[-1][1]:
            before = levels.pop()
            good, total, first = good + before[0], total + before[1], before[2]
        levels.append((good, total, first))
    share = np.array([good / total for good, total, _ in levels])
    firsts = np.array([first for *_, first in levels] + [len(train)])
    return np.repeat(share, np.diff(firsts))


def _runs(
    train: FloatArray, trusted: FloatArray
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Neighbours with equal shares, pooled: where they start, and their counts.

    Most values are pure, training or trusted, so that runs of them shorten the list.
    """
    share = trusted / (train + trusted)
    starts = np.concatenate([[0], (share[1:] != share[:-1]).nonzero()[0] + 1])
    return starts, np.add.reduceat(train, starts), np.add.reduceat(trusted, starts)


def _likelihood(p: FloatArray, train: FloatArray, trusted: FloatArray) -> float:
    """Σ log p over trusted samples + Σ log(1 − p) over training samples."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(trusted > 0, trusted * np.log(p), 0.0)
        terms += np.where(train > 0, train * np.log(1.0 - p), 0.0)
    return float(terms.sum())
