"""Are the trusted labels themselves right?

All else follows from the trusted samples, so the default looks at them, too. Predictions for
samples that the network does not train on leave two explanations of a label that they find
improbable: the sample is hard, or its label is wrong. Hard samples are expected, as many as the
predictions say. With s(x) the predictions, calibrated on the same labels, and ε the share of wrong
labels, each one of the k classes at random,

    P(y | x) = (1 − ε) s_y(x) + ε/k.

If the labels are much more likely with some ε > 0 than with ε = 0, there are wrong ones among them.
Labels that were confused with similar ones are hard samples to this test: it cannot see them.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from diw.labels.transitions import TINY, Floats, Ints

CHANCE = 10.0
"""Evidence that chance alone gives once in about a thousand times."""
MISFIT = 0.02
"""Evidence per sample that no calibration can avoid: none is exact."""
SHARES = np.array([0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3])
POWERS = np.geomspace(0.25, 8.0, 11)
FLOORS = (0.0, 0.8, 0.99)
CALIBRATIONS = tuple(product(FLOORS, POWERS))
ITERATIONS = 3
MOST = 50_000
"""The calibration is fitted to at most so many predictions, of samples times classes."""


@dataclass(frozen=True)
class TrustedCheck:
    """What speaks for wrong labels among the trusted ones."""

    evidence: float
    """Twice the logarithm of the likelihood ratio, ε at its best against ε = 0."""
    share: float
    """ε: the share of labels that are given at random; zero without evidence."""
    wrong: Floats
    """(m,) the probability of each label to be one of them."""
    samples: int
    """Of how many samples the evidence is."""

    @property
    def enough(self) -> bool:
        """Whether this is more than chance and the misfit of a calibration."""
        return self.evidence > CHANCE + MISFIT * self.samples


def check_trusted(log_p: Floats, labels: Ints) -> TrustedCheck:
    """Test whether some of these labels are wrong, and say which.

    Predictions are calibrated in three ways, each as it makes the labels most likely. A network
    that learns from noisy labels predicts a bit of every class: a part of the smallest prediction
    is taken from all. The rest is raised to a power (Guo et al. 2017). And every class is scaled
    until it is predicted as often as it is a label: else all samples of a class that is rare in
    training would seem wrong.

    Args:
        log_p: (m, k) logarithms of predictions from when the samples were not trained on.
        labels: (m,) their trusted labels.
    """
    m, k = log_p.shape
    some = slice(None, None, -(-m * k // MOST))
    fits = [_Fit.best(log_p[some], labels[some], floor, power) for floor, power in CALIBRATIONS]
    samples = len(labels[some])
    fit = max(fits, key=lambda one: one.with_wrong)
    evidence = 2 * (fit.with_wrong - max(one.without for one in fits))
    if evidence <= 0:
        return TrustedCheck(0.0, 0.0, np.zeros((m,)), samples)
    likely = fit.of_label(log_p, labels)
    wrong = fit.share / k / _mixed(likely, fit.share, k)
    return TrustedCheck(evidence, fit.share, wrong, samples)


@dataclass(frozen=True)
class _Fit:
    """A calibration, and how likely it makes the labels."""

    floor: float
    power: float
    scale: Floats
    """(k,) the factor of each class."""
    without: float = 0.0
    """The logarithm of the likelihood without wrong labels."""
    with_wrong: float = 0.0
    """The same with the best share of them."""
    share: float = 0.0

    @classmethod
    def best(cls, log_p: Floats, labels: Ints, floor: float, power: float) -> "_Fit":
        """With this floor and power, the best scale and share."""
        k = log_p.shape[1]
        wanted = np.bincount(labels, minlength=k) / len(labels)
        fit = cls(floor, power, np.ones((k,)))
        for _ in range(ITERATIONS):
            found = fit.calibrated(log_p).mean(axis=0)
            fit = cls(floor, power, fit.scale * wanted / np.maximum(found, TINY))
        likely = fit.of_label(log_p, labels)
        totals = np.log([_mixed(likely, share, k) for share in (0.0, *SHARES)]).sum(axis=1)
        i = int(totals[1:].argmax())
        return cls(
            floor, power, fit.scale, float(totals[0]), float(totals[i + 1]), float(SHARES[i])
        )

    def calibrated(self, log_p: Floats) -> Floats:
        """(m, k) s."""
        p = np.exp(log_p)
        p = np.maximum(p - self.floor * p.min(axis=1, keepdims=True), TINY)
        p = (p / p.max(axis=1, keepdims=True)) ** self.power * self.scale
        return p / np.maximum(p.sum(axis=1, keepdims=True), TINY)

    def of_label(self, log_p: Floats, labels: Ints) -> Floats:
        """(m,) s of each label."""
        return self.calibrated(log_p)[np.arange(len(labels)), labels].clip(min=TINY)


def _mixed(likely: Floats, share: float, k: int) -> Floats:
    """(m,) (1 − ε) s_y + ε/k."""
    return (1 - share) * likely + share / k
