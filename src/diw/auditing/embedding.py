"""Rows as vectors, and what a quick classifier says of rows that it was not fitted on.

Tests and estimates need a function of the inputs that is as good, or as bad, for training as for
trusted samples. A trained network is none: it has seen some samples more than others. So a
classifier that takes a second is fitted here on parts of the data, and asked about the rest.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from diw.data import Dataset
from diw.seeding import numpy_generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEATURES = 600
"""Random Fourier features: an image or row becomes so many numbers."""
COMPONENTS = 60
"""Principal components before that; the rest is mostly noise."""
FITTED_ON = 3000
"""Rows that decide the components and the width of the kernel."""
MOST_ROWS = 10_000
"""Training rows that are looked at; more would not change an estimate by much."""
MOST_NUMBERS = 4096
"""Numbers per row; larger images are averaged in squares first."""
FOLDS = 5
RIDGE = 1e-3
"""Penalty, relative to the mean square of the features."""
SMALLEST = 1e-3
"""Predicted probabilities are not smaller."""


def as_vectors(data: Dataset, rows: Ints) -> Floats:
    """These rows (n,) of a data set as plain vectors (n, d)."""
    pieces = [
        _flat(data.inputs.take(torch.from_numpy(rows[start : start + 512])))
        for start in range(0, len(rows), 512)
    ]
    return np.concatenate(pieces)


def some_rows(rows: Ints, seed: int, most: int = MOST_ROWS) -> Ints:
    """At most `most` of these rows, drawn at random, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(numpy_generator(seed, "rows to look at").permutation(rows)[:most])


def _flat(values: torch.Tensor) -> Floats:
    """(b, d) of any inputs; the squares of an image over which it is averaged are as small as fits.

    Averaging keeps what tells classes apart in most images, and costs little.
    """
    while values.ndim == 4 and values[0].numel() > MOST_NUMBERS and min(values.shape[2:]) >= 2:
        values = torch.nn.functional.avg_pool2d(values, 2)
    return values.reshape(len(values), -1).double().numpy()


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

    @classmethod
    def fit(cls, vectors: Floats, seed: int) -> "Embedding":
        """Choose components and width by some of these vectors (n, d)."""
        generator = numpy_generator(seed, "embedding")
        some = generator.permutation(len(vectors))[:FITTED_ON]
        mean, scale = vectors[some].mean(0), vectors[some].std(0)
        # Image borders are nearly constant: divided by a tiny deviation they would drown the rest.
        scale = np.maximum(scale, 0.1 * float(scale.max(initial=0.0)))
        scale[scale == 0] = 1.0
        centred = (vectors[some] - mean) / scale
        _, axes = np.linalg.eigh(centred.T @ centred)
        axes = axes[:, ::-1][:, :COMPONENTS]
        seen = centred @ axes
        first, second = (generator.permutation(len(seen))[:1000] for _ in range(2))
        distances = np.linalg.norm(seen[first] - seen[second], axis=1)
        width = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
        directions = generator.normal(size=(axes.shape[1], FEATURES)) / width
        return cls(mean, scale, axes, directions, generator.uniform(0, 2 * np.pi, FEATURES))

    def components(self, vectors: Floats) -> Floats:
        """Z (n, 60) of vectors (n, d)."""
        return ((vectors - self.mean) / self.scale) @ self.axes

    def features(self, components: Floats) -> Floats:
        """φ (n, 600) of components (n, 60)."""
        return np.sqrt(2 / FEATURES) * np.cos(components @ self.directions + self.phases)


def embed(vectors: Floats, seed: int) -> tuple[Floats, Floats]:
    """Components z (n, 60) and features φ (n, 600) of vectors (n, d).

    All samples are treated alike, training and trusted ones, so that tests by permutation are
    exact.
    """
    embedding = Embedding.fit(vectors, seed)
    components = embedding.components(vectors)
    return components, embedding.features(components)


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
        predicted = np.maximum(predicted, SMALLEST)
        return predicted / predicted.sum(1, keepdims=True)


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


def _wide(features: Floats) -> Floats:
    """With a column of ones."""
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)
