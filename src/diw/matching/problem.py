"""What is asked: the values of a match, checked, and the problem that they and the options make.

Values are brought to a common scale here, so that nothing after it over- or underflows.
"""

import math
import sys
import warnings
from dataclasses import dataclass

import numpy as np

from diw.errors import DIWWarning
from diw.matching.backend import (
    NUMPY,
    Array,
    Backend,
    Values,
    backend_for,
    is_tensor,
    magnitude,
    to_numpy,
)
from diw.matching.kernel import EPSILON, rounding
from diw.matching.options import Options
from diw.matching.width import FEATURE_RULE, LOSS_RULE, is_distance, width
from diw.seeding import numpy_generator

FEW_ROWS = 512  # beyond this many rows, all distances would be slow
IN_CACHE = 1 << 16  # values that are centred at once
CENTRED_BY = 128  # rows, or up to twice as many, whose median is the centre
LARGEST_GAMMA = 1e280  # for values of magnitude one: a narrower kernel would meet underflow
RULES = {"pgd": "quantile:0.5", "ulsif": "median", "kliep": "median", "logistic": "median"}
"""The width where none is asked for, of solvers with a rule of their own."""
LOOKED_FOR = {"ulsif": FEW_ROWS, "kliep": FEW_ROWS, "logistic": 128}
"""Solvers that look for γ; the rule only says where, so so many of the values will do."""
FAR = 40.0  # in units of 1/√γ: exp(−40²) is 0


@dataclass(frozen=True)
class Problem:
    """minimise ½wᵀ(K+ωI)w − kᵀw over 0 ≤ w ≤ B, low ≤ Σw ≤ high."""

    xp: Backend
    z: Array
    """(n + m,) or (n + m, d) training, then trusted values; centred, scaled to magnitude one."""
    n: int
    gamma: float
    """γ for the scaled values."""
    given_gamma: float
    """γ for the values as they were given."""
    ridge: float
    bound: float
    slack: float

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


def make_problem(z_train: Values, z_trusted: Values, options: Options) -> Problem:
    """Check the values of `kmm` and bring them to a common scale that neither over- nor underflows.

    Raises:
        ValueError: The values cannot work; the message names the argument.
    """
    xp = backend_for(z_train, options.backend)
    train, trusted = _values(xp, "z_train", z_train), _values(xp, "z_trusted", z_trusted)
    if train.shape[1:] != trusted.shape[1:]:
        raise ValueError(
            f"z_trusted: rows of shape {tuple(trusted.shape[1:])} do not match "
            f"z_train's {tuple(train.shape[1:])}"
        )
    n = len(train)
    slack, bound = options.slack, options.bound
    if slack is None:
        slack = (math.sqrt(n) - 1.0) / math.sqrt(n)
    if bound < 1 - slack:
        raise ValueError(
            f"bound: {bound:g} is below 1 - slack = {1 - slack:g}, so no weights reach that mean"
        )
    if bound < 1:
        warnings.warn(
            f"bound: {bound:g} is below one, so the mean weight can be at most {bound:g}",
            DIWWarning,
            stacklevel=5,
        )
    z, unit = _scaled(xp, train, trusted)
    scaled, given = (0.0, 0.0) if options.features == "linear" else _kernel(z[:n], unit, options)
    if scaled > LARGEST_GAMMA:
        z, unit = _scaled(xp, *_drawn_together(xp, train, trusted, given))
        scaled = given * unit * unit
    return Problem(xp, z, n, scaled, given, float(options.ridge), float(bound), float(slack))


def _values(xp: Backend, name: str, z: Values) -> Array:
    """Values in float64, of shape (n,) or (n, d) with at least one entry."""
    if np.ma.is_masked(z):
        raise ValueError(f"{name}: has masked values; drop or fill them")
    if z.is_complex() if is_tensor(z) else np.iscomplexobj(z):
        raise ValueError(f"{name}: has complex numbers; give real ones")
    if is_tensor(z) and z.is_meta:
        raise ValueError(f"{name}: is a meta tensor, which has no values")
    if getattr(getattr(z, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(f"{name}: holds dates or durations; give numbers")
    try:
        if is_tensor(z):
            z = z.detach()
            z = z.cpu().double().numpy() if xp is NUMPY else z
        values = xp.array(z)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name}: is not a dense array of numbers") from None
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"{name}: needs shape (n,) or (n, d) with at least one value, not {tuple(values.shape)}"
        )
    return values


def _scaled(xp: Backend, train: Array, trusted: Array) -> tuple[Array, float]:
    """All values, divided by a power of two: exact, and no square overflows or vanishes.

    Many rows are centred first: far from the origin `squared_distances` loses digits and
    computes more distances from differences, which is slow. The centre is
    a median, so that an outlier does not round the rest away.
    """
    n = len(train)
    z = xp.empty(n + len(trusted), *train.shape[1:])
    if z.ndim == 2 and len(z) > FEW_ROWS:
        size = _centre(xp, train, trusted, z)
    else:
        z[:n], z[n:] = train, trusted
        size = magnitude(z)
    if not size < math.inf:
        for name, values in (("z_train", train), ("z_trusted", trusted)):
            if not magnitude(values) < math.inf:
                raise ValueError(f"{name}: holds NaN or infinite values")
        z[:n], z[n:] = train, trusted  # finite values that are too far apart to be centred
        size = magnitude(z)
    if size == 0:
        return z, 1.0
    unit = 2.0 ** min(math.frexp(size)[1], 1023)
    z /= unit
    return z, unit


def _centre(xp: Backend, train: Array, trusted: Array, z: Array) -> float:
    """Write all values (·, d), less a median of some, into z; returns their magnitude.

    Blocks of rows stay in the cache, and each is read and written once.
    """
    n, step = len(train), len(z) // CENTRED_BY
    ours, theirs = train[::step], trusted[-n % step :: step]
    some = xp.empty(len(ours) + len(theirs), z.shape[1])
    some[: len(ours)], some[len(ours) :] = ours, theirs
    centre, rows, sizes = xp.median(some), max(1, IN_CACHE // z.shape[1]), list[float]()
    with np.errstate(over="ignore", invalid="ignore"):
        for values, out in ((train, z[:n]), (trusted, z[n:])):
            for start in range(0, len(values), rows):
                part = slice(start, start + rows)
                out[part] = values[part] - centre
                sizes.append(magnitude(out[part]))
    return float(np.max(sizes))  # which is NaN where one is


def _drawn_together(xp: Backend, train: Array, trusted: Array, gamma: float) -> tuple[Array, Array]:
    """The values with every gap in a column cut to `FAR`/√γ: no kernel value changes.

    Across such a gap the kernel is 0 whatever its length. It matters when the largest value is more
    than 1e140 widths away: divided by that, the distances of the others would vanish.
    """
    both = np.concatenate([to_numpy(train), to_numpy(trusted)])
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
    values = xp.array(drawn.reshape(both.shape))
    return values[: len(train)], values[len(train) :]


def _a_part(z: Array, enough: int) -> Array:
    """Up to `enough` rows of `z`, always the same; all of one column, whose width takes no time."""
    if len(z) <= enough or z.ndim == 1 or z.shape[1] == 1:
        return z
    return z[np.sort(numpy_generator(0, "kernel width").permutation(len(z))[:enough])]


def _kernel(z: Array, unit: float, options: Options) -> tuple[float, float]:
    """γ for the scaled training values and for the given ones, as asked or by the solver's rule."""
    gamma = RULES.get(options.solver) if options.gamma is None else options.gamma
    enough = LOOKED_FOR.get(options.solver, len(z)) if options.gamma is None else len(z)
    rows = _a_part(z, enough)
    scaled, given = _gamma(gamma, rows, unit)
    if scaled == 0 and len(rows) < len(z):  # equal by chance
        return _gamma(gamma, z, unit)
    return scaled, given


def _gamma(gamma: float | str | None, z: Array, unit: float) -> tuple[float, float]:
    """γ for the scaled values, perhaps infinite, and for the given ones."""
    if gamma is None:
        gamma = LOSS_RULE if z.ndim == 1 else FEATURE_RULE
    if not isinstance(gamma, str):
        return float(gamma) * unit * unit, float(gamma)
    value = width(z, gamma)
    if is_distance(gamma):
        return value * unit * unit * unit, min(value * unit, sys.float_info.max)
    return value, min(value / unit / unit, sys.float_info.max)
