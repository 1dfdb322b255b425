"""A ratio that rises or falls with the value: no kernel, no width.

For losses it is plain that the ratio of trusted to training density falls: what is hard for
the network is rarer among trusted samples. The monotone ratio of largest likelihood (Dykstra,
Kochar & Robertson 1995) comes from isotonic regression: among all values in their order, fit the
share p of trusted ones by a monotone function, and

    w = (n/m) · p/(1 − p).

Rising and falling are both fitted, and the likelier is taken.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from scipy.special import xlogy  # pyright: ignore

from diw.matching.estimators import Estimator
from diw.matching.gram import FloatArray
from diw.matching.kmm import as_values, check_positive
from diw.matching.match import Values

_isotonic: Any = scipy.optimize.isotonic_regression
_xlogy: Any = xlogy


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Isotonic(Estimator):
    """Weights by the monotone ratio of largest likelihood, for one number per sample.

    Between two values the ratio is that of the nearer one.

    Attributes:
        rising_: Whether the ratio rises with the value.
    """

    bound: float = 50.0
    """B, the largest weight."""

    def _check(self) -> None:
        check_positive("bound", self.bound)

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        parts = as_values("train", train), as_values("trusted", trusted)
        for name, z in zip(("train", "trusted"), parts, strict=True):
            if z.size > len(z):
                columns = z.shape[1]
                raise ValueError(
                    f"{name}: has {columns} columns; Isotonic needs one number per row"
                )
            if not np.isfinite(z).all():
                raise ValueError(f"{name}: holds NaN or infinite values")
        ours, theirs = (z.ravel() for z in parts)
        values, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
        n, size = len(ours), len(values)
        counts = np.bincount(places[:n], minlength=size), np.bincount(places[n:], minlength=size)
        total = counts[0] + counts[1]
        fits: list[tuple[float, bool, FloatArray]] = []
        for rising in (False, True):
            shares = _isotonic(counts[1] / total, weights=total, increasing=rising).x
            p = np.clip(shares, 0.0, 1.0)  # rounding may leave a share of 0 or 1 beside it
            likelihood = float((_xlogy(counts[1], p) + _xlogy(counts[0], 1 - p)).sum())
            fits.append((likelihood, rising, p))
        _, self.rising_, p = max(fits, key=lambda fit: fit[0])
        with np.errstate(divide="ignore"):
            ratio = p / (1.0 - p) * (n / len(theirs))
        self._values, self._ratio = values, np.minimum(ratio, self._most)
        return self._ratio[places[:n]], "optimal"

    def _predict(self, z: FloatArray) -> FloatArray:
        middles = self._values[:-1] + 0.5 * (self._values[1:] - self._values[:-1])
        return self._ratio[middles.searchsorted(z[:, 0])]
