"""Class probabilities of rows by a quick classifier that was not fitted on them.

Tests and estimates need a function of the inputs that is as good, or as bad, for training as for
trusted samples. A trained network is none: it has seen some samples more than others. So a
classifier that takes a second is fitted here on parts of the data, and asked about the rest: ridge
regression on principal components of the rows, and on random features of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diw.labels.transitions import TINY, Bools, Floats, Ints
from diw.seeding import numpy_generator

FEATURES = 600
"""Random Fourier features: an image or row becomes so many numbers."""
LIMIT = 5.0
"""Cells of a table count as at most so many deviations."""
COMPONENTS = 60
"""Principal components before that; the rest is mostly noise."""
FITTED_ON = 3000
"""Rows that decide the components and the width of the kernel."""
FOLDS = 5
RIDGE = 1e-3
"""Penalty, relative to the mean square of the features."""
SMALLEST = 1e-3
"""Predicted probabilities are not smaller."""
OPINION_RIDGE = 1e-2
"""The penalty where the order counts: larger than for an estimate of probabilities."""
TRUSTED = 5.0
"""The weight of a trusted label in a second opinion; one whose history is good counts one."""
SHARES = 0.5, 0.2
"""How much the opinion counts beside the history: of the linear model, and of the flexible one.

Where the linear one agrees more, data are few or simple, and a network's history is a worse judge.
"""
PART = 4096
"""Rows at a time."""

Vectors = Callable[[Ints], Floats]
"""The rows (b,) of a data set as plain vectors (b, d)."""


@dataclass(frozen=True)
class Embedding:
    """Principal components z (n, 60) of vectors (n, d), and features φ (n, 600) of them.

    Columns are standardised first. φ(x)·φ(x') ≈ exp(−γ‖z − z'‖²), where γ is 1/(2·median²) of the
    distances: the features of Rahimi and Recht (2007).
    """

    mean: Floats
    scale: Floats
    axes: Floats
    directions: Floats
    phases: Floats
    limit: float

    @classmethod
    def fit(cls, vectors: Floats, seed: int, *, columns: bool = False) -> "Embedding":
        """Choose components and width by some of these vectors (n, d).

        Args:
            vectors: The rows.
            seed: Decides which of them are looked at, and the features.
            columns: Whether they are rows of a table, whose columns have units of their own, and
                cells that are absurd; pixels of images have the same unit.
        """
        generator = numpy_generator(seed, "embedding")
        some = vectors[generator.permutation(len(vectors))[:FITTED_ON]]
        mean, scale = _robust_scale(some) if columns else (some.mean(0), some.std(0))
        limit = LIMIT if columns else np.inf
        if not columns:
            # Image borders are nearly constant: divided by a tiny deviation they would drown the
            # rest.
            scale = np.maximum(scale, 0.1 * float(scale.max(initial=0.0)))
        scale[scale == 0] = 1.0
        centred = np.clip((some - mean) / scale, -limit, limit)
        _, axes = np.linalg.eigh(centred.T @ centred)
        axes = axes[:, ::-1][:, :COMPONENTS]
        seen = centred @ axes
        first, second = (generator.permutation(len(seen))[:1000] for _ in range(2))
        distances = np.linalg.norm(seen[first] - seen[second], axis=1)
        width = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
        directions = generator.normal(size=(axes.shape[1], FEATURES)) / width
        phases = generator.uniform(0, 2 * np.pi, FEATURES)
        return cls(mean, scale, axes, directions, phases, limit)

    def components(self, vectors: Floats) -> Floats:
        """Z (n, 60) of vectors (n, d)."""
        standard = (vectors - self.mean) / self.scale
        return np.clip(standard, -self.limit, self.limit) @ self.axes

    def features(self, components: Floats) -> Floats:
        """φ (n, 600) of components (n, 60)."""
        return np.sqrt(2 / FEATURES) * np.cos(components @ self.directions + self.phases)


class CrossFit:
    """Ridge regression on the labels as unit vectors, for each fold on the other folds.

    Its values estimate class probabilities directly, whatever noise the labels have. Rows come in
    parts: only sums are kept.

    Args:
        n: Number of samples.
        k: Number of classes.
        seed: Decides the folds.
    """

    def __init__(self, n: int, k: int, seed: int) -> None:
        self._fold = numpy_generator(seed, "folds").permutation(n) % FOLDS
        self._k = k
        self._sums: list[tuple[Floats, Floats]] = []
        self._fits: list[Floats] = []

    def add(self, rows: slice, features: Floats, labels: Ints, weights: Floats) -> None:
        """Add the rows of one part: features (b, d), given labels (b,), weights (b,)."""
        wide, fold = _wide(features), self._fold[rows]
        if not self._sums:
            d = wide.shape[1]
            self._sums = [(np.zeros((d, d)), np.zeros((d, self._k))) for _ in range(FOLDS)]
        for f, (gram, moments) in enumerate(self._sums):
            own = wide[fold == f]
            weighted = own * weights[fold == f, None]
            gram += weighted.T @ own
            moments += weighted.T @ np.eye(self._k)[labels[fold == f]]

    def solve(self, ridge: float) -> None:
        """Fit each fold.

        Args:
            ridge: The penalty, relative to the mean square of the features.
        """
        gram = np.sum([part[0] for part in self._sums], axis=0)
        moments = np.sum([part[1] for part in self._sums], axis=0)
        d = len(gram) - 1
        penalty = ridge * float(np.trace(gram[:d, :d])) / d * np.eye(d + 1)
        penalty[d, d] = 1e-9 * gram[d, d]
        self._fits = [
            np.linalg.solve(gram - own + penalty, moments - own_moments)
            for own, own_moments in self._sums
        ]

    def predict(self, rows: slice, features: Floats) -> Floats:
        """(b, k) probabilities of a part's rows from the fit without them, at least 1e-3."""
        wide, fold = _wide(features), self._fold[rows]
        predicted = np.empty((len(wide), self._k))
        for f, coefficients in enumerate(self._fits):
            predicted[fold == f] = wide[fold == f] @ coefficients
        return _probabilities(predicted)

    def predict_others(self, features: Floats) -> Floats:
        """(b, k) probabilities of rows that no fit has seen: the mean of all fits."""
        wide = _wide(features)
        return np.mean([_probabilities(wide @ fit) for fit in self._fits], axis=0)


def cross_fit(features: Floats, labels: Ints, k: int, seed: int) -> Floats:
    """(n, k) class probabilities of each sample from a classifier fitted without it.

    Args:
        features: (n, d)
        labels: (n,) the given labels.
        k: Number of classes.
        seed: Decides the folds.
    """
    rows = slice(0, len(features))
    fit = CrossFit(len(features), k, seed)
    fit.add(rows, features, labels, np.ones(len(features)))
    fit.solve(RIDGE)
    return fit.predict(rows, features)


def second_opinion(
    vectors: Vectors,
    embedding: Embedding,
    labels: Ints,
    k: int,
    history: Floats,
    trusted: Bools,
    seed: int,
) -> tuple[NDArray[np.float32], float]:
    """(n, k) probabilities of the classes, from a fit without the sample, and their share.

    The history of a sample is that of one network, which was trained on it. On tables a linear
    model is often the better judge, and any model that is fitted without a sample has not learned
    its label by heart. So two quick ones are cross-fitted on the labels that the history calls
    right, and the one that agrees more with these speaks.

    A label counts as much as its history is good: (1 − history)², relative to the best.

    Args:
        vectors: Gives the training samples of some rows.
        embedding: Makes components and features of them.
        labels: (n,) the given labels.
        k: Number of classes.
        history: (n,) the score of their history.
        trusted: (n,) which of them are trusted.
        seed: Decides folds.
    """
    n = len(labels)
    intact = np.square((1 - history) / max(float((1 - history).max()), 1e-12))
    weights = intact * np.where(trusted, TRUSTED, 1.0)
    parts = [slice(start, min(start + PART, n)) for start in range(0, n, PART)]

    def designs(part: slice) -> tuple[Floats, Floats]:
        components = embedding.components(vectors(np.arange(part.start, part.stop)))
        return components, embedding.features(components)

    fits = CrossFit(n, k, seed), CrossFit(n, k, seed)
    for part in parts:
        for one, features in zip(fits, designs(part), strict=True):
            one.add(part, features, labels[part], weights[part])
    for one in fits:
        one.solve(OPINION_RIDGE)
    found, agreement = np.empty((2, n, k), np.float32), np.zeros(2)
    for part in parts:
        for which, (one, features) in enumerate(zip(fits, designs(part), strict=True)):
            found[which, part] = one.predict(part, features)
            agreement[which] += intact[part] @ (found[which, part].argmax(1) == labels[part])
    best = int(agreement.argmax())
    return found[best], SHARES[best]


def _robust_scale(vectors: Floats) -> tuple[Floats, Floats]:
    """The median of each column (d,), and the deviation of a normal one with its quartiles.

    A few absurd cells decide nothing then. Where the quartiles coincide, it is the standard
    deviation.
    """
    low, centre, high = np.quantile(vectors, (0.25, 0.5, 0.75), axis=0)
    largest = np.maximum(np.abs(vectors - centre).max(axis=0), TINY)
    spread = largest * ((vectors - centre) / largest).std(axis=0)
    return centre, np.where(high > low, (high - low) / 1.349, spread)


def _probabilities(values: Floats) -> Floats:
    """Values (b, k) as probabilities, at least 1e-3."""
    values = np.maximum(values, SMALLEST)
    return values / values.sum(1, keepdims=True)


def _wide(features: Floats) -> Floats:
    """With a column of ones."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)
