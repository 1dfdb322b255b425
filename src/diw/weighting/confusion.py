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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FloatArray = NDArray[np.float64]

ITERATIONS = 30
"""Of expectation and maximisation: few, because the last details of R are the trusted set's
noise."""
WRONG_AT_START = 0.1
PRIOR_SAMPLES = 10.0
"""How many trusted samples the network's own opinion of them is worth in their table."""
TEMPERATURES = np.geomspace(0.25, 4.0, 33)
VISITS = 6
"""Over how many visits odds and predictions are averaged: those of two turns of being left out."""
SHARPNESS = 2.0
"""The tables hold squared and rescaled predictions: any function of x serves, and these differ more
from class to class."""
FADING = 0.95
"""What is left of the tables' old entries after each match."""
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


def judged(power: float, by_heart: float) -> float:
    """The power of predictions at which labels are judged, given that of the trusted samples.

    Trusted samples are trained on as well and are not quite forgotten while they are left out. So
    their predictions are surer than those of others, and their power a is too high, the more so
    the more the network learns by heart. If it does, the strict a keeps wrong labels out. If it
    does not, a only drops right labels that are doubtful, and predictions count as they are.
    Between the two: min(a, max(1, (a/h)³)).

    Args:
        power: a, see `temperature`.
        by_heart: h, up to which predictions count as they are; 1 leaves a alone.
    """
    return min(power, max(1.0, (power / by_heart) ** 3))


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


@dataclass
class Tables:
    """What is known of the training and the trusted samples as a whole."""

    train: FloatArray
    """(k, k) sums of predictions by given label, old ones faded."""
    trusted: FloatArray
    """(k, k) the same of trusted samples, from the same time: then M = RᵀJ holds for a network that
    changes, too."""
    worth: FloatArray
    """(k,) sums of π² by given label, old ones faded."""
    transitions: FloatArray
    """(k, k) R."""
    log_p: FloatArray
    """(m, k) predictions of trusted samples, NaN where none was seen yet."""
    labels: NDArray[np.int64]
    """(m,)"""
    visits: NDArray[np.int64]
    """(m,)"""
    power: float = 1.0
    """The temperature at which labels are judged, as a power of predictions."""
    next_match: int = 0

    @classmethod
    def empty(cls, k: int) -> "Tables":
        """Nothing is known yet of k classes."""
        none = np.zeros(0, np.int64)
        M, J = np.zeros((k, k)), np.zeros((k, k))
        return cls(M, J, np.zeros(k), np.eye(k), np.zeros((0, k)), none, none)

    @property
    def ready(self) -> bool:
        """Whether there is something to match."""
        return bool((self.visits > 0).any() and self.train.any())

    def add(self, q: FloatArray, labels: NDArray[np.int64]) -> None:
        """Add predictions (n, k) of training samples with these labels (n,)."""
        np.add.at(self.train, labels, q)

    def enter(self, rows: NDArray[np.int64], log_p: FloatArray, labels: NDArray[np.int64]) -> None:
        """Average new predictions of trusted samples with those of their last visits."""
        missing = int(rows.max()) + 1 - len(self.visits) if len(rows) else 0
        if missing > 0:
            k = len(self.train)
            self.log_p = np.concatenate([self.log_p, np.zeros((missing, k))])
            self.labels = np.concatenate([self.labels, np.zeros(missing, np.int64)])
            self.visits = np.concatenate([self.visits, np.zeros(missing, np.int64)])
        self.visits[rows] += 1
        share = 1 / np.minimum(self.visits[rows], VISITS)[:, None]
        mixed = (1 - share) * np.exp(self.log_p[rows]) + share * np.exp(log_p)
        self.log_p[rows] = np.log(np.maximum(mixed, 1e-12))
        self.labels[rows] = labels
        np.add.at(self.trusted, labels, np.exp(tempered(log_p, SHARPNESS)))

    def match(self, by_heart: float = 1.0) -> None:
        """Estimate temperature and transitions from what was seen.

        Args:
            by_heart: See `judged`.
        """
        seen = self.visits > 0
        log_p, labels = self.log_p[seen], self.labels[seen]
        self.power = judged(temperature(log_p, labels), by_heart)
        q = np.exp(tempered(log_p, SHARPNESS))
        train = self.train / self.train.sum()
        found = transitions(train, trusted_table(q, labels, self.trusted))
        self.transitions = shrunk_transitions(found, train, q, labels)
        self.train *= FADING
        self.trusted *= FADING

    def class_factors(self, worth: FloatArray, labels: NDArray[np.int64]) -> FloatArray:
        """(n,) what brings the classes to the shares that the trusted samples have."""
        k = len(self.worth)
        self.worth = 0.99 * self.worth + np.bincount(labels, worth, k)
        seen = self.labels[self.visits > 0]
        wanted = np.bincount(seen, minlength=k) / len(seen)
        present = np.maximum(self.worth, 1e-12) / np.maximum(self.worth, 1e-12).sum()
        return tamed(shrunk_shares(wanted, present, len(seen)) / present, present)[labels]

    def state_dict(self) -> dict[str, Any]:
        """All of it, as tensors and plain values."""
        arrays = {
            name: torch.as_tensor(getattr(self, name).copy())
            for name in ("train", "trusted", "worth", "transitions", "log_p", "labels", "visits")
        }
        return {**arrays, "power": self.power, "next_match": self.next_match}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "Tables":
        """What `state_dict` gave."""
        arrays: dict[str, Any] = {
            name: value.numpy().copy() if isinstance(value, Tensor) else value
            for name, value in state.items()
        }
        return cls(**arrays)
