"""Rows as vectors, and what a quick classifier says of rows that it was not fitted on.

Tests and estimates need a function of the inputs that is as good, or as bad, for training as for
trusted samples. A trained network is none: it has seen some samples more than others. So a
classifier that takes a second is fitted here on parts of the data, and asked about the rest.
"""

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


def embed(vectors: Floats, seed: int) -> tuple[Floats, Floats]:
    """Principal components z (n, 60) of vectors (n, d), and features φ (n, 600) of them.

    Columns are standardised first. φ(x)·φ(x') ≈ exp(−γ‖z − z'‖²), where γ is 1/(2·median²) of the
    distances: the features of Rahimi and Recht (2007). All samples are treated alike, training
    and trusted ones, so that tests by permutation are exact.
    """
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
    phases = generator.uniform(0, 2 * np.pi, FEATURES)

    z = ((vectors - mean) / scale) @ axes
    return z, np.sqrt(2 / FEATURES) * np.cos(z @ directions + phases)


def cross_fit(features: Floats, labels: Ints, k: int, seed: int) -> Floats:
    """(n, k) class probabilities of each sample from a classifier fitted without it.

    Ridge regression on the labels as unit vectors, for each fold on the others: its values
    estimate probabilities directly, whatever noise the labels have. They are cut to be
    positive and scaled to the sum one.

    Args:
        features: (n, d)
        labels: (n,) the given labels.
        k: Number of classes.
        seed: Decides the folds.
    """
    n, d = features.shape
    wide = np.concatenate([features, np.ones((n, 1))], axis=1)
    targets = np.eye(k)[labels]
    fold = numpy_generator(seed, "folds").permutation(n) % FOLDS
    parts = [
        (wide[fold == f].T @ wide[fold == f], wide[fold == f].T @ targets[fold == f])
        for f in range(FOLDS)
    ]
    gram, moments = sum(part[0] for part in parts), sum(part[1] for part in parts)
    penalty = RIDGE * n * float(np.square(features).mean()) * np.eye(d + 1)
    penalty[d, d] = 1e-9 * n
    predicted = np.empty((n, k))
    for f, (own, own_moments) in enumerate(parts):
        coefficients = np.linalg.solve(gram - own + penalty, moments - own_moments)
        predicted[fold == f] = wide[fold == f] @ coefficients
    predicted = np.maximum(predicted, SMALLEST)
    return predicted / predicted.sum(1, keepdims=True)
