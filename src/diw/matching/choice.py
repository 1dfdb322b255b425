"""Which estimator of the ratio suits the data: a score that needs no true ratio.

For weights w that estimate the ratio r, ½E[(w − r)²] over training values is, but for a constant,

    J(w) = ½ E_train[w²] − E_trusted[w],

which means of values that the estimator has not seen estimate without bias (Kanamori, Hido &
Sugiyama 2009; cross-validation under covariate shift). Equal weights have J = −½.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diw.errors import UsageError
from diw.matching.estimators import Estimator
from diw.matching.gram import FloatArray
from diw.matching.kmm import as_values, check_whole
from diw.matching.logistic import Logistic
from diw.matching.match import Values
from diw.matching.penalised import Chi2, Entropy
from diw.matching.ulsif import ULSIF
from diw.seeding import numpy_generator


@dataclass(frozen=True)
class Score:
    """J of an estimator, with standard errors."""

    value: float
    error: float
    behind: float
    """By how much it is behind the best."""
    behind_error: float
    """The standard error of that, from the same values."""


@dataclass(frozen=True)
class Choice:
    """The estimator with the lowest J, fitted to all values, and the scores of all."""

    name: str
    estimator: Estimator
    scores: Mapping[str, Score]

    def __str__(self) -> str:
        """A line an estimator, the best first."""
        order = sorted(self.scores.items(), key=lambda item: item[1].value)
        return "\n".join(
            f"{name}: {score.value:.3f} ± {score.error:.3f}, behind the best by "
            f"{score.behind:.3f} ± {score.behind_error:.3f}"
            for name, score in order
        )


def choose_estimator(
    train: Values,
    trusted: Values,
    estimators: Mapping[str, Estimator] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
) -> Choice:
    """Take the estimator whose weights err least on values left out.

    Args:
        train: (n,) or (n, d) training values.
        trusted: (m,) or (m, d) trusted values.
        estimators: By name; None for Logistic, Entropy, Chi2 and ULSIF with their defaults.
        folds: How many; each is left out once.
        seed: Decides them.
    """
    check_whole("folds", folds)
    ours, theirs = as_values("train", train), as_values("trusted", trusted)
    if not 2 <= folds <= min(len(ours), len(theirs)):
        raise UsageError(f"folds: must be from 2 to the number of values, not {folds}")
    if estimators is None:
        estimators = {each.__name__: each() for each in (Logistic, Entropy, Chi2, ULSIF)}
    if not estimators:
        raise UsageError("estimators: there is none to choose from")
    generator = numpy_generator(seed, "choice of an estimator")
    fold, other = (generator.permutation(len(z)) % folds for z in (ours, theirs))
    terms: dict[str, tuple[FloatArray, FloatArray]] = {}
    for name, estimator in estimators.items():
        squares, pulls = np.empty(len(ours)), np.empty(len(theirs))
        for k in range(folds):
            fitted = _fresh(estimator).fit(ours[fold != k], theirs[other != k])
            squares[fold == k] = 0.5 * np.asarray(fitted.predict(ours[fold == k])) ** 2
            pulls[other == k] = fitted.predict(theirs[other == k])
        terms[name] = squares, pulls
    best = min(terms, key=lambda name: _mean(*terms[name]))
    scores = {
        name: Score(
            _mean(squares, pulls),
            _error(squares, pulls),
            _mean(squares - terms[best][0], pulls - terms[best][1]),
            _error(squares - terms[best][0], pulls - terms[best][1]),
        )
        for name, (squares, pulls) in terms.items()
    }
    return Choice(best, _fresh(estimators[best]).fit(train, trusted), scores)


def _fresh(estimator: Estimator) -> Estimator:
    return type(estimator)(**estimator.get_params())


def _mean(squares: FloatArray, pulls: FloatArray) -> float:
    return float(squares.mean() - pulls.mean())


def _error(squares: FloatArray, pulls: FloatArray) -> float:
    return math.sqrt(squares.var() / len(squares) + pulls.var() / len(pulls))
