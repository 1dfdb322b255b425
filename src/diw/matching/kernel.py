"""The Gaussian kernel and the rules that choose its width.

The kernel is k(z, z') = exp(−γ‖z − z'‖²), with `gamma` in scikit-learn's
meaning. A rule turns the training values into γ:

- `"quantile:Q"`: γ is itself the Q-quantile of the pairwise (unsquared)
  distances, which is how the authors of the paper choose it: 0.01 for label noise,
  0.99 for class-prior shift (Fang et al. 2020, supplement).
- `"median"`: γ = 1/(2·median²), the median heuristic.
- `"scale"`: γ = 1/(d·variance), scikit-learn's default for its kernels.

A rule that meets a distance of zero (ties) takes the smallest positive distance
instead; when all values are equal there is no width to find, γ is 0 and the
kernel is constant.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.matching.width import quantile
from diw.seeding import numpy_generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOSS_RULE = "quantile:0.01"
FEATURE_RULE = "median"

# Up to this many rows all pairs of a (n, d) array are looked at; above it a sample of pairs.
EXACT_ROWS = 8192
# By the binomial law a sample of this size misplaces the level of a 1% quantile by at most
# 0.0005 and that of a median by at most 0.0025, with probability 1 − 6e-7 (five standard errors).
SAMPLED_PAIRS = 1_000_000

_ROUNDING = 1e-14  # of the norms: what a squared distance by a matrix product may be off
_BLOCK = 1 << 22  # numbers a temporary block may hold


def parse_rule(rule: str) -> tuple[str, float]:
    """Split a rule's name into its kind and its quantile: `"quantile:0.01"` is ("quantile", 0.01).

    Raises:
        ValueError: The rule is unknown or its quantile is not in [0, 1].
    """
    kind, _, argument = rule.partition(":")
    if kind == "quantile" and argument:
        try:
            level = float(argument)
        except ValueError:
            level = math.nan
        if 0 <= level <= 1:
            return kind, level
        raise ValueError(f"gamma: {rule!r} needs a quantile between 0 and 1, as in 'quantile:0.01'")
    if kind in ("median", "scale") and not argument:
        return kind, 0.5
    raise ValueError(
        f"gamma: unknown rule {rule!r}; give a positive number, 'quantile:Q', 'median' or 'scale'"
    )


def is_distance(rule: str) -> bool:
    """Whether a rule's γ grows with the scale of the values, as the paper's quantile does."""
    return parse_rule(rule)[0] == "quantile"


def width(z: Any, rule: str) -> float:
    """γ by a rule, from training values of shape (n,) or (n, d); 0.0 when all are equal.

    Distances come from all pairs when `z` is one-dimensional (any n) or has at
    most `EXACT_ROWS` rows, otherwise from `SAMPLED_PAIRS` random pairs, drawn
    from a fixed seed so that the same data always have the same width.
    """
    kind, level = parse_rule(rule)
    if z.ndim == 2 and z.shape[1] == 1:
        z = z[:, 0]
    if len(z) < 2:
        return 0.0
    if kind == "scale":
        columns = 1 if z.ndim == 1 else z.shape[1]
        variance = float(to_numpy(z).var())
        return 1.0 / max(columns * variance, 1e-300) if variance > 0 else 0.0
    distance = distance_quantile(z, level)
    if kind == "quantile":
        return distance
    return 1.0 / max(2.0 * distance**2, 1e-300) if distance > 0 else 0.0


def distance_quantile(z: Any, level: float) -> float:
    """The `level`-quantile of the distances |z_i − z_j|, i < j, linearly interpolated.

    Zero is replaced by the smallest positive distance, if there is one.
    """
    if z.ndim == 1:
        x = np.sort(to_numpy(z))
        value = quantile(x, level)
        gaps = np.diff(x) if value == 0 else x[:0]
    else:
        squares = _all_squares(z) if len(z) <= EXACT_ROWS else _sampled_squares(z)
        low, high, part = _around(squares, level * (squares.size - 1))
        value = (1 - part) * math.sqrt(low) + part * math.sqrt(high)
        gaps = np.sqrt(squares[squares > 0]) if value == 0 else squares[:0]
    if value == 0:
        value = float(gaps.min(where=gaps > 0, initial=np.inf))
    return float(value) if math.isfinite(value) else 0.0


def _around(values: Floats, position: float) -> tuple[float, float, float]:
    """The order statistics on both sides of a fractional place, and the upper one's share."""
    low = min(int(position), values.size - 1)
    if low == values.size - 1:
        return float(values.max()), float(values.max()), 0.0
    ordered = np.partition(values, low + 1)
    return float(ordered[: low + 1].max()), float(ordered[low + 1]), position - low


def _all_squares(z: Any) -> Floats:
    """The squared distances of all pairs i < j of the rows of `z`."""
    n = len(z)
    norms = (z * z).sum(1)
    below = 1e-5 * float(norms.max())  # leaves 1e-11 of rounding in the others
    if n <= 128:
        rows, columns, places = _upper(n)
        squares = to_numpy(squared_distances(z, z, -1.0, norms, norms)).take(places)
        close = (squares <= below).nonzero()[0]
        if close.size:
            difference = z[rows[close]] - z[columns[close]]
            squares[close] = to_numpy((difference * difference).sum(1))
        return squares
    squares = np.empty(n * (n - 1) // 2)
    done, step = 0, max(1, _BLOCK // n)
    for i in range(0, n, step):
        part = slice(i, i + step)
        block = to_numpy(squared_distances(z[part], z[i:], below, norms[part], norms[i:]))
        for k, row in enumerate(block):
            squares[done : done + row.size - k - 1] = row[k + 1 :]
            done += row.size - k - 1
    return squares


@lru_cache(maxsize=128)
def _upper(n: int) -> tuple[Ints, Ints, Ints]:
    """The entries above the diagonal of an (n, n) matrix: rows, columns, places in memory."""
    rows, columns = np.triu_indices(n, 1)
    return rows, columns, rows * n + columns


def _sampled_squares(z: Any) -> Floats:
    """The squared distances of `SAMPLED_PAIRS` random pairs of different rows of `z`."""
    generator = numpy_generator(0, "kernel width")
    n = len(z)
    left = generator.integers(n, size=SAMPLED_PAIRS)
    right = (left + generator.integers(1, n, size=SAMPLED_PAIRS)) % n
    squares = np.empty(SAMPLED_PAIRS)
    step = max(1, _BLOCK // z.shape[1])
    for i in range(0, SAMPLED_PAIRS, step):
        difference = z[left[i : i + step]] - z[right[i : i + step]]
        squares[i : i + step] = to_numpy((difference * difference).sum(1))
    return squares


def gaussian(a: Any, b: Any, gamma: float, norms: Any = None) -> Any:
    """exp(−γ‖a_i − b_j‖²) of shape (len(a), len(b)), of two (·, d) arrays or tensors.

    `norms` are the ‖a_i‖², for a caller that has them.
    """
    if a.shape[1] == 1:
        kernel = a - b[:, 0]
        kernel *= kernel
    else:
        # Rounding moves γ‖a − b‖² by about 1e-16·γ‖a‖². Where that is too much, the
        # distances that matter (a kernel value above 1e-20) are computed from differences.
        others = (b * b).sum(1)
        exact = gamma * float(others.max()) > 1e3
        kernel = squared_distances(a, b, 46.0 / gamma if exact else -1.0, norms, others)
    kernel *= -gamma
    return np.exp(kernel, out=kernel) if isinstance(kernel, np.ndarray) else kernel.exp_()


def squared_distances(
    a: Any, b: Any, below: float, norms_a: Any = None, norms_b: Any = None
) -> Any:
    """‖a_i − b_j‖² of shape (len(a), len(b)), of two (·, d) arrays or tensors.

    One matrix product gives all of them, with an absolute error of about
    1e-16·‖a‖²; those that may be at most `below` are computed again from differences.
    `norms_a` and `norms_b` are the ‖a_i‖² and ‖b_j‖², for a caller that has them.
    """
    norms_a = ((a * a).sum(1) if norms_a is None else norms_a)[:, None]
    norms_b = (b * b).sum(1) if norms_b is None else norms_b
    squares = a @ b.T
    squares *= -2.0
    squares += norms_a
    squares += norms_b
    if below >= 0:
        close = (squares <= below + _ROUNDING * (norms_a + norms_b)).nonzero()
        rows, columns = close if isinstance(close, tuple) else (close[:, 0], close[:, 1])
        step = max(1, _BLOCK // a.shape[1])
        for i in range(0, len(rows), step):
            left, right = rows[i : i + step], columns[i : i + step]
            difference = a[left] - b[right]
            squares[left, right] = (difference * difference).sum(1)
    return (
        np.maximum(squares, 0.0, out=squares)
        if isinstance(squares, np.ndarray)
        else (squares.clamp_(min=0.0))
    )


def to_numpy(x: Any) -> Floats:
    """An array, or a tensor on any device, as a NumPy array."""
    return x.cpu().numpy() if hasattr(x, "cpu") else x
