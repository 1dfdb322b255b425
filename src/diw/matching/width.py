"""The width of the kernel: the rules that turn training values into γ.

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

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from diw.matching.backend import Array, FloatArray, to_numpy
from diw.matching.kernel import BLOCK, squared_distances
from diw.seeding import numpy_generator

IntArray = NDArray[np.int64]

LOSS_RULE = "quantile:0.01"
FEATURE_RULE = "median"

# Up to this many rows all pairs of a (n, d) array are looked at; above it a sample of pairs.
EXACT_ROWS = 8192
# By the binomial law a sample of this size misplaces the level of a 1% quantile by at most
# 0.0005 and that of a median by at most 0.0025, with probability 1 − 6e-7 (five standard errors).
SAMPLED_PAIRS = 1_000_000
NEAR_PAIRS = 1 << 15  # up to so many pairs of neighbours it is faster to list them than to count


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


def width(z: Array, rule: str) -> float:
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


def distance_quantile(z: Array, level: float) -> float:
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


def _around(values: FloatArray, position: float) -> tuple[float, float, float]:
    """The order statistics on both sides of a fractional place, and the upper one's share."""
    low = min(int(position), values.size - 1)
    if low == values.size - 1:
        return float(values.max()), float(values.max()), 0.0
    ordered = np.partition(values, low + 1)
    return float(ordered[: low + 1].max()), float(ordered[low + 1]), position - low


def _all_squares(z: Array) -> FloatArray:
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
    done, step = 0, max(1, BLOCK // n)
    for i in range(0, n, step):
        part = slice(i, i + step)
        block = to_numpy(squared_distances(z[part], z[i:], below, norms[part], norms[i:]))
        for k, row in enumerate(block):
            squares[done : done + row.size - k - 1] = row[k + 1 :]
            done += row.size - k - 1
    return squares


@lru_cache(maxsize=128)
def _upper(n: int) -> tuple[IntArray, IntArray, IntArray]:
    """The entries above the diagonal of an (n, n) matrix: rows, columns, places in memory."""
    rows, columns = np.triu_indices(n, 1)
    return rows, columns, rows * n + columns


def _sampled_squares(z: Array) -> FloatArray:
    """The squared distances of `SAMPLED_PAIRS` random pairs of different rows of `z`."""
    generator = numpy_generator(0, "kernel width")
    n = len(z)
    left = generator.integers(n, size=SAMPLED_PAIRS)
    right = (left + generator.integers(1, n, size=SAMPLED_PAIRS)) % n
    squares = np.empty(SAMPLED_PAIRS)
    step = max(1, BLOCK // z.shape[1])
    for i in range(0, SAMPLED_PAIRS, step):
        difference = z[left[i : i + step]] - z[right[i : i + step]]
        squares[i : i + step] = to_numpy((difference * difference).sum(1))
    return squares


def quantile(x: FloatArray, level: float) -> float:
    """The `level`-quantile of x_j − x_i, i < j, of sorted `x` (n,), linearly interpolated.

    It is that of the full list, in O(n log n) time and O(n) memory.
    """
    value = _among_neighbours(x, level)
    return _by_counting(x, level) if value is None else value


def _among_neighbours(x: FloatArray, level: float) -> float | None:
    """The quantile where few differences are below it; None where they are many.

    If x_{i+s} − x_i is among the c smallest, so are all s(s+1)/2 differences
    of the s + 1 values from x_i on. So neighbours at most s apart, with s(s+1)/2 > c, will do.
    """
    n = x.size
    position = level * (n * (n - 1) // 2 - 1)
    wanted = int(position)
    reach = math.isqrt(2 * (wanted + 2)) + 1
    if reach >= n or n * reach > NEAR_PAIRS:
        return None
    padded = np.full(n + reach, np.inf)
    padded[:n] = x
    step = padded.strides[0]
    ahead = as_strided(padded[1:], (n, reach), (step, step))
    differences = (ahead - x[:, None]).ravel()
    differences.partition((wanted, wanted + 1))
    low, high = differences[wanted : wanted + 2].tolist()
    return low + (position - wanted) * (high - low)


def _by_counting(x: FloatArray, level: float) -> float:
    """The quantile by a bracket around its place.

    The number of differences ≤ t is n binary searches. Interpolating on that
    count closes a bracket around the wanted place until it holds a few n
    differences, which are then listed and sorted: O(n log n) time, O(n) memory,
    and the value is that of the full list. Equal values are merged and counted
    first, so that no single difference can fill the bracket.
    """
    new = np.empty(x.size, dtype=bool)
    new[:1] = True
    np.not_equal(x[1:], x[:-1], out=new[1:])
    places = np.append(new.nonzero()[0], x.size)  # places[i]: how many values lie before value i
    times, x = np.diff(places), x[new]
    n = x.size
    position = level * (places[-1] * (places[-1] - 1) // 2 - 1)
    wanted = int(position)
    zeros = int((times * (times - 1) // 2).sum())
    pairs = int((times * (places[-1] - places[1:])).sum()) + zeros
    if n < 2 or position <= zeros - 1:
        return 0.0
    rows = np.arange(n)
    start, stop = rows + 1, np.full(n, n)  # row i of the bracket: x[start[i]:stop[i]] − x[i]
    low, high, under, upto = 0.0, float(x[-1] - x[0]), zeros, pairs
    for attempt in range(200):
        if int((stop - start).sum()) <= 2 * n + 2048:
            break
        if attempt % 3 == 2:
            t = _pivot(x, start, stop)
        else:
            t = low + (high - low) * (wanted + 0.5 - under) / (upto - under)
        ends = np.clip(x.searchsorted(x + t, side="right"), start, stop)
        count = int((times * (places[ends] - places[1:])).sum()) + zeros
        if count <= wanted:
            start, under, low = ends, count, t
        else:
            stop, upto, high = ends, count, t
    return _select(x, times, start, stop, position - under)


def _pivot(x: FloatArray, start: IntArray, stop: IntArray) -> float:
    """The weighted median of the rows' middles: at least a quarter lies on either side."""
    sizes = stop - start
    rows = sizes.nonzero()[0]
    middles = x[(start[rows] + stop[rows]) // 2] - x[rows]
    order = middles.argsort()
    total = sizes[rows][order].cumsum()
    return float(middles[order[total.searchsorted(total[-1] // 2)]])


def _select(
    x: FloatArray, times: IntArray, start: IntArray, stop: IntArray, position: float
) -> float:
    """The interpolated value at `position` among x[start[i]:stop[i]] − x[i], counted with `times`.

    A position just before zero (between a tie of zeros and the first difference) is allowed.
    """
    sizes = stop - start
    left = np.repeat(np.arange(x.size), sizes)
    right = np.arange(left.size) - np.repeat(sizes.cumsum() - sizes - start, sizes)
    differences = x[right] - x[left]
    order = differences.argsort()
    upto = (times[left] * times[right])[order].cumsum()

    def at(place: int) -> float:
        if place < 0:
            return 0.0
        index = int(upto.searchsorted(place, side="right"))
        if index < order.size:
            return float(differences[order[index]])
        beyond = stop < x.size  # the next difference after the bracket
        return float((x[stop[beyond]] - x[beyond.nonzero()[0]]).min())

    low = math.floor(position)
    part = position - low
    value = at(low)
    return value + part * (at(low + 1) - value) if part else value
