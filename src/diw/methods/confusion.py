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

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

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
LEAST_ESS = 0.5
"""Class factors leave at least this share of the effective sample size."""
TINY = 1e-12


def temperature(log_p: FloatArray, labels: NDArray[np.int64]) -> float:
    """The power a of predictions, p ∝ pᵃ, under which labels are most likely (Guo et al. 2017).

    Args:
        log_p: (m, k) logarithms of the predicted probabilities of trusted samples.
        labels: (m,) their labels.
    """
    losses = [-tempered(log_p, a)[np.arange(len(labels)), labels].mean() for a in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def tempered(log_p: FloatArray, power: float) -> FloatArray:
    """(n, k) logarithms of probabilities proportional to pᵃ."""
    scaled = power * log_p
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    return scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))


def trusted_table(
    q: FloatArray, labels: NDArray[np.int64], sums: FloatArray | None = None
) -> FloatArray:
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


def transitions(train: FloatArray, trusted: FloatArray) -> FloatArray:
    """(k, k) R ≥ 0 with M ≈ RᵀJ: the maximum of the likelihood Σ M log(RᵀJ), approached by EM.

    It starts where hardly a label is wrong, and 30 steps from there it has found what is in
    the data; classes without trusted samples keep that start.

    Args:
        train: (k, k) M, by given label, with the sum one.
        trusted: (k, k) J, by label, with the sum one.
    """
    k = len(trusted)
    share = trusted.sum(axis=1)
    ratio = train.sum(axis=1) / np.maximum(share, TINY)
    R = ((1 - WRONG_AT_START) * np.eye(k) + WRONG_AT_START / k) * ratio[:, None]
    for _ in range(ITERATIONS):
        expected = np.maximum(R.T @ trusted, TINY)
        np.multiply(R, trusted @ (train / expected).T, out=R)
        np.divide(R, np.maximum(share, TINY)[:, None], out=R)
    return R


def shrunk_transitions(
    R: FloatArray, train: FloatArray, q: FloatArray, labels: NDArray[np.int64]
) -> FloatArray:
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


def information(R: FloatArray) -> float:
    """What a given label is worth of a trusted one: the share of information that noise leaves.

    With T the transition probabilities, the rows of R scaled to one, it is the mean square of T's
    eigenvalues but the first, (‖T‖² − 1)/(k − 1). For two classes and flips at rate η that is
    (1 − 2η)², the ratio of Fisher's information about a frequency; without noise it is one.

    Args:
        R: (k, k), see `transitions`.
    """
    T = R / np.maximum(R.sum(axis=1, keepdims=True), TINY)
    return float(np.clip(((T**2).sum() - 1) / (len(T) - 1), LEAST_INFORMATION, 1.0))


def log_odds(log_q: FloatArray, labels: NDArray[np.int64], R: FloatArray) -> FloatArray:
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


def right_shares(R: FloatArray, prior: FloatArray) -> FloatArray:
    """(k,) the share of right labels among those of each class, R_jj P_j / (RᵀP)_j.

    Args:
        R: (k, k), see `transitions`.
        prior: (k,) P, the frequencies of the classes in the trusted data.
    """
    return np.diagonal(R) * prior / np.maximum(R.T @ prior, TINY)


def strictness(face: FloatArray, strict: FloatArray, wanted: FloatArray) -> FloatArray:
    """(k,) λ in [0, 1] with (1 − λ) face + λ strict = wanted, or the end that is closest to it.

    Where the strict judgement is not the stricter one it is taken, λ = 1.

    Args:
        face: (k,) shares of labels that seem right, predictions taken at face value.
        strict: (k,) the same, predictions at the temperature of the trusted samples.
        wanted: (k,) shares of right labels.
    """
    gap = face - strict
    return np.where(gap > 0, np.clip((face - wanted) / np.maximum(gap, TINY), 0, 1), 1.0)


def shrunk_shares(wanted: FloatArray, present: FloatArray, m: int) -> FloatArray:
    """(k,) class shares between those present and those wanted, by the evidence for a difference.

    With m trusted samples their shares differ from the true ones by chance. The logarithms of the
    ratios are shrunk by James and Stein's positive part, 1 − (k − 1)/χ²: nothing is left of a
    difference that chance explains, and hardly anything is lost of a large one.

    Args:
        wanted: (k,) shares of the classes among m trusted samples.
        present: (k,) shares of the classes among the training samples that count.
        m: Number of trusted samples.
    """
    k = len(wanted)
    smooth = (m * wanted + 0.5) / (m + 0.5 * k)
    chi2 = m * float(((smooth - present) ** 2 / np.maximum(present, TINY)).sum())
    strength = max(0.0, 1 - (k - 1) / chi2) if chi2 > 0 else 0.0
    shares = present * np.exp(strength * np.log(smooth / np.maximum(present, TINY)))
    return shares / shares.sum()


def tamed(factors: FloatArray, shares: FloatArray, least: float = LEAST_ESS) -> FloatArray:
    """(k,) class factors, or the largest power of them that leaves an effective sample size.

    Kish's effective sample size of weights f_y is (Σ P f)² / Σ P f², as a share of n. Ten samples
    that stand for a tenth of the data have weights of a hundred: right on average, but a
    mini-batch that has one of them learns little else, and some networks do not survive it.

    Args:
        factors: (k,) f.
        shares: (k,) P, the shares of the classes.
        least: The smallest share of the effective sample size.
    """

    def size(power: float) -> float:
        f = factors**power
        return float((shares @ f) ** 2 / (shares @ f**2))

    if size(1.0) >= least:
        return factors
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if size(middle) >= least else (low, middle)
    return factors**low
