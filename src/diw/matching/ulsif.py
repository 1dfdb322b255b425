"""The ratio as a kernel model, by least squares: uLSIF, and RuLSIF by `alpha`.

With κ(z) = (k(z, c_1), …) for trusted values c as centres, r(z) = κ(z)ᵀθ minimises the squared
error to p_trusted/(α p_trusted + (1 − α) p_train): in closed form θ = max(0, (H + λI)⁻¹ h) with
H = (1 − α) mean κ(z_i)κ(z_i)ᵀ over training and α mean κ(z'_j)κ(z'_j)ᵀ over trusted values, and
h = mean κ(z'_j) over the latter (Kanamori, Hido & Sugiyama 2009; Yamada et al. 2013).
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from diw.matching.estimators import Estimator
from diw.matching.gram import FloatArray, distances_for
from diw.matching.kmm import as_values, check_gamma, check_positive
from diw.matching.match import Values
from diw.matching.problem import FEW_ROWS, make_problem
from diw.seeding import numpy_generator

CENTRES = 50
CANDIDATES = 10_000  # trusted values, at most, that centres are chosen from
EQUAL = 1e-14  # the part of squared norms that a distance must exceed not to be rounding
CHOOSING = 5_000  # values of either kind, at most, that choose γ and λ
FOLDS = 5
WIDTHS = tuple(10.0 ** (x / 2) for x in range(-2, 4))
"""Where γ is looked for, in units of the median rule's."""
PENALTIES = tuple(10.0 ** (x / 2) for x in range(-6, 3))
"""Where λ is looked for."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ULSIF(Estimator):
    """Weights by unconstrained least-squares importance fitting.

    Attributes:
        gamma_: γ of the kernel.
        penalty_: λ.
    """

    alpha: float = 0.0
    """α in [0, 1): above 0 the ratio is relative to a mixture with this share of trusted values, at
    most 1/α, which varies less (RuLSIF)."""
    gamma: float | str | None = None
    """Width of the kernel, as in `kmm`; None is chosen by the error in five folds left out."""
    penalty: float | None = None
    """λ; None is chosen in the same way."""
    bound: float = 50.0
    """B, the largest weight."""

    def _check(self) -> None:
        check_gamma(self.gamma)
        check_positive("bound", self.bound)
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        if not 0 <= self.alpha < 1:
            raise ValueError(f"alpha: must be at least 0 and below 1, not {self.alpha}")

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        self._problem = make_problem(
            as_values("train", train),
            as_values("trusted", trusted),
            gamma=self.gamma,
            rule="median",
            enough=FEW_ROWS,
        )
        z, n = self._problem.columns, self._problem.n
        self._centres = z[n:][spread_out(z[n:], CENTRES)]
        widths = WIDTHS if self.gamma is None else (1.0,)
        penalties = PENALTIES if self.penalty is None else (float(self.penalty),)
        scores = {(widths[0], penalties[0]): 0.0}
        if len(widths) * len(penalties) > 1 and min(n, len(z) - n) > 1:
            ours, theirs = _some(z[:n]), _some(z[n:])
            scores = {
                (width, penalty): score
                for width in widths
                for penalty, score in zip(
                    penalties,
                    self._errors(self._kernel(ours, width), self._kernel(theirs, width), penalties),
                    strict=True,
                )
            }
        self._width, self.penalty_ = min(scores, key=lambda key: scores[key])
        self.gamma_ = self._problem.given_gamma * self._width
        ours, theirs = (self._kernel(part, self._width) for part in (z[:n], z[n:]))
        H, h = self._moments(ours, theirs)
        self.coef_ = _solved(H, h, (self.penalty_,))[:, 0]
        return np.minimum(ours @ self.coef_, self._most), "optimal"

    def _predict(self, z: FloatArray) -> FloatArray:
        return self._kernel(self._problem.placed(z), self._width) @ self.coef_

    def _kernel(self, z: FloatArray, width: float) -> FloatArray:
        """κ of values, (k, b)."""
        gamma = self._problem.gamma * width
        return np.exp(-gamma * distances_for(z, self._centres, gamma, gamma))

    def _moments(self, ours: FloatArray, theirs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H (b, b) and h (b,), from κ at training (n, b) and trusted values (m, b)."""
        squares = (1 - self.alpha) / len(ours) * (ours.T @ ours)
        if self.alpha:
            squares += self.alpha / len(theirs) * (theirs.T @ theirs)
        return squares, theirs.mean(0)

    def _errors(
        self, ours: FloatArray, theirs: FloatArray, penalties: tuple[float, ...]
    ) -> list[float]:
        """½θᵀHθ − hᵀθ on each fold, of the model of the others; the mean for each λ."""
        errors = np.zeros(len(penalties))
        generator = numpy_generator(0, "folds")
        fold, other = (generator.permutation(len(part)) % FOLDS for part in (ours, theirs))
        for k in range(min(FOLDS, len(ours), len(theirs))):
            theta = _solved(*self._moments(ours[fold != k], theirs[other != k]), penalties)
            H, h = self._moments(ours[fold == k], theirs[other == k])
            errors += 0.5 * ((H @ theta) * theta).sum(0) - h @ theta
        return errors.tolist()


def _some(z: FloatArray) -> FloatArray:
    """Up to `CHOOSING` of the values, always the same."""
    if len(z) <= CHOOSING:
        return z
    return z[np.sort(numpy_generator(0, "some values").permutation(len(z))[:CHOOSING])]


def _solved(H: FloatArray, h: FloatArray, penalties: tuple[float, ...]) -> FloatArray:
    """max(0, (H + λI)⁻¹ h) for each λ, (b, p)."""
    values, vectors = np.linalg.eigh(H)
    along = (vectors.T @ h)[:, None] / (np.maximum(values, 0.0)[:, None] + np.array(penalties))
    return np.maximum(vectors @ along, 0.0)


def spread_out(values: FloatArray, count: int, candidates: int = CANDIDATES) -> NDArray[np.int64]:
    """Up to `count` of the values (m, d), each the furthest from those before it (Gonzalez 1985).

    The first is the one nearest to the mean. Fifty such centres do what three hundred drawn
    ones do: the ratio is largest at the rim, which a draw of fifty misses.
    """
    order = numpy_generator(0, "centres of a ratio").permutation(len(values))[:candidates]
    order.sort()
    some = values[order]
    some -= some.mean(0)
    norms = np.einsum("ij,ij->i", some, some) * (1.0 - EQUAL)
    chosen, distance = [int(norms.argmin())], np.full(len(some), math.inf)
    while len(chosen) < count:
        last = chosen[-1]
        np.minimum(distance, some @ (-2.0 * some[last]) + (norms + norms[last]), out=distance)
        furthest = int(distance.argmax())
        if not distance[furthest] > 0:
            break
        chosen.append(furthest)
    return np.sort(order[chosen])
