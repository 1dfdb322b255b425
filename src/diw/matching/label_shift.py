"""Class shares of rows without labels, where only the shares differ: p(x|y) is the same.

A classifier's probabilities on training rows that it has not learned, and on the target's rows, are
all that is needed. They are calibrated with the training labels (bias-corrected temperature
scaling); then the shares q of the target have the largest likelihood

    Σ_j log Σ_y (q_y/p_y) P(y|x_j),    p_y the training shares,

which expectation maximisation finds (Saerens, Latinne & Decaestecker 2002; Alexandari, Kundaje &
Shrikumar 2020). Beside it stand the shares of the moment equation: the joint mean of probabilities
and labels, times q/p, is the target's mean of probabilities (black-box shift estimation, Lipton,
Wang & Smola 2018, with probabilities instead of predicted classes).

Both are wrong where p(x|y) differs. So the target's rows are held against training rows that are
weighted by class: T = ‖weighted mean φ(x_i) − mean φ(x_j)‖². What T, and the shares, are by chance
says a bootstrap in which the target is drawn from the training rows of each class.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from diw.alerts import warn
from diw.errors import UsageError
from diw.matching.estimators import Parameters
from diw.matching.gram import FloatArray
from diw.matching.kmm import as_values
from diw.matching.match import Values
from diw.seeding import numpy_generator

IntArray = NDArray[np.int64]

FEWEST = 10
"""Training rows of each class, at least."""
FEW = 2
"""Expected target rows of a class below which the weights would drop it."""
APART = 4.0
"""Smallest singular value of the classes' mean probabilities, in units of 1/√n, that tells them."""
SMALLEST = 1e-12  # of probabilities, whose logarithm is taken
STEPS = 500  # of expectation maximisation, and of Newton's method
SETTLED, ROUGHLY = 1e-7, 1e-5  # changes of shares that end it, ours and in the bootstrap
FLAT = 1e-6  # a row's share in the penalty on what the labels do not tell of the calibration
DRAWS = 200
"""Of the bootstrap."""
DRAWN_ROWS = 1500
"""Rows of either kind, at most, in the bootstrap and the test."""
MANY, FEWER = 20_000, 5_000  # rows of a calibration that begins with fewer
FEATURES = 200
"""Random Fourier features φ of the test."""


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LabelShift(Parameters):
    """Weights by class, for a target whose class shares differ and whose labels nobody knows.

    Attributes:
        shares_: (k,) the target's class shares.
        errors_: (k,) their standard errors.
        train_shares_: (k,) those of the training rows.
        moment_shares_: (k,) the target's by the moment equation, as a check.
        class_weights_: (k,) `shares_` over `train_shares_`.
        p_value_: Of the test that only the shares differ.
        weights_: (n,) the weights of the training rows; ones where something speaks against them.
        labels_worth_: So many target rows with known labels would tell the shares as well.
        status_: "optimal", or what speaks against the weights.
    """

    level: float = 0.05
    """Where the p-value is below it, or a class is all but absent from the target, `weights_` are
    ones and a warning says so; 0 never asks."""
    seed: int = 0
    """Decides the bootstrap."""

    def fit(
        self,
        probabilities: Values,
        labels: Values,
        target: Values,
        *,
        rows: Values | None = None,
        target_rows: Values | None = None,
    ) -> Self:
        """Estimate the target's class shares.

        Args:
            probabilities: (n, k) of the classes, for training rows that the classifier has not
                learned (`cross_val_predict`).
            labels: (n,) their labels, as numbers of the columns of `probabilities`.
            target: (m, k) probabilities of the target's rows.
            rows: (n, d) the training rows themselves, by which the assumption is tested;
                without them the logarithms of the probabilities are.
            target_rows: (m, d) the target's rows.
        """
        if not 0 <= self.level < 1:
            raise UsageError(f"level: must be at least 0 and below 1, not {self.level}")
        ours, theirs = _log("probabilities", probabilities), _log("target", target)
        given = _checked_labels(labels, ours)
        if theirs.shape[1] != ours.shape[1]:
            raise UsageError(
                f"target: probabilities of {theirs.shape[1]} classes, but training has "
                f"{ours.shape[1]}"
            )
        self._calibration, pulls = calibration(ours, given)
        P, Q = self._calibrated(ours), self._calibrated(theirs)
        shares = np.bincount(given, minlength=P.shape[1]) / len(P)
        self.train_shares_ = shares
        self.shares_ = likeliest(Q / shares, np.ones(len(Q)), shares)
        self.class_weights_ = self.shares_ / shares
        self.moment_shares_ = by_moments(P, given, np.ones(len(P)), Q.mean(0))
        features = ours, theirs
        if rows is not None and target_rows is not None:
            features = _matrix("rows", rows, len(ours)), _matrix("target_rows", target_rows, len(Q))
        self.errors_, self.p_value_ = self._bootstrap(ours, given, pulls, *features)
        spread = float((self.shares_ * (1.0 - self.shares_)).sum())
        self.labels_worth_ = spread / max(float((self.errors_**2).sum()), 1e-12)
        self.status_, self.weights_ = "optimal", self.class_weights_[given]
        rarest = int(self.shares_.argmin())
        means = np.stack([P[given == label].mean(0) for label in range(len(shares))])
        apart = float(np.linalg.svd(means, compute_uv=False)[-1])
        if self.level and apart < APART / np.sqrt(min(len(P), len(Q))):
            self._doubt("the probabilities do not tell the classes apart, nor so their shares")
        elif self.p_value_ < self.level:
            self._doubt(f"more than the class shares differs (p = {self.p_value_:.2g})")
        elif self.level and self.shares_[rarest] * len(Q) < FEW:
            self._doubt(f"class {rarest} is all but absent from the target")
        return self

    def _doubt(self, status: str) -> None:
        """Say what speaks against the weights, and give none."""
        self.status_, self.weights_ = status, np.ones(len(self.weights_))
        warn(
            f"LabelShift: {status}; all weights are one (LabelShift(level=0) takes those by class)"
        )

    def posterior(self, probabilities: Values) -> FloatArray:
        """(b, k) probabilities of the classes among the target's rows, for such rows."""
        joint = self._calibrated(_log("probabilities", probabilities)) * self.class_weights_
        return joint / joint.sum(1, keepdims=True)

    def predict(self, probabilities: Values) -> FloatArray:
        """(b,) the ratio of target to training density at rows with these probabilities."""
        return self._calibrated(_log("probabilities", probabilities)) @ self.class_weights_

    def _calibrated(self, log_p: FloatArray) -> FloatArray:
        return softmax(log_p * self._calibration[0] + self._calibration[1:])

    def _bootstrap(
        self,
        log_p: FloatArray,
        labels: IntArray,
        pulls: FloatArray,
        rows: FloatArray,
        target: FloatArray,
    ) -> tuple[FloatArray, float]:
        """The standard errors of the shares (k,), and the p-value of the assumption."""
        generator = numpy_generator(self.seed, "label shift")
        part = min(1.0, DRAWN_ROWS / max(len(rows), len(target)))
        ours, theirs = (
            generator.permutation(len(z))[: max(1, round(part * len(z)))] for z in (rows, target)
        )
        log_p, labels, pulls = log_p[ours], labels[ours], pulls[ours] / part
        n, m, k = len(ours), len(theirs), log_p.shape[1]
        phi = _features(np.concatenate([rows[ours], target[theirs]]), generator)
        likely = (self.shares_ / np.bincount(labels, minlength=k))[labels]
        found, distances, differences = np.empty((DRAWS, k)), np.empty(DRAWS), np.empty(DRAWS)
        for draw in range(DRAWS):
            times = generator.multinomial(n, np.full(n, 1 / n)).astype(np.float64)
            there = generator.multinomial(m, likely / likely.sum()).astype(np.float64)
            x = self._calibration + (times - 1.0) @ pulls
            P = softmax(log_p * x[0] + x[1:])
            shares = np.bincount(labels, times, k) / n
            found[draw] = likeliest(P / np.maximum(shares, 0.1 / n), there, self.shares_, ROUGHLY)
            other = by_moments(P, labels, times, there @ P / m)
            differences[draw] = float(((found[draw] - other) ** 2).sum())
            w = times * (found[draw] / np.maximum(shares, 0.1 / n))[labels]
            distances[draw] = float((((w / w.sum() - there / m) @ phi[:n]) ** 2).sum())
        w = self.class_weights_[labels]
        apart = float((((w / w.sum()) @ phi[:n] - phi[n:].mean(0)) ** 2).sum())
        differ = float(((self.shares_ - self.moment_shares_) ** 2).sum()) / part
        p_values = [
            (1 + int((drawn >= seen).sum())) / (1 + DRAWS)
            for drawn, seen in ((distances, apart), (differences, differ))
        ]
        return found.std(0) * np.sqrt(part), min(1.0, 2 * min(p_values))


def softmax(log_p: FloatArray) -> FloatArray:
    """Probabilities (n, k) of log-probabilities up to a constant of each row."""
    p = np.exp(log_p - log_p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p


def calibration(log_p: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """The (1/T, b) (k + 1,) under which softmax(log p/T + b) makes the labels likeliest.

    The bias makes the mean of each class's probability its share among the labels, without which
    the likeliest shares would be off. By Newton's method: it is a logistic regression.

    Returns:
        These, and the steps (n, k + 1) that they would take if a row counted once more.
    """
    n, k = log_p.shape
    x: FloatArray = np.append(1.0, np.zeros(k))
    step, before = np.zeros(k + 1), np.inf
    if n > MANY:  # begin where a part of the rows ends
        x = calibration(log_p[:: n // FEWER], labels[:: n // FEWER])[0]
    given, counts = log_p[np.arange(n), labels], np.bincount(labels, minlength=k)
    hessian: FloatArray = np.empty((k + 1, k + 1))
    while True:
        p = softmax(log_p * x[0] + x[1:])
        loss = -float(np.log(np.maximum(p[np.arange(n), labels], SMALLEST)).sum())
        if loss > before + 1e-9 * n:  # the step was too long
            step = 0.5 * step
            x = x - step
            continue
        slopes = p * (log_p - (p * log_p).sum(1)[:, None])
        hessian[0, 0] = float((slopes * log_p).sum())
        hessian[0, 1:] = hessian[1:, 0] = slopes.sum(0)
        hessian[1:, 1:] = np.diag(p.sum(0)) - p.T @ p
        hessian += FLAT * n * np.eye(k + 1)
        gradient = np.append(float(given.sum() - (p * log_p).sum()), counts - p.sum(0))
        step = np.asarray(np.linalg.solve(hessian, gradient))
        before = loss
        if float(np.abs(step).max()) <= ROUGHLY:
            break
        x = x + step
    missing = np.eye(k)[labels] - p
    pulls = np.concatenate([(missing * log_p).sum(1)[:, None], missing], axis=1)
    return x, np.linalg.solve(hessian, pulls.T).T.astype(np.float64)


def likeliest(
    ratio: FloatArray, counts: FloatArray, shares: FloatArray, settled: float = SETTLED
) -> FloatArray:
    """The class shares (k,) of largest likelihood, by expectation maximisation.

    Args:
        ratio: (m, k) P(y|x)/p_y.
        counts: (m,) how often each row counts.
        shares: (k,) where to start, above 0.
        settled: The change of shares that ends it.
    """
    for _ in range(STEPS):
        new = shares * ((counts / np.maximum(ratio @ shares, 1e-300)) @ ratio)
        new /= new.sum()
        change = float(np.abs(new - shares).max())
        shares = new
        if change <= settled:
            break
    return shares


def by_moments(P: FloatArray, labels: IntArray, counts: FloatArray, mean: FloatArray) -> FloatArray:
    """(k,) shares that explain the target's mean probabilities, at least 0.

    Args:
        P: (n, k) probabilities of the training rows.
        labels: (n,) their labels.
        counts: (n,) how often each row counts.
        mean: (k,) the target's mean of probabilities.
    """
    shares = np.bincount(labels, counts, P.shape[1])
    joint = np.stack([np.bincount(labels, counts * p, P.shape[1]) for p in P.T])
    found = np.maximum(np.linalg.lstsq(joint, mean, rcond=None)[0] * shares, 0.0)
    return found / max(float(found.sum()), 1e-300)


def _features(z: FloatArray, generator: np.random.Generator) -> FloatArray:
    """(N, 200) φ with φ(x)·φ(x') ≈ exp(−‖x − x'‖²/(2·median²)), columns standardised."""
    z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-300)
    pairs = generator.integers(len(z), size=(2, 2000))
    distances = np.linalg.norm(z[pairs[0]] - z[pairs[1]], axis=1)
    width = float(np.median(distances[distances > 0])) if distances.any() else 1.0
    narrow = np.repeat([1.0, 3.0], FEATURES // 2)
    angles = z @ (generator.normal(size=(z.shape[1], FEATURES)) * narrow / width)
    return np.cos(angles + generator.uniform(0, 2 * np.pi, FEATURES)) * np.sqrt(2 / FEATURES)


def _matrix(name: str, z: Values, size: int) -> FloatArray:
    values = as_values(name, z)
    values = values.reshape(len(values), -1)
    if len(values) != size or not np.isfinite(values).all():
        raise UsageError(f"{name}: needs {size} rows of finite numbers, as many as probabilities")
    return values


def _log(name: str, probabilities: Values) -> FloatArray:
    p = as_values(name, probabilities)
    if p.ndim != 2 or p.shape[1] < 2:
        raise UsageError(
            f"{name}: needs shape (n, classes) with two classes or more, not {p.shape}"
        )
    wrong = ~(np.isfinite(p).all(1) & (p >= 0).all(1) & (np.abs(p.sum(1) - 1.0) < 1e-3))
    if wrong.any():
        raise UsageError(f"{name}: row {int(wrong.argmax())} is not probabilities of sum one")
    return np.log(np.maximum(p, SMALLEST))


def _checked_labels(labels: Values, log_p: FloatArray) -> IntArray:
    y, k = as_values("labels", labels), int(log_p.shape[1])
    if y.shape != (len(log_p),):
        raise UsageError(f"labels: needs shape ({len(log_p)},), as many as probabilities")
    if not (np.isin(y, np.arange(k))).all():
        raise UsageError(f"labels: must be whole numbers from 0 to {k - 1}, the classes' columns")
    counts = np.bincount(y.astype(np.int64), minlength=k)
    if counts.min() < FEWEST:
        few = int(counts.argmin())
        raise UsageError(
            f"labels: class {few} has {counts[few]} training rows; {FEWEST} or more are needed"
        )
    return y.astype(np.int64)
