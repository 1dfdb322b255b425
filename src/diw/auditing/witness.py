"""A second opinion on every label, from a classifier that has not seen it.

The history of a sample is that of one network, which was trained on it. On tables a linear model is
often the better judge, and any model that is fitted without a sample has not learned its label by
heart. So two quick ones (ridge regression on principal components, and on random features of
them) are cross-fitted on the labels that the history says are right, and the one that agrees
more with these speaks.
"""

import numpy as np
from numpy.typing import NDArray

from diw.auditing.embedding import CrossFit, Embedding, as_vectors, some_rows
from diw.data import Dataset
from diw.reports.suspicion import Floats, Ints

RIDGE = 1e-2
"""Larger than for an estimate of probabilities: here the order counts."""
TRUSTED = 5.0
"""The weight of a trusted label; one that the history calls right counts one."""
SHARES = 0.5, 0.2
"""How much the opinion counts beside the history: of the linear model, and of the flexible one.

Where the linear one agrees more, data are few or simple, and a network's history is a worse judge.
"""
PART = 4096
"""Rows at a time."""


def second_opinion(
    data: Dataset, labels: Ints, suspicion: Floats, trusted: NDArray[np.bool_], seed: int
) -> tuple[Floats, float]:
    """(n,) the probability of each given label, from a fit without the sample, and its share.

    A label counts as much as its history is good: (1 − suspicion)², relative to the best.

    Args:
        data: The training samples.
        labels: (n,) their given labels.
        suspicion: (n,) the score of their history.
        trusted: (n,) which of them are trusted.
        seed: Decides folds and random features.
    """
    n, k = len(data), data.num_classes
    intact = np.square((1 - suspicion) / max(float((1 - suspicion).max()), 1e-12))
    weights = intact * np.where(trusted, TRUSTED, 1.0)
    embedding = Embedding.fit(as_vectors(data, some_rows(np.arange(n), seed)), seed)
    parts = [slice(start, min(start + PART, n)) for start in range(0, n, PART)]

    def designs(part: slice) -> tuple[Floats, Floats]:
        components = embedding.components(as_vectors(data, np.arange(part.start, part.stop)))
        return components, embedding.features(components)

    fits = CrossFit(n, k, seed), CrossFit(n, k, seed)
    for part in parts:
        for fit, features in zip(fits, designs(part), strict=True):
            fit.add(part, features, labels[part], weights[part])
    for fit in fits:
        fit.solve(RIDGE)
    given, agreement = np.empty((2, n)), np.zeros(2)
    for part in parts:
        for which, (fit, features) in enumerate(zip(fits, designs(part), strict=True)):
            predicted = fit.predict(part, features)
            given[which, part] = predicted[np.arange(len(predicted)), labels[part]]
            agreement[which] += intact[part] @ (predicted.argmax(1) == labels[part])
    best = int(agreement.argmax())
    return given[best], SHARES[best]
