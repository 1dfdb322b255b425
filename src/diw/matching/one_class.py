"""The one-class support vector machine: where values have support (Schölkopf et al. 2001).

Its dual is the matching problem without anything to match: minimise ½wᵀKw over 0 ≤ w ≤ 1/ν with
mean(w) = 1. So the solver of `kmm` solves it, given a trusted value so far away that k = 0.
"""

import math
from dataclasses import dataclass
from typing import cast, final

import numpy as np
from numpy.typing import NDArray

from diw.matching.backend import NUMPY, FloatArray, to_numpy
from diw.matching.kernel import gaussian
from diw.matching.kmm import kmm
from diw.matching.problem import FAR
from diw.matching.width import FEATURE_RULE, width

RIDGE = 1e-9
"""ω of the match; the machine has none, and this one changes no decision."""
ROUNDING = 1e-7


@final
@dataclass(frozen=True)
class OneClass:
    """The region {z: Σ_i w_i k(z, z_i) ≥ ρ}, which at most a share ν of the values lies outside.

    Attributes:
        z: (s, d) the values with a positive weight.
        weights: (s,) theirs; all n weights have mean one.
        gamma: γ of the kernel.
        level: ρ.
    """

    z: FloatArray
    weights: FloatArray
    gamma: float
    level: float

    @classmethod
    def fit(cls, z: FloatArray, share: float, gamma: str = FEATURE_RULE) -> "OneClass":
        """Find the region of values (n, d).

        Args:
            z: The values, float64.
            share: ν in (0, 1]: the largest share of them that is left outside.
            gamma: The rule of the kernel's width.
        """
        found = width(NUMPY.array(z), gamma) or 1.0  # all equal: any width does
        away = z[:1] + 0.0
        away[0, 0] = z[:, 0].max() + FAR / math.sqrt(found)
        match = kmm(
            z, away, gamma=found, bound=1 / share, slack=0.0, ridge=RIDGE, on_failure="warn"
        )
        w = cast(FloatArray, match.weights)
        scores = _scores(z, z, w, found)
        positive, below = w > ROUNDING, w < (1 - ROUNDING) / share
        # The level is what values with a weight inside its bounds have. Where there is none, it
        # lies between those at the upper bound and those at zero.
        if (positive & below).any():
            level = float(scores[positive & below].mean())
        else:
            ends = (
                float(scores[~below].max(initial=-math.inf)),
                float(scores[~positive].min(initial=math.inf)),
            )
            level = float(np.mean([end for end in ends if math.isfinite(end)]))
        return cls(z[positive], w[positive], found, level)

    def inside(self, z: FloatArray) -> NDArray[np.bool_]:
        """(m,) whether values (m, d) lie in the region."""
        return _scores(z, self.z, self.weights, self.gamma) >= self.level * (1 - ROUNDING)


def _scores(z: FloatArray, machine: FloatArray, weights: FloatArray, gamma: float) -> FloatArray:
    """(m,) Σ_i w_i k(z_j, z_i) of values z (m, d), by a machine of values (n, d)."""
    return to_numpy(gaussian(NUMPY.array(z), NUMPY.array(machine), gamma)) @ weights
