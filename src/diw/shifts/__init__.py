"""Simulated distribution shifts, reproducible by seed.

A text such as `"symmetric:0.4"` or `"prior:0.2,100+pair:0.3"` becomes a `Shift`, whose
stages hold their numbers as fields. Applying it gives the rows that are left, their given labels
and the true importance weights. Nothing here imports torch or reads a file before a shift is
applied, so reports parse the text of a record with the same function.
"""

from diw.shifts.covariate import Covariate
from diw.shifts.instance import Instance
from diw.shifts.labels import Contaminated, Matrix, Pair, Symmetric
from diw.shifts.parse import USAGE, parse_shift
from diw.shifts.priors import LongTail, Prior
from diw.shifts.shift import Shift, Shifted, Stage, number_text
from diw.shifts.support import Region, Support

__all__ = [
    "USAGE",
    "Contaminated",
    "Covariate",
    "Instance",
    "LongTail",
    "Matrix",
    "Pair",
    "Prior",
    "Region",
    "Shift",
    "Shifted",
    "Stage",
    "Support",
    "Symmetric",
    "number_text",
    "parse_shift",
]
