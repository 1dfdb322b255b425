"""Label noise that depends on the sample: what is hard to tell apart is confused more often.

Both kinds read the inputs by a softmax regression fitted to right labels. `instance` fits it to
many rows: with p_c the class probabilities it gives a sample of label y, and c* its best other
class, the label becomes c* with probability

    ρ(x) = σ(log p_c* − log p_y + b),

where b makes the mean of ρ over all samples the rate. `annotator` is somebody who saw few examples:
the regression is fitted to few rows, and labels are drawn from softmax(β log p), where the inverse
temperature β makes the expected share of wrong labels the rate. Its errors are wrong in the same
way for samples that look alike, as those of people and rules are.
"""

from abc import abstractmethod
from typing import ClassVar, final

import numpy as np

from diw.errors import UsageError
from diw.shifts.shift import Floats, Inputs, Ints, Noise, Passage, read_in_chunks, read_rows

_SAMPLE = 5000
"""Rows the regression is fitted to, at most."""

_RIDGE = 1e-4
"""L2 penalty of the regression on standardised inputs: the smaller, the more is flipped where
doubt is large (on Fashion-MNIST at rate 0.4, one sample in twenty below 0.01, one above 0.93)."""


FEW = 30
"""Rows for each class that an annotator has seen, at first."""

_STEEPEST = 1e3
"""The largest inverse temperature: an annotator who always gives the best class."""


def log_probabilities(inputs: Inputs, labels: Ints, num_classes: int, rows: Ints) -> Floats:
    """(n, k) log p(c | x) by a softmax regression on standardised inputs, fitted to `rows`.

    It minimises the mean cross entropy plus the ridge, which is strongly convex: the
    solution does not depend on where the iteration starts.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

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


class BySample(Noise):
    """Label noise that depends on the inputs."""

    def act(self, passage: Passage, rng: np.random.Generator) -> None:
        """Change labels; what inputs tell is learned from all rows, before the shift."""
        if self.rate and passage.num_classes > 1 and len(passage.keep):
            self.change(passage, passage.needed_inputs, rng)

    @abstractmethod
    def change(self, passage: Passage, inputs: Inputs, rng: np.random.Generator) -> None:
        """Give the rows that are left other labels."""


@final
class Instance(BySample):
    """Flips the labels of hard samples to their second choice."""

    name: ClassVar[str] = "instance"

    def change(self, passage: Passage, inputs: Inputs, rng: np.random.Generator) -> None:
        """Flip labels where the doubt is large."""
        sample = np.sort(rng.permutation(len(inputs))[:_SAMPLE])
        logs = log_probabilities(inputs, passage.original, passage.num_classes, sample)
        rows = np.arange(len(logs))
        own = logs[rows, passage.original].copy()
        logs[rows, passage.original] = -np.inf
        second = logs.argmax(axis=1)[passage.keep]
        probability = flip_probability(logs.max(axis=1) - own, self.rate)[passage.keep]
        flips = rng.random(len(passage.keep)) < probability
        passage.relabel(np.where(flips, second, passage.unprotected))
        arrivals = passage.arrivals()
        passage.by_row = (1 - probability)[:, None] * arrivals
        passage.by_row[np.arange(len(second)), second] += probability * arrivals.sum(axis=1)


def annotated(
    inputs: Inputs, labels: Ints, num_classes: int, rate: float, rng: np.random.Generator
) -> Floats:
    """(n, k) the probabilities with which an annotator gives each label: `rate` wrong in the mean.

    An annotator who is wrong too often even when giving the best class sees more rows. If seeing
    many does not suffice, some labels are right whatever the annotator would say.
    """
    from scipy.optimize import root_scalar
    from scipy.special import softmax

    order, seen = rng.permutation(len(inputs)), FEW * num_classes
    logs = log_probabilities(inputs, labels, num_classes, np.sort(order[:seen]))
    while _wrong(_STEEPEST, logs, labels) > rate and seen < min(len(inputs), _SAMPLE):
        seen *= 4
        logs = log_probabilities(inputs, labels, num_classes, np.sort(order[:seen]))
    least, most = (_wrong(beta, logs, labels) for beta in (_STEEPEST, -_STEEPEST))
    if rate > most:
        raise UsageError(
            f"shift: an annotator can make {most:.3f} of these labels wrong at most, not {rate:g}"
        )
    if rate < least:
        chance = rate / least * softmax(_STEEPEST * logs, axis=1)
        chance[np.arange(len(labels)), labels] += 1 - rate / least
        return chance
    found = root_scalar(
        lambda beta: _wrong(beta, logs, labels) - rate, bracket=(-_STEEPEST, _STEEPEST), xtol=1e-6
    )
    return softmax(found.root * logs, axis=1)


def _wrong(beta: float, logs: Floats, labels: Ints) -> float:
    """The expected share of wrong labels when they are drawn from softmax(β log p)."""
    from scipy.special import softmax

    return 1 - float(softmax(beta * logs, axis=1)[np.arange(len(labels)), labels].mean())


@final
class Annotator(BySample):
    """Labels by somebody who saw few examples, as often wrong as asked."""

    name: ClassVar[str] = "annotator"

    def change(self, passage: Passage, inputs: Inputs, rng: np.random.Generator) -> None:
        """Draw all labels anew."""
        chance = annotated(inputs, passage.original, passage.num_classes, self.rate, rng)
        chance = chance[passage.keep]
        drawn = rng.random(len(chance))[:, None]
        labels = (np.cumsum(chance, axis=1) < drawn).sum(axis=1).clip(max=passage.num_classes - 1)
        passage.relabel(labels.astype(np.int64))
        passage.by_row = chance * passage.arrivals().sum(axis=1, keepdims=True)
