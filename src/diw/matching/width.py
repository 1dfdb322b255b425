"""Quantiles of the differences of numbers, without the list of all n(n−1)/2 of them."""

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAR_PAIRS = 1 << 15  # up to so many neighbours it is faster to list them than to count


def quantile(x: Floats, level: float) -> float:
    """The `level`-quantile of x_j − x_i, i < j, of sorted `x` (n,), linearly interpolated.

    It is that of the full list, in O(n log n) time and O(n) memory.
    """
    value = _among_neighbours(x, level)
    return _by_counting(x, level) if value is None else value


def _among_neighbours(x: Floats, level: float) -> float | None:
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


def _by_counting(x: Floats, level: float) -> float:
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


def _pivot(x: Floats, start: Ints, stop: Ints) -> float:
    """The weighted median of the rows' middles: at least a quarter lies on either side."""
    sizes = stop - start
    rows = sizes.nonzero()[0]
    middles = x[(start[rows] + stop[rows]) // 2] - x[rows]
    order = middles.argsort()
    total = sizes[rows][order].cumsum()
    return float(middles[order[total.searchsorted(total[-1] // 2)]])


def _select(x: Floats, times: Ints, start: Ints, stop: Ints, position: float) -> float:
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
