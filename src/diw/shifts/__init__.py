"""Simulated distribution shifts: seeded, and each says what it did.

A text such as `"symmetric:0.4"` or `"prior:0.2,100+pair:0.3"` becomes a
`Shift`; applying it gives the rows that are left, their given labels, which of
these are wrong, and the true importance weights.
"""

from diw.shifts.base import Shifted
from diw.shifts.labels import flip, pair_matrix, symmetric_matrix
from diw.shifts.parse import parse_shift
from diw.shifts.shift import Shift

__all__ = ["Shift", "Shifted", "flip", "pair_matrix", "parse_shift", "symmetric_matrix"]
