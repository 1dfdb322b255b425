"""Which labels were given to which classes: estimated by matching two tables.

A training set is mislabelled class by class, and its classes may be more or less frequent than in
the trusted data. With P(i) the frequency of class i in the trusted data, and p_i(x) the
probability of class i in the trusted world,

    p_train(x, ỹ = j) = Σ_i R_ij P(i) p(x | i) = p_trusted(x) Σ_i R_ij p_i(x),

where R_ij is how often class i occurs in training, relative to the trusted data, times the
probability that it is labelled j. A network's predictions q(x) depend on x alone, so the tables

    M_jl = E_train[1(ỹ = j) q_l(x)]   and   J_il = E_trusted[1(y = i) q_l(x)]

satisfy M = RᵀJ, however good or bad the predictions are (Lipton et al. 2018 for R diagonal;
compare Hendrycks et al. 2018). The importance weight of a sample follows from R and p(x),
w = p_trusted(x, ỹ) / p_train(x, ỹ) = p_ỹ / (Rᵀp)_ỹ (Liu and Tao 2016, for label noise), and so does
the probability that its label is right, R_ỹỹ w.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from diw.seeding import numpy_generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ITERATIONS = 30
"""Of expectation and maximisation: few, because the last details of R are the trusted set's
noise."""
WRONG_AT_START = 0.1
PRIOR_SAMPLES = 10.0
"""How many trusted samples the network's own opinion of them is worth in their table."""
SHARPNESS = 2.0
"""The tables hold squared and rescaled predictions: any function of x serves, and these differ more
from class to class."""
TEMPERATURES = np.geomspace(0.25, 4.0, 33)
LEAST_INFORMATION = 0.04
RIDGE = 0.003
"""Relative to the mean eigenvalue of JJᵀ: a class with few trusted samples decides nothing."""
BOOTSTRAPS = 200
MANY, FEW_BOOTSTRAPS = 100, 20
"""With more classes than that a bootstrap takes long, and such a share is hardly known."""
PERMUTATIONS, CHANCE = 199, 0.01
TINY = 1e-12


def temperature(log_p: Floats, labels: Ints) -> float:
    """The power a of predictions, p ∝ pᵃ, under which labels are most likely (Guo et al. 2017).

    Args:
        log_p: (m, k) logarithms of the predicted probabilities of trusted samples.
        labels: (m,) their labels.
    """
    losses = [-tempered(log_p, a)[np.arange(len(labels)), labels].mean() for a in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def tempered(log_p: Floats, power: float) -> Floats:
    """(n, k) logarithms of probabilities proportional to pᵃ."""
    scaled = power * log_p
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    return scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))


def sharpened(log_p: Floats) -> Floats:
    """(n, k) squared and rescaled predictions, as they enter the tables."""
    return np.exp(tempered(log_p, SHARPNESS))


def trusted_table(q: Floats, labels: Ints, sums: Floats | None = None) -> Floats:
    """(k, k) J: the mean prediction of trusted samples by their label.

    With few samples of a class its row would be mostly chance: the labels are joined by
    those that the predictions give to the same samples, as much as `PRIOR_SAMPLES` of them.

    Args:
        q: (m, k) predicted probabilities.
        labels: (m,)
        sums: (k, k) sums of predictions by label over many visits, instead of those of `q`.
    """
    m, k = q.shape
    own = np.zeros((k, k))
    np.add.at(own, labels, q)
    if sums is not None:
        own = m * sums / sums.sum()
    return (own + PRIOR_SAMPLES * (q.T @ q) / m) / (m + PRIOR_SAMPLES)


def transitions(train: Floats, trusted: Floats, iterations: int = ITERATIONS) -> Floats:
    """(k, k) R ≥ 0 with M ≈ RᵀJ: the maximum of the likelihood Σ M log(RᵀJ), approached by EM.

    It starts where hardly a label is wrong, and 30 steps from there it has found what is in
    the data; classes without trusted samples keep that start.

    Args:
        train: (k, k) M, by given label, with the sum one.
        trusted: (k, k) J, by label, with the sum one.
        iterations: Steps of expectation and maximisation.
    """
    k = len(trusted)
    share = trusted.sum(axis=1)
    ratio = train.sum(axis=1) / np.maximum(share, TINY)
    R = ((1 - WRONG_AT_START) * np.eye(k) + WRONG_AT_START / k) * ratio[:, None]
    for _ in range(iterations):
        expected = np.maximum(R.T @ trusted, TINY)
        np.multiply(R, trusted @ (train / expected).T, out=R)
        np.divide(R, np.maximum(share, TINY)[:, None], out=R)
    return R


def shrunk_transitions(R: Floats, train: Floats, q: Floats, labels: Ints) -> Floats:
    """(k, k) R with as much off its diagonal as the trusted samples are evidence for.

    Few trusted samples leave J uncertain, and where no label is wrong this alone puts something
    off the diagonal. What is there is shrunk by the stronger of two kinds of evidence:

    - Entry by entry. To first order the error of R_ij has the variance
      S²_ij = Σ_h R²_hj Var(J_hi) / J²_ii. With Q = Σ_{i≠j} R²_ij / S²_ij over d = k(k − 1)
      entries, James and Stein's positive part is 1 − d/Q.
    - As a whole. Wrong labels make predictions agree less with given labels than with trusted
      ones. With t the difference in units of its standard error, 1 − 4/t².

    Args:
        R: (k, k), see `transitions`.
        train: (k, k) M, as there.
        q: (m, k) predicted probabilities of the trusted samples, as in their table.
        labels: (m,)
    """
    m, k = q.shape
    members = np.eye(k)[labels]
    counts = members.sum(axis=0)
    at_least_one = np.maximum(counts, 1)[:, None]
    means = members.T @ q / at_least_one
    spread = np.maximum(members.T @ q**2 / at_least_one - means**2, 0)
    # Where all predictions agree, something may still have been missed: a third of a sample.
    variance = (spread / at_least_one + (0.3 / at_least_one) ** 2) * (counts[:, None] / m) ** 2
    own = np.maximum(np.diagonal(trusted_table(q, labels)), TINY)
    error = (variance.T @ R**2) / own[:, None] ** 2
    right = np.diag(np.diagonal(R))
    entries = float(((R - right) ** 2 / np.maximum(error, TINY)).sum()) / (k * (k - 1))
    agree = q[np.arange(m), labels]
    given = np.diagonal(train) / np.maximum(train.sum(axis=1), TINY)
    t = (agree.mean() - given @ counts / m) / max(float(agree.std()) / np.sqrt(m), TINY)
    whole = max(float(t), 0.0) ** 2 / 4
    strength = max(0.0, 1 - 1 / max(entries, whole, TINY))
    return right + strength * (R - right)


def information(R: Floats) -> float:
    """What a given label is worth of a trusted one: the share of information that noise leaves.

    With T the transition probabilities, the rows of R scaled to one, it is the mean square of T's
    eigenvalues but the first, (‖T‖² − 1)/(k − 1). For two classes and flips at rate η that is
    (1 − 2η)², the ratio of Fisher's information about a frequency; without noise it is one.

    Args:
        R: (k, k), see `transitions`.
    """
    T = R / np.maximum(R.sum(axis=1, keepdims=True), TINY)
    return float(np.clip(((T**2).sum() - 1) / (len(T) - 1), LEAST_INFORMATION, 1.0))


def log_odds(log_q: Floats, labels: Ints, R: Floats) -> Floats:
    """(n,) logarithm of P(label right) / P(label wrong), by Bayes' rule.

    log R_ỹỹ q_ỹ − log Σ_{i≠ỹ} R_iỹ q_i.

    Args:
        log_q: (n, k) logarithms of predicted probabilities.
        labels: (n,) the given labels.
        R: (k, k), see `transitions`.
    """
    rows = np.arange(len(labels))
    right = np.diagonal(R)
    wrong = (np.exp(log_q) @ (R - np.diag(right)))[rows, labels]
    return np.log(np.maximum(right, TINY))[labels] + log_q[rows, labels] - np.log(wrong + TINY)


def right_shares(R: Floats, prior: Floats) -> Floats:
    """(k,) the share of right labels among those of each class, R_jj P_j / (RᵀP)_j.

    Args:
        R: (k, k), see `transitions`.
        prior: (k,) P, the frequencies of the classes in the trusted data.
    """
    return np.diagonal(R) * prior / np.maximum(R.T @ prior, TINY)


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
    transitions: Floats


def estimate_noise(
    predicted: Floats, labels: Ints, predicted_trusted: Floats, labels_trusted: Ints, seed: int
) -> Noise:
    """The share of wrong labels with an interval by bootstrap, and the transitions.

    The share needs only the diagonal of R. Solved for without the constraint R ≥ 0 it is nearly
    unbiased, and so zero on average where no label is wrong. The transitions that are shown are the
    same solution, cut to be not negative.

    Args:
        predicted: (n, k) probabilities of training samples by a classifier fitted without them.
        labels: (n,) their given labels.
        predicted_trusted: (m, k) the same of trusted samples.
        labels_trusted: (m,)
        seed: Decides the bootstrap.
    """
    q, q_trusted = (sharpened(np.log(np.maximum(p, TINY))) for p in (predicted, predicted_trusted))
    n, k = q.shape
    members = csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, k))
    generator = numpy_generator(seed, "noise bootstrap")
    joint = _joint(members.T @ q / n, q_trusted, labels_trusted)
    found = 1 - float(np.trace(joint))
    shares: list[float] = []
    for _ in range(BOOTSTRAPS if k <= MANY else FEW_BOOTSTRAPS):
        rows = generator.integers(0, len(q_trusted), len(q_trusted))
        times = np.bincount(generator.integers(0, n, n), minlength=n)
        drawn = members.T @ (times[:, None] * q) / n
        shares.append(1 - float(np.trace(_joint(drawn, q_trusted[rows], labels_trusted[rows]))))
    # Of a basic and a percentile interval the outer ends: J is inverted, and where classes are
    # hardly told apart each of them alone is too narrow on one side.
    ends = np.quantile(shares, [0.025, 0.975])
    low, high = min(ends[0], 2 * found - ends[1]), max(ends[1], 2 * found - ends[0])
    share, low, high = (float(np.clip(value, 0, 1)) for value in (found, low, high))
    if not _tells_apart(q_trusted, labels_trusted, generator):
        low, high = 0.0, 1.0
    return Noise(share, min(low, share), max(high, share), _transitions(joint, share))


def _tells_apart(q: Floats, labels: Ints, generator: np.random.Generator) -> bool:
    """Whether trusted labels (m,) are predicted better than by chance: a permutation test at 1%.

    If not, J has no inverse that means anything, and nothing is known of wrong labels.
    """
    rows = np.arange(len(labels))
    own = q[rows, labels].sum()
    others = [q[rows, generator.permutation(labels)].sum() for _ in range(PERMUTATIONS)]
    return sum(other >= own for other in others) < CHANCE * (PERMUTATIONS + 1)


def _joint(M: Floats, q: Floats, labels: Ints) -> Floats:
    """(k, k) joint shares of class and given label, P(i) R_ij, with the sum one.

    RᵀJ = M is solved by ridge regression towards no wrong labels.
    """
    k = len(M)
    J = csr_array((np.ones(len(q)), (labels, np.arange(len(q)))), shape=(k, len(q))) @ q / len(q)
    share = J.sum(1)
    square = J @ J.T
    ridge = RIDGE * np.trace(square) / k
    none_wrong = np.diag(np.where(share > 0, M.sum(1) / np.maximum(share, TINY), 0.0))
    R = np.linalg.solve(square + ridge * np.eye(k), J @ M.T + ridge * none_wrong)
    joint = R * share[:, None]
    return joint / joint.sum()


def _transitions(joint: Floats, share: float) -> Floats:
    """(k, k) probabilities of given labels by class: not negative, with `share` wrong in all."""
    wrong = np.maximum(joint, 0)
    np.fill_diagonal(wrong, 0)
    wrong *= share / max(float(wrong.sum()), TINY)
    classes = np.maximum(joint.sum(1), wrong.sum(1))
    right = np.diag(np.maximum(classes - wrong.sum(1), TINY))
    return (wrong + right) / (wrong + right).sum(1, keepdims=True)
