"""What is asked: the values of a match, checked and scaled, and the width of the kernel.

Rules turn training values into γ:

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
import sys
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from diw.matching.gram import BLOCK, EPSILON, FloatArray, magnitude, rounding, squared_distances
from diw.seeding import numpy_generator

IntArray = NDArray[np.int64]

LOSS_RULE = "quantile:0.01"
FEATURE_RULE = "median"

FEW_ROWS = 512  # beyond this many rows, all distances would be slow
IN_CACHE = 1 << 16  # values that are centred at once
CENTRED_BY = 128  # rows, or up to twice as many, whose median is the centre
LARGEST_GAMMA = 1e280  # for values of magnitude one: a narrower kernel would meet underflow
FAR = 40.0  # in units of 1/√γ: exp(−40²) is 0

# Up to this many rows all pairs of a (n, d) array are looked at; above it a sample of pairs.
EXACT_ROWS = 8192
# By the binomial law a sample of this size misplaces the level of a 1% quantile by at most
# 0.0005 and that of a median by at most 0.0025, with probability 1 − 6e-7 (five standard errors).
SAMPLED_PAIRS = 1_000_000
NEAR_PAIRS = 1 << 15  # up to so many pairs of neighbours it is faster to list them than to count


@dataclass(frozen=True)
class Problem:
    """minimise ½wᵀ(K+ωI)w − kᵀw over 0 ≤ w ≤ B, low ≤ Σw ≤ high."""

    z: FloatArray
    """(n + m,) or (n + m, d) training, then trusted values; centred, scaled to magnitude one."""
    n: int
    centre: FloatArray | float
    unit: float
    """z = (values − centre)/unit; NaN where gaps were cut."""
    gamma: float
    """γ for the scaled values."""
    given_gamma: float
    """γ for the values as they were given."""
    ridge: float
    bound: float
    slack: float

    @property
    def columns(self) -> FloatArray:
        """(n + m, d) the values, d = 1 for one number per sample."""
        return self.z[:, None] if self.z.ndim == 1 else self.z

    def placed(self, values: FloatArray) -> FloatArray:
        """New values (k, d) on the scale of `z`; those so far away that the kernel is 0 nearer."""
        if math.isnan(self.unit):
            raise ValueError("rows: the fitted values are too many widths apart for new ones")
        far = 4.0 + 2 * FAR / math.sqrt(max(self.gamma, 1e-280))
        with np.errstate(over="ignore"):
            return np.clip((values - self.centre) / self.unit, -far, far)

    @property
    def rounding(self) -> float:
        """How far a computed kernel value may be from the exact one."""
        if self.z.ndim == 1:
            return 2 * EPSILON  # from differences
        return rounding(self.gamma, float((self.z * self.z).sum(1).max()), self.z.shape[1])

    @property
    def low(self) -> float:
        """The smallest sum allowed."""
        return self.n * (1.0 - self.slack)

    @property
    def high(self) -> float:
        """The largest sum allowed."""
        return self.n * (1.0 + self.slack)


def make_problem(
    train: FloatArray,
    trusted: FloatArray,
    *,
    gamma: float | str | None = None,
    rule: str | None = None,
    enough: int | None = None,
    ridge: float = 1e-5,
    bound: float = 50.0,
    slack: float | None = None,
) -> Problem:
    """Bring values to a common scale that neither over- nor underflows, and find γ.

    Args:
        train: (n,) or (n, d) training values.
        trusted: (m,) or (m, d) trusted values.
        gamma: γ, or its rule; None is `rule`.
        rule: None is the one that suits the values.
        enough: So many training rows are enough for `rule`; None is all.
        ridge: ω.
        bound: B.
        slack: ε; None is (√n−1)/√n.

    Raises:
        ValueError: The values cannot work; the message names the argument.
    """
    if train.shape[1:] != trusted.shape[1:]:
        raise ValueError(
            f"z_trusted: rows of shape {tuple(trusted.shape[1:])} do not match "
            f"z_train's {tuple(train.shape[1:])}"
        )
    n = len(train)
    slack = default_slack(n) if slack is None else slack
    if bound < 1 - slack:
        raise ValueError(
            f"bound: {bound:g} is below 1 - slack = {1 - slack:g}, so no weights reach that mean"
        )
    z, centre, unit = _scaled(train, trusted)
    if gamma is None:
        scaled, given = _by_rule(rule, z[:n], unit, enough or n)
    else:
        scaled, given = _gamma(gamma, z[:n], unit)
    if scaled > LARGEST_GAMMA:
        z, _, unit = _scaled(*_drawn_together(train, trusted, given))
        scaled, unit = given * unit * unit, math.nan
    return Problem(z, n, centre, unit, scaled, given, float(ridge), float(bound), float(slack))


def default_slack(n: int) -> float:
    """ε of n samples: (√n − 1)/√n (Huang et al. 2007)."""
    return (math.sqrt(n) - 1.0) / math.sqrt(n)


def _scaled(train: FloatArray, trusted: FloatArray) -> tuple[FloatArray, FloatArray | float, float]:
    """All values, divided by a power of two: exact, and no square overflows or vanishes.

    Many rows are centred first: far from the origin `squared_distances` loses digits and
    computes more distances from differences, which is slow. The centre is
    a median, so that an outlier does not round the rest away.
    """
    n, centre = len(train), 0.0
    z = np.empty((n + len(trusted), *train.shape[1:]))
    if z.ndim == 2 and len(z) > FEW_ROWS:
        centre, size = _centred(train, trusted, z)
    else:
        z[:n], z[n:] = train, trusted
        size = magnitude(z)
    if not size < math.inf:
        for name, values in (("z_train", train), ("z_trusted", trusted)):
            if not magnitude(values) < math.inf:
                raise ValueError(f"{name}: holds NaN or infinite values")
        z[:n], z[n:] = train, trusted  # finite values that are too far apart to be centred
        size, centre = magnitude(z), 0.0
    unit = 2.0 ** min(math.frexp(size)[1], 1023) if size else 1.0
    z /= unit
    return z, centre, unit


def _centred(train: FloatArray, trusted: FloatArray, z: FloatArray) -> tuple[FloatArray, float]:
    """Write all values (·, d), less a median of some, into z; the median, and their magnitude.

    Blocks of rows stay in the cache, and each is read and written once.
    """
    n, step = len(train), len(z) // CENTRED_BY
    ours, theirs = train[::step], trusted[-n % step :: step]
    some = np.concatenate([ours, theirs])
    centre = np.partition(some, len(some) // 2, axis=0)[len(some) // 2]
    rows, sizes = max(1, IN_CACHE // z.shape[1]), list[float]()
    with np.errstate(over="ignore", invalid="ignore"):
        for values, out in ((train, z[:n]), (trusted, z[n:])):
            for start in range(0, len(values), rows):
                part = slice(start, start + rows)
                out[part] = values[part] - centre
                sizes.append(magnitude(out[part]))
    return centre, float(np.max(sizes))  # which is NaN where one is


def _drawn_together(
    train: FloatArray, trusted: FloatArray, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """The values with every gap in a column cut to `FAR`/√γ: no kernel value changes.

    Across such a gap the kernel is 0 whatever its length. It matters when the largest value is more
    than 1e140 widths away: divided by that, the distances of the others would vanish.
    """
    both = np.concatenate([train, trusted])
    columns = both.reshape(len(both), -1)
    gap = FAR / math.sqrt(gamma)
    drawn = np.empty_like(columns)
    for column, out in zip(columns.T, drawn.T, strict=True):
        order = column.argsort()
        x = column[order]
        with np.errstate(over="ignore"):
            new = np.concatenate([[True], x[1:] - x[:-1] > gap])
        first = new.nonzero()[0]
        last = np.append(first[1:], len(x)) - 1
        starts = np.concatenate([[0.0], (x[last] - x[first] + gap).cumsum()[:-1]])
        cluster = new.cumsum() - 1
        out[order] = x - x[first][cluster] + starts[cluster]
    values = drawn.reshape(both.shape)
    return values[: len(train)], values[len(train) :]


def _by_rule(rule: str | None, z: FloatArray, unit: float, enough: int) -> tuple[float, float]:
    """γ for the scaled training values and for the given ones, from up to `enough` rows.

    They are always the same; of one column all are taken, because its width takes no time.
    """
    if rule is None:
        rule = LOSS_RULE if z.ndim == 1 else FEATURE_RULE
    if len(z) > enough and z.ndim == 2 and z.shape[1] > 1:
        some = np.sort(numpy_generator(0, "kernel width").permutation(len(z))[:enough])
        scaled, given = _gamma(rule, z[some], unit)
        if scaled > 0:  # else they are equal by chance
            return scaled, given
    return _gamma(rule, z, unit)


def _gamma(gamma: float | str, z: FloatArray, unit: float) -> tuple[float, float]:
    """γ for the scaled values, perhaps infinite, and for the given ones."""
    if not isinstance(gamma, str):
        return float(gamma) * unit * unit, float(gamma)
    value = width(z, gamma)
    if parse_rule(gamma)[0] == "quantile":
        return value * unit * unit * unit, min(value * unit, sys.float_info.max)
    return value, min(value / unit / unit, sys.float_info.max)


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


def width(z: FloatArray, rule: str) -> float:
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
        spread = float(z.var()) * (1 if z.ndim == 1 else z.shape[1])
        return 1.0 / max(spread, 1e-300) if spread > 0 else 0.0
    distance = distance_quantile(z, level)
    if kind == "quantile":
        return distance
    return 1.0 / max(2.0 * distance**2, 1e-300) if distance > 0 else 0.0


def distance_quantile(z: FloatArray, level: float) -> float:
    """The `level`-quantile of the distances |z_i − z_j|, i < j, linearly interpolated.

    Zero is replaced by the smallest positive distance, if there is one.
    """
    if z.ndim == 1:
        x = np.sort(z)
        near = _among_neighbours(x, level)
        value = _by_counting(x, level) if near is None else near
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


def _all_squares(z: FloatArray) -> FloatArray:
    """The squared distances of all pairs i < j of the rows of `z`."""
    n = len(z)
    norms = (z * z).sum(1)
    below = 1e-5 * float(norms.max())  # leaves 1e-11 of rounding in the others
    squares = np.empty(n * (n - 1) // 2)
    done, step = 0, max(1, BLOCK // n)
    for i in range(0, n, step):
        part = slice(i, i + step)
        block = squared_distances(z[part], z[i:], below, norms[part], norms[i:])
        for k, row in enumerate(block):
            squares[done : done + row.size - k - 1] = row[k + 1 :]
            done += row.size - k - 1
    return squares


def _sampled_squares(z: FloatArray) -> FloatArray:
    """The squared distances of `SAMPLED_PAIRS` random pairs of different rows of `z`."""
    generator = numpy_generator(0, "kernel width")
    n = len(z)
    left = generator.integers(n, size=SAMPLED_PAIRS)
    right = (left + generator.integers(1, n, size=SAMPLED_PAIRS)) % n
    squares = np.empty(SAMPLED_PAIRS)
    step = max(1, BLOCK // z.shape[1])
    for i in range(0, SAMPLED_PAIRS, step):
        difference = z[left[i : i + step]] - z[right[i : i + step]]
        squares[i : i + step] = (difference * difference).sum(1)
    return squares


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

    The number of differences ≤ t is n binary searches. Interpolating on that count
    closes a bracket around the wanted place until it holds a few n differences, which are then
    listed and sorted: O(n log n) time, O(n) memory. Equal values are merged and counted first, so
    that no single difference can fill the bracket.
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
        if attempt % 3 == 2:  # half of the numbers that are left between, however these lie
            bits = np.array([low, high]).view(np.int64)
            t = float((bits[:1] + (bits[1:] - bits[:1]) // 2).view(np.float64)[0])
        else:
            t = low + (high - low) * (wanted + 0.5 - under) / (upto - under)
        ends = np.clip(x.searchsorted(x + t, side="right"), start, stop)
        count = int((times * (places[ends] - places[1:])).sum()) + zeros
        if count <= wanted:
            start, under, low = ends, count, t
        else:
            stop, upto, high = ends, count, t
    return _select(x, times, start, stop, position - under)


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
