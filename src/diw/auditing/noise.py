"""How many labels are wrong, and which were given for which: estimated from the trusted set.

With M and J the tables of predictions by given label of training and trusted samples,
M = RᵀJ (`diw.methods.confusion`). The share of wrong labels needs only R's diagonal; solved for
without the constraint R ≥ 0 it is nearly unbiased, and so zero on average where no label is
wrong. The transitions that are shown are the same solution, cut to be not negative.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from diw.auditing.embedding import Floats, Ints
from diw.methods.confusion import SHARPNESS, tempered
from diw.seeding import numpy_generator

RIDGE = 0.003
"""Relative to the mean eigenvalue of JJᵀ: a class with few trusted samples decides nothing."""
BOOTSTRAPS = 200


@dataclass(frozen=True)
class Noise:
    """Wrong labels among the training samples.

    Attributes:
        share: Estimated share of wrong labels, in [0, 1].
        low: Lower limit of its 95% interval.
        high: Upper limit.
        transitions: (k, k) estimated probability that class i is labelled j.
    """

    share: float
    low: float
    high: float
    transitions: NDArray[np.float64]


def estimate_noise(
    predicted: Floats, labels: Ints, predicted_trusted: Floats, labels_trusted: Ints, seed: int
) -> Noise:
    """The share of wrong labels with an interval by bootstrap, and the transitions.

    Args:
        predicted: (n, k) probabilities of training samples by a classifier fitted without them.
        labels: (n,) their given labels.
        predicted_trusted: (m, k) the same of trusted samples.
        labels_trusted: (m,)
        seed: Decides the bootstrap.
    """
    q, q_trusted = (_sharpened(p) for p in (predicted, predicted_trusted))
    n, k = q.shape
    members = csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    generator = numpy_generator(seed, "noise bootstrap")
    joint = _joint(members.T @ q / n, q_trusted, labels_trusted)
    found = 1 - float(np.trace(joint))
    shares: list[float] = []
    for _ in range(BOOTSTRAPS):
        rows = generator.integers(0, len(q_trusted), len(q_trusted))
        times = np.bincount(generator.integers(0, n, n), minlength=n)
        drawn = members.T @ (times[:, None] * q) / n
        shares.append(1 - float(np.trace(_joint(drawn, q_trusted[rows], labels_trusted[rows]))))
    # The basic interval: it is the difference to the estimate that repeats itself.
    low, high = 2 * found - np.quantile(shares, [0.975, 0.025])
    share, low, high = (float(np.clip(value, 0, 1)) for value in (found, low, high))
    return Noise(share, low, high, _transitions(joint, share))


def _sharpened(p: Floats) -> Floats:
    """Squared and rescaled predictions: any function of x serves, and these differ more."""
    return np.exp(tempered(np.log(np.maximum(p, 1e-12)), SHARPNESS))


def _joint(M: Floats, q: Floats, labels: Ints) -> Floats:
    """(k, k) joint shares of class and given label, P(i) R_ij, with the sum one.

    RᵀJ = M is solved by ridge regression towards no wrong labels.
    """
    k = len(M)
    J = np.eye(k)[labels].T @ q / len(q)
    share = J.sum(1)
    square = J @ J.T
    ridge = RIDGE * np.trace(square) / k
    none_wrong = np.diag(np.where(share > 0, M.sum(1) / np.maximum(share, 1e-12), 0.0))
    R = np.linalg.solve(square + ridge * np.eye(k), J @ M.T + ridge * none_wrong)
    joint = R * share[:, None]
    return joint / joint.sum()


def _transitions(joint: Floats, share: float) -> Floats:
    """(k, k) probabilities of given labels by class: not negative, with `share` wrong in all."""
    wrong = np.maximum(joint, 0)
    np.fill_diagonal(wrong, 0)
    wrong *= share / max(float(wrong.sum()), 1e-12)
    classes = np.maximum(joint.sum(1), wrong.sum(1))
    right = np.diag(np.maximum(classes - wrong.sum(1), 1e-12))
    return (wrong + right) / (wrong + right).sum(1, keepdims=True)
