"""Simulated distribution shifts: seeded, and each says what it did.

A text such as `"symmetric:0.4"` or `"prior:0.2,100+pair:0.3"` becomes a
`Shift`; applying it gives the rows that are left, their given labels, which of
these are wrong, and the true importance weights.
"""

from diw.shifts.base import Shifted
from diw.shifts.contaminated import Contaminated, reverse
from diw.shifts.covariate import Covariate, keep_probability
from diw.shifts.labels import Matrix, Pair, Symmetric, flip, pair_matrix, symmetric_matrix
from diw.shifts.parse import USAGE, parse_shift
from diw.shifts.priors import LongTail, Prior, class_sizes, long_tail_shares, prior_shares
from diw.shifts.shift import Shift

__all__ = [
    "USAGE",
    "Contaminated",
    "Covariate",
    "LongTail",
    "Matrix",
    "Pair",
    "Prior",
    "Shift",
    "Shifted",
    "Symmetric",
    "class_sizes",
    "flip",
    "keep_probability",
    "long_tail_shares",
    "pair_matrix",
    "parse_shift",
    "prior_shares",
    "reverse",
    "symmetric_matrix",
]
