"""What the default knows of the training and the trusted samples as a whole.

Predictions by label enter two tables, from which transitions are estimated
(`diw.methods.confusion`); with them labels are judged, and the shares of the classes set right.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diw.methods.confusion import (
    SHARPNESS,
    TINY,
    FloatArray,
    log_odds,
    right_shares,
    shrunk_shares,
    shrunk_transitions,
    strictness,
    tamed,
    temperature,
    tempered,
    transitions,
    trusted_table,
)
from diw.methods.doubts import doubts

VISITS = 6
"""Over how many visits odds and predictions are averaged: those of two turns of being left out."""
FADING = 0.95
"""What is left of the tables' old entries after a match, or a pass if that is longer: they hold
about a round of leaving out, all trusted samples."""
MANY_STEPS = 100
"""In a pass of so many steps a network forgets single samples between two visits."""
MATCHES = 5
"""So many matches are between two looks at whether the trusted labels are right."""
SURE = 8.0
"""Log odds are cut here, so that one visit cannot outvote all others."""


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
    doubtful: NDArray[np.bool_]
    """(m,) trusted samples whose own labels look wrong: they are trusted no more."""
    judged: FloatArray
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
    def empty(cls, k: int) -> "Tables":
        """Nothing is known yet of k classes."""
        none = np.zeros(0, np.int64)
        M, J, log_p = np.zeros((k, k)), np.zeros((k, k)), np.zeros((0, k))
        trusted = (log_p, none, none, none.astype(bool))
        return cls(M, J, np.zeros(k), np.eye(k), *trusted, np.zeros((3, k)))

    @property
    def ready(self) -> bool:
        """Whether there is something to match."""
        return bool((self.visits > 0).any() and self.train.any())

    def note(self, index: NDArray[np.int64]) -> None:
        """Note which samples (n,) a mini-batch has."""
        self.samples = max(self.samples, int(index.max(initial=-1)) + 1)
        self.batch = max(self.batch, len(index))

    @property
    def long_passes(self) -> bool:
        """Whether a pass over the training set is so long that no label is learned by heart."""
        return self.samples >= MANY_STEPS * max(self.batch, 1)

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
            self.doubtful = np.concatenate([self.doubtful, np.zeros(missing, bool)])
        self.visits[rows] += 1
        share = 1 / np.minimum(self.visits[rows], VISITS)[:, None]
        mixed = (1 - share) * np.exp(self.log_p[rows]) + share * np.exp(log_p)
        self.log_p[rows] = np.log(np.maximum(mixed, 1e-12))
        self.labels[rows] = labels
        sure = ~self.doubtful[rows]
        np.add.at(self.trusted, labels[sure], np.exp(tempered(log_p[sure], SHARPNESS)))

    def match(self, steps: int) -> None:
        """Estimate temperature and transitions from what was seen; again in so many steps."""
        self.matches += 1
        if self.matches % MATCHES == 0:
            self._doubt()
        seen = self.believed
        log_p, labels = self.log_p[seen], self.labels[seen]
        self.power = temperature(log_p, labels)
        q = np.exp(tempered(log_p, SHARPNESS))
        train = self.train / self.train.sum()
        found = transitions(train, trusted_table(q, labels, self.trusted))
        self.transitions = shrunk_transitions(found, train, q, labels)
        left = FADING ** min(1.0, steps / max(ceil(self.samples / max(self.batch, 1)), 1))
        self.train *= left
        self.trusted *= left

    @property
    def believed(self) -> NDArray[np.bool_]:
        """(m,) the trusted samples that were seen and whose labels are not in doubt."""
        return (self.visits > 0) & ~self.doubtful

    def _doubt(self) -> None:
        """Look at whether the trusted labels are right; without new evidence the old one holds."""
        seen = self.visits > 0
        found = doubts(self.log_p[seen], self.labels[seen])
        if found.enough:
            self.doubtful[seen] = found.wrong > 0.5

    def judge(self, log_p: FloatArray, labels: NDArray[np.int64]) -> FloatArray:
        """(2, n) log odds that labels are right, at face value and strictly.

        Args:
            log_p: (n, k) logarithms of predicted probabilities.
            labels: (n,) the given labels.
        """
        views = (log_p, tempered(log_p, self.power))
        odds = [log_odds(view, labels, self.transitions) for view in views]
        return np.stack(odds).clip(-SURE, SURE)

    def right(
        self, odds: FloatArray, labels: NDArray[np.int64], known: NDArray[np.bool_], by_share: bool
    ) -> FloatArray:
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
        others, k = labels[~known], len(self.worth)
        self.judged = 0.99 * self.judged + np.stack(
            [np.bincount(others, part[~known], k) for part in (np.ones_like(face), face, strict)]
        )
        count, *shares = self.judged
        at_face, strictly = (share / np.maximum(count, TINY) for share in shares)
        wanted = right_shares(self.transitions, self._trusted_shares())
        mix = strictness(at_face, strictly, wanted)[labels] if by_share else 1.0
        return np.where(known, 1.0, (1 - mix) * face + mix * strict)

    def _trusted_shares(self) -> FloatArray:
        """(k,) the shares of the classes among the trusted samples that were seen."""
        seen = self.labels[self.believed]
        return np.bincount(seen, minlength=len(self.worth)) / len(seen)

    def class_factors(self, worth: FloatArray, labels: NDArray[np.int64]) -> FloatArray:
        """(n,) what brings the classes to the shares that the trusted samples have."""
        k = len(self.worth)
        self.worth = 0.99 * self.worth + np.bincount(labels, worth, k)
        wanted, m = self._trusted_shares(), int(self.believed.sum())
        present = np.maximum(self.worth, TINY) / np.maximum(self.worth, TINY).sum()
        return tamed(shrunk_shares(wanted, present, m) / present, present)[labels]

    def state_dict(self) -> dict[str, Any]:
        """All of it, as tensors and plain values."""
        of_trusted = ("log_p", "labels", "visits", "doubtful")
        names = ("train", "trusted", "worth", "transitions", *of_trusted, "judged")
        arrays = {name: torch.as_tensor(getattr(self, name).copy()) for name in names}
        numbers = ("power", "next_match", "matches", "samples", "batch")
        return {**arrays, **{name: getattr(self, name) for name in numbers}}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "Tables":
        """What `state_dict` gave, in this version or an older one that knew less."""
        arrays: dict[str, Any] = {
            name: value.numpy().copy() if isinstance(value, Tensor) else value
            for name, value in state.items()
        }
        arrays.setdefault("doubtful", np.zeros(len(arrays["visits"]), bool))
        return replace(cls.empty(len(arrays["train"])), **arrays)
