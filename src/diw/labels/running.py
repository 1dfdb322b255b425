"""What the default knows of the training and the trusted samples as a whole.

Predictions by label enter two tables, from which transitions are estimated
(`diw.labels.transitions`); with them labels are judged, and the shares of the classes set right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from diw.labels.transitions import (
    TINY,
    Bools,
    Floats,
    Ints,
    log_odds,
    right_shares,
    sharpened,
    shrunk_transitions,
    temperature,
    tempered,
    transitions,
    trusted_table,
)
from diw.labels.trusted import check_trusted

VISITS = 6
"""Over how many visits odds and predictions are averaged: those of two turns of being left out."""
FADING = 0.95
"""What is left of the tables' old entries after a match, or a pass if that is longer: they hold
about a round of leaving out, all trusted samples."""
MANY_STEPS = 100
"""In a pass of so many steps a network forgets single samples between two visits."""
MATCHES = 5
"""So many matches are between two looks at whether the trusted labels are right."""
LEAST_ESS = 0.5
"""Class factors leave at least this share of the effective sample size."""
SURE = 8.0
"""Log odds are cut here, so that one visit cannot outvote all others."""


@dataclass
class Running:
    """What is known of the training and the trusted samples as a whole."""

    train: Floats
    """(k, k) sums of predictions by given label, old ones faded."""
    trusted: Floats
    """(k, k) the same of trusted samples, from the same time: then M = RᵀJ holds for a network that
    changes, too."""
    weights: Floats
    """(k,) sums of π² by given label, old ones faded."""
    transitions: Floats
    """(k, k) R."""
    log_p: Floats
    """(m, k) predictions of trusted samples, averaged over their visits."""
    labels: Ints
    """(m,)"""
    visits: Ints
    """(m,)"""
    doubtful: Bools
    """(m,) trusted samples whose own labels look wrong: they are trusted no more."""
    judged: Floats
    """(3, k) how many labels of each class were judged, and sums of the probabilities that they are
    right, at face value and strictly; old ones faded."""
    power: float = 1.0
    """The temperature of the trusted samples' predictions, as a power."""
    next_match: int = 0
    matches: int = 0
    samples: int = 0
    """Of the training set: the largest index so far, plus one."""
    batch: int = 0
    """Samples of the largest mini-batch so far."""

    @classmethod
    def empty(cls, k: int, m: int) -> "Running":
        """Nothing is known yet of k classes and m trusted samples."""
        none = np.zeros(m, np.int64)
        trusted = (np.zeros((m, k)), none, none.copy(), none.astype(bool))
        M, J = np.zeros((2, k, k))
        return cls(M, J, np.zeros(k), np.eye(k), *trusted, np.zeros((3, k)))

    @property
    def ready(self) -> bool:
        """Whether there is something to match."""
        return bool((self.visits > 0).any() and self.train.any())

    def note(self, index: Ints) -> None:
        """Note which samples (n,) a mini-batch has."""
        self.samples = max(self.samples, int(index.max(initial=-1)) + 1)
        self.batch = max(self.batch, len(index))

    @property
    def long_passes(self) -> bool:
        """Whether a pass over the training set is so long that no label is learned by heart."""
        return self.samples >= MANY_STEPS * max(self.batch, 1)

    def add(self, q: Floats, labels: Ints) -> None:
        """Add predictions (n, k) of training samples with these labels (n,)."""
        np.add.at(self.train, labels, q)

    def enter(self, rows: Ints, log_p: Floats, labels: Ints) -> None:
        """Average new predictions of trusted samples with those of their last visits."""
        self.visits[rows] += 1
        share = 1 / np.minimum(self.visits[rows], VISITS)[:, None]
        mixed = (1 - share) * np.exp(self.log_p[rows]) + share * np.exp(log_p)
        self.log_p[rows] = np.log(np.maximum(mixed, 1e-12))
        self.labels[rows] = labels
        sure = ~self.doubtful[rows]
        np.add.at(self.trusted, labels[sure], sharpened(log_p[sure]))

    def match(self, steps: int) -> None:
        """Estimate temperature and transitions from what was seen; again in so many steps."""
        self.matches += 1
        if self.matches % MATCHES == 0:
            self._doubt()
        seen = self.believed
        log_p, labels = self.log_p[seen], self.labels[seen]
        self.power = temperature(log_p, labels)
        q = sharpened(log_p)
        train = self.train / self.train.sum()
        found = transitions(train, trusted_table(q, labels, self.trusted))
        self.transitions = shrunk_transitions(found, train, q, labels)
        left = FADING ** min(1.0, steps / max(ceil(self.samples / max(self.batch, 1)), 1))
        self.train *= left
        self.trusted *= left

    @property
    def believed(self) -> Bools:
        """(m,) the trusted samples that were seen and whose labels are not in doubt."""
        return (self.visits > 0) & ~self.doubtful

    def _doubt(self) -> None:
        """Look at whether the trusted labels are right; without new evidence the old one holds."""
        seen = self.visits > 0
        found = check_trusted(self.log_p[seen], self.labels[seen])
        if found.enough:
            self.doubtful[seen] = found.wrong > 0.5

    def judge(self, log_p: Floats, labels: Ints) -> Floats:
        """(2, n) log odds that labels are right, at face value and strictly.

        Args:
            log_p: (n, k) logarithms of predicted probabilities.
            labels: (n,) the given labels.
        """
        views = (log_p, tempered(log_p, self.power))
        odds = [log_odds(view, labels, self.transitions) for view in views]
        return np.stack(odds).clip(-SURE, SURE)

    def right(self, odds: Floats, labels: Ints, known: Bools, by_share: bool) -> Floats:
        """(n,) the probabilities that labels are right: one for trusted ones.

        Trusted samples are trained on as well and are not quite forgotten while they are left
        out. So their predictions are surer than those of others, and their temperature is too
        strict, most of all for classes that look alike. A right label that is dropped is seldom
        taken back, because the network does not learn what it is not shown. So each class is
        judged between face value and strictly, such that as many of its labels seem right as are
        right according to the transitions.

        Args:
            odds: (2, n) as `judge` gives them.
            labels: (n,) the given labels.
            known: (n,) whether a sample is trusted.
            by_share: Whether to do so; otherwise all are judged strictly.
        """
        face, strict = 1 / (1 + np.exp(-odds))
        others, k = labels[~known], len(self.weights)
        self.judged = 0.99 * self.judged + np.stack(
            [np.bincount(others, part[~known], k) for part in (np.ones_like(face), face, strict)]
        )
        count, *shares = self.judged
        at_face, strictly = (share / np.maximum(count, TINY) for share in shares)
        wanted = right_shares(self.transitions, self._trusted_shares())
        mix = strictness(at_face, strictly, wanted)[labels] if by_share else 1.0
        return np.where(known, 1.0, (1 - mix) * face + mix * strict)

    def _trusted_shares(self) -> Floats:
        """(k,) the shares of the classes among the trusted samples that were seen."""
        seen = self.labels[self.believed]
        return np.bincount(seen, minlength=len(self.weights)) / len(seen)

    def class_factors(self, weights: Floats, labels: Ints) -> Floats:
        """(n,) what brings the classes to the shares that the trusted samples have."""
        k = len(self.weights)
        self.weights = 0.99 * self.weights + np.bincount(labels, weights, k)
        wanted, m = self._trusted_shares(), int(self.believed.sum())
        present = np.maximum(self.weights, TINY) / np.maximum(self.weights, TINY).sum()
        return tamed(shrunk_shares(wanted, present, m) / present, present)[labels]

    def state_dict(self) -> dict[str, Any]:
        """All of it, as arrays and plain values."""
        of_trusted = ("log_p", "labels", "visits", "doubtful")
        names = ("train", "trusted", "weights", "transitions", *of_trusted, "judged")
        arrays = {name: getattr(self, name).copy() for name in names}
        numbers = ("power", "next_match", "matches", "samples", "batch")
        return {**arrays, **{name: getattr(self, name) for name in numbers}}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "Running":
        """What `state_dict` gave."""
        arrays: dict[str, Any] = {
            n: v.copy() if isinstance(v, np.ndarray) else v for n, v in state.items()
        }
        return cls(**arrays)


def strictness(face: Floats, strict: Floats, wanted: Floats) -> Floats:
    """(k,) λ in [0, 1] with (1 − λ) face + λ strict = wanted, or the end that is closest to it.

    Where the strict judgement is not the stricter one it is taken, λ = 1.

    Args:
        face: (k,) shares of labels that seem right, predictions taken at face value.
        strict: (k,) the same, predictions at the temperature of the trusted samples.
        wanted: (k,) shares of right labels.
    """
    gap = face - strict
    return np.where(gap > 0, np.clip((face - wanted) / np.maximum(gap, TINY), 0, 1), 1.0)


def shrunk_shares(wanted: Floats, present: Floats, m: int) -> Floats:
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


def tamed(factors: Floats, shares: Floats, least: float = LEAST_ESS) -> Floats:
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
