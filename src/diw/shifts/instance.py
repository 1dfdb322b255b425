"""Instance-dependent label noise: what is hard to tell apart is confused more often.

The doubt about a sample comes from a softmax regression on its input, fitted to the clean
labels. With p_c the class probabilities it gives a sample of label y, and c* its best other class,
the label becomes c* with probability

    ρ(x) = σ(log p_c* − log p_y + b),

where b makes the mean of ρ over all samples the rate.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from diw.shifts.shift import Floats, Inputs, Ints, Passage, Stage, read_in_chunks, read_rows

_SAMPLE = 5000
"""Rows the regression is fitted to, at most."""

_RIDGE = 1e-4
"""L2 penalty of the regression on standardised inputs: the smaller, the more is flipped where
doubt is large (on Fashion-MNIST at rate 0.4, one sample in twenty below 0.01, one above 0.93)."""


def log_probabilities(
    inputs: Inputs, labels: Ints, num_classes: int, rng: np.random.Generator
) -> Floats:
    """(n, k) log p(c | x) by a softmax regression on standardised inputs, fitted to some rows.

    It minimises the mean cross entropy plus the ridge, which is strongly convex: the
    solution does not depend on where the iteration starts.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    rows = np.sort(rng.permutation(len(inputs))[:_SAMPLE])
    sample = read_rows(inputs, rows)
    centre, scale = sample.mean(axis=0), sample.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0) * np.sqrt(sample.shape[1])

    def design(values: Floats) -> Floats:
        return np.column_stack([(values - centre) / scale, np.ones(len(values))])

    X, Y = design(sample), np.eye(num_classes)[labels[rows]]
    penalty = np.append(np.full(X.shape[1] - 1, _RIDGE), 1e-6)[:, None]

    def objective(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(X.shape[1], num_classes)
        logs = log_softmax(X @ W, axis=1)
        loss = -float((Y * logs).sum()) / len(X) + 0.5 * float((penalty * W * W).sum())
        return loss, (X.T @ (np.exp(logs) - Y) / len(X) + penalty * W).ravel()

    start = np.zeros(X.shape[1] * num_classes)
    options = {"maxiter": 500, "gtol": 1e-7, "ftol": 0.0}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    W = found.x.reshape(X.shape[1], num_classes)
    return np.concatenate(
        [log_softmax(design(values) @ W, axis=1) for values in read_in_chunks(inputs)]
    )


def flip_probability(doubt: Floats, rate: float) -> Floats:
    """(n,) ρ = σ(doubt + b) of log-odds `doubt` (n,), with b such that the mean is `rate`."""
    from scipy.optimize import root_scalar
    from scipy.special import expit, logit

    if rate == 0:
        return np.zeros(len(doubt))
    target = float(logit(rate))
    bracket = (target - float(doubt.max()) - 1, target - float(doubt.min()) + 1)
    found = root_scalar(lambda b: float(expit(doubt + b).mean()) - rate, bracket=bracket)
    return expit(doubt + found.root)


@final
@dataclass(frozen=True)
class Instance(Stage):
    """Flips the labels of hard samples to their second choice."""

    name: ClassVar[str] = "instance"
    usage: ClassVar[str] = "RATE"
    moves_labels: ClassVar[bool] = True
    rate: float

    def __post_init__(self) -> None:
        self.check(0 <= self.rate < 1, "rate", "lies in [0, 1)", self.rate)

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Flip labels; the doubt is measured on all rows and their labels before the shift."""
        if self.rate == 0 or passage.num_classes < 2 or not len(passage.keep):
            return
        if passage.inputs is None:
            raise ValueError("inputs: instance-dependent noise needs them")
        logs = log_probabilities(passage.inputs, passage.original, passage.num_classes, rng)
        rows = np.arange(len(logs))
        own = logs[rows, passage.original].copy()
        logs[rows, passage.original] = -np.inf
        second = logs.argmax(axis=1)
        probability = flip_probability(logs[rows, second] - own, self.rate)[passage.keep]
        flips = (rng.random(len(passage.keep)) < probability) & ~passage.kept_protected
        passage.targets = np.where(flips, second[passage.keep], passage.targets)
        passage.selected = passage.selected * (1 - probability)
