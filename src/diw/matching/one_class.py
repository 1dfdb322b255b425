"""The one-class support vector machine: where values have support (Schölkopf et al. 2001).

Its dual is the matching problem without anything to match: minimise ½wᵀKw over 0 ≤ w ≤ 1/ν with
mean(w) = 1. So the solver of `kmm` solves it, given a trusted value so far away that k = 0.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from diw.matching.estimators import Estimator
from diw.matching.gram import FloatArray, gaussian
from diw.matching.kmm import as_values, check_gamma, kmm
from diw.matching.match import Values
from diw.matching.problem import FAR, FEATURE_RULE, width

RIDGE = 1e-9
"""ω of the match; the machine has none, and this one changes no decision."""
ROUNDING = 1e-7


@final
@dataclass(kw_only=True, eq=False, repr=False)
class OneClass(Estimator):
    """The region {z: Σ_i w_i k(z, z_i) ≥ ρ} where training values have support.

    `predict` is 1 inside and 0 outside; `weights_` are the w_i, with mean one.

    Attributes:
        inside_: (m,) whether each trusted value lies in the region.
        level_: ρ.
        gamma_: γ of the kernel.
    """

    nu: float = 0.1
    """ν in (0, 1]: the largest share of the training values that may lie outside."""
    gamma: float | str = FEATURE_RULE
    """Width of the kernel, as in `kmm`."""

    def _check(self) -> None:
        check_gamma(self.gamma)
        if not 0 < self.nu <= 1:
            raise ValueError(f"nu: must be above 0 and at most 1, not {self.nu}")

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        z, others = as_values("train", train), as_values("trusted", trusted)
        z, others = (part[:, None] if part.ndim == 1 else part for part in (z, others))
        for name, part in (("train", z), ("trusted", others)):
            if not np.isfinite(part).all():
                raise ValueError(f"{name}: holds NaN or infinite values")
        found = width(z, self.gamma) if isinstance(self.gamma, str) else float(self.gamma)
        self.gamma_ = found or 1.0  # all equal: any width does
        away = z[:1] + 0.0
        away[0, 0] = z[:, 0].max() + FAR / math.sqrt(self.gamma_)
        most = 1 / self.nu
        match = kmm(
            z, away, gamma=self.gamma_, bound=most, slack=0.0, ridge=RIDGE, on_failure="warn"
        )
        w = np.asarray(match.weights)
        positive, below = w > ROUNDING, w < (1 - ROUNDING) * most
        self._support, self._coefficients = z[positive], w[positive]
        scores = self._scores(z)
        # The level is what values with a weight inside its bounds have. Where there is none, it
        # lies between those at the upper bound and those at zero.
        if (positive & below).any():
            self.level_ = float(scores[positive & below].mean())
        else:
            ends = (
                float(scores[~below].max(initial=-math.inf)),
                float(scores[~positive].min(initial=math.inf)),
            )
            self.level_ = float(np.mean([end for end in ends if math.isfinite(end)]))
        self.inside_ = self._predict(others) > 0
        return w, match.status

    def _look_for_neighbours(self, train: Values, trusted: Values, effective: float) -> None:
        """What lies outside is the answer here."""

    def _predict(self, z: FloatArray) -> FloatArray:
        return (self._scores(z) >= self.level_ * (1 - ROUNDING)).astype(np.float64)

    def _scores(self, z: FloatArray) -> FloatArray:
        """(k,) Σ_i w_i k(z_j, z_i)."""
        with np.errstate(over="ignore"):
            return gaussian(z, self._support, self.gamma_) @ self._coefficients
