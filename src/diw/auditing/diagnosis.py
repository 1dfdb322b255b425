"""The diagnosis: tests and estimates together, and one sentence that says where they point.

Three tests, adjusted by Holm, so that together they call no shift a shift in at most 5%:

- features: does p(x) differ? (MMD)
- labels: do the class shares differ?
- losses: do training labels fit their inputs worse than trusted ones, given the class?

Wrong labels leave p(x) alone and show in the losses. Other class shares show in the labels, not in
the losses, and p(x|y) stays what it was; otherwise it is the inputs that differ. Inputs that differ
may change losses too; so where features differ, wrong labels are named only if the losses still
differ after the training samples are weighted towards p_trusted(x).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.shift_tests import (
    class_ratios,
    feature_test,
    holm,
    label_test,
    loss_test,
    outside_share,
)
from diw.data import Dataset
from diw.errors import UsageError
from diw.labels.crossfit import cross_fit, embed
from diw.labels.transitions import Floats, Ints, Noise, estimate_noise
from diw.seeding import numpy_generator

LEVEL = 0.05
SURE = 0.01
"""The level at which a second shift is named beside the first, or p(x|y) is said to differ."""
MOST_ROWS = 10_000
"""Training rows that are looked at; more would not change an estimate by much."""
MOST_TRUSTED = 5000
MOST_NUMBERS = 4096
"""Numbers per row; larger images are averaged in squares first."""
FEWEST = 5
"""Trusted samples below which nothing can be said."""

NOISE, PRIOR, INPUTS, NONE = "label noise", "class-prior shift", "covariate shift", "no shift"

ADVICE = {
    NOISE: "remember",
    PRIOR: "diw2-f",
    INPUTS: "diw2-f with partition=false",
    NONE: "uniform",
}
"""The method to use (docs/methods)."""


@dataclass(frozen=True)
class Diagnosis:
    """What separates training from trusted samples.

    Attributes:
        classes: Names by class number.
        train: Number of training samples looked at.
        trusted: Number of trusted samples.
        p_values: Of the tests features, labels and losses.
        adjusted: The same, adjusted by Holm: below 0.05 is evidence of a shift.
        shifts: What the evidence points to; empty for no shift.
        noise: Wrong labels.
        ratios: (k, 3) trusted over training share of each class, with its 95% interval.
        outside: Share of trusted samples outside the training samples, with its 95% interval.
    """

    classes: tuple[str, ...]
    train: int
    trusted: int
    p_values: dict[str, float]
    adjusted: dict[str, float]
    shifts: tuple[str, ...]
    noise: Noise
    ratios: NDArray[np.float64]
    outside: tuple[float, float, float]

    @property
    def method(self) -> str:
        """The method to use."""
        return ADVICE[self.shifts[0] if self.shifts else NONE]

    @property
    def sentence(self) -> str:
        """Where the evidence points, how sure that is, and which method to use."""
        if not self.shifts:
            smallest = min(self.adjusted.values())
            return (
                f"No evidence of a shift (smallest adjusted p-value {smallest:.2g}): "
                f"{self.trusted:,} trusted samples look like the training samples; "
                "train plainly (uniform)."
            )
        tests = {NOISE: "losses", PRIOR: "labels", INPUTS: "features"}
        found = " and ".join(f"{name} ({_p(self.adjusted[tests[name]])})" for name in self.shifts)
        detail = ""
        if NOISE in self.shifts:
            noise = self.noise
            detail = (
                f", about {100 * noise.share:.0f}% of the labels are wrong "
                f"(95% interval {100 * noise.low:.0f} to {100 * noise.high:.0f}%)"
            )
        elif PRIOR in self.shifts:
            far = int(np.abs(np.log(self.ratios[:, 0])).argmax())
            ratio = self.ratios[far, 0]
            detail = f", class {self.classes[far]} is {_times(ratio)} in the trusted data"
        return f"The evidence points to {found}{detail}; use {self.method}."

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "sentence": self.sentence,
            "shifts": list(self.shifts),
            "method": self.method,
            "train_samples": self.train,
            "trusted_samples": self.trusted,
            "p_values": self.p_values,
            "adjusted_p_values": self.adjusted,
            "wrong_labels": {
                "share": self.noise.share,
                "interval": [self.noise.low, self.noise.high],
                "transitions": self.noise.transitions.tolist(),
            },
            "classes": list(self.classes),
            "class_ratios": self.ratios.tolist(),
            "outside_support": list(self.outside),
        }


def diagnose_data(train: Dataset, trusted: Dataset, *, seed: int = 0) -> Diagnosis:
    """Diagnose data sets; of many rows a part is looked at.

    Args:
        train: The training rows, without the trusted ones.
        trusted: The trusted rows.
        seed: Decides which rows are looked at, and the permutations.
    """
    if len(trusted) < FEWEST or len(train) < FEWEST:
        raise UsageError(
            f"trusted: {len(train)} training and {len(trusted)} trusted samples; at least {FEWEST} "
            "of each are needed"
        )
    ours = some_rows(np.arange(len(train)), seed)
    theirs = some_rows(np.arange(len(trusted)), seed, MOST_TRUSTED)
    vectors = np.concatenate([as_vectors(train, ours), as_vectors(trusted, theirs)])
    labels = np.concatenate([train.targets.numpy()[ours], trusted.targets.numpy()[theirs]])
    return _diagnose(vectors, labels, len(theirs), train.classes, seed)


def diagnose(
    X: ArrayLike, y: ArrayLike, X_trusted: ArrayLike, y_trusted: ArrayLike, *, seed: int = 0
) -> Diagnosis:
    """Which shift separates training from trusted samples?

    Args:
        X: (n, …) the training inputs, without the trusted ones.
        y: (n,) their labels.
        X_trusted: (m, …) the trusted inputs.
        y_trusted: (m,) their labels.
        seed: Decides which rows are looked at, and the permutations.
    """
    import torch

    from diw.data.dataset import TensorInputs

    sets: list[Dataset] = []
    given = [np.asarray(labels) for labels in (y, y_trusted)]
    names, numbers = np.unique(np.concatenate(given), return_inverse=True)
    classes = tuple(map(str, names.tolist()))
    parts = np.split(numbers.astype(np.int64), [len(given[0])])
    for name, inputs, labels in zip(("X", "X_trusted"), (X, X_trusted), parts, strict=True):
        values = np.asarray(inputs, np.float32)
        if values.ndim < 2 or len(values) != len(labels):
            raise UsageError(
                f"{name}: expected rows of numbers, one per label ({len(labels)}), "
                f"got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise UsageError(f"{name}: holds NaN or infinite values; replace them first")
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        sets.append(Dataset(TensorInputs(tensor), torch.from_numpy(labels), classes))
    return diagnose_data(sets[0], sets[1], seed=seed)


def _diagnose(
    vectors: Floats, labels: Ints, m: int, classes: tuple[str, ...], seed: int
) -> Diagnosis:
    k, n = len(classes), len(labels) - m
    components, features = embed(vectors, seed)
    predicted = cross_fit(features, labels, k, seed)
    losses = 1 - predicted[np.arange(n + m), labels]
    counts = [np.bincount(part, minlength=k) for part in (labels[:n], labels[n:])]
    p_values = {
        "features": feature_test(features, m, seed),
        "labels": label_test(counts[0], counts[1], seed),
        "losses": loss_test(losses, labels, m, seed),
    }
    adjusted = holm(p_values)
    inputs, shares, wrong = (adjusted[name] <= LEVEL for name in ("features", "labels", "losses"))
    if wrong and inputs:
        wrong = _remains(features, losses, m, seed)
    if wrong:
        shifts = [NOISE]
        if inputs and adjusted["features"] <= SURE:
            shifts.append(PRIOR if shares else INPUTS)
    elif shares:  # other inputs of the same classes, or other classes with the same inputs?
        within = inputs and feature_test(features, m, seed, labels) <= SURE
        shifts = [INPUTS if within else PRIOR]
    else:
        shifts = [INPUTS] if inputs else []
    return Diagnosis(
        classes=classes,
        train=n,
        trusted=m,
        p_values=p_values,
        adjusted=adjusted,
        shifts=tuple(shifts),
        noise=estimate_noise(predicted[:n], labels[:n], predicted[n:], labels[n:], seed),
        ratios=class_ratios(counts[0], counts[1]),
        outside=outside_share(components, m, seed),
    )


def _remains(features: Floats, losses: Floats, m: int, seed: int) -> bool:
    """Whether training losses exceed trusted ones also when weighted towards p_trusted(x).

    The weights are the odds of being trusted, from a cross-fitted classifier of the two.
    """
    n = len(losses) - m
    is_trusted = (np.arange(n + m) >= n).astype(np.int64)
    odds = cross_fit(features, is_trusted, 2, seed)
    weights = (odds[:n, 1] / odds[:n, 0]).clip(max=20 * m / n)
    weights /= weights.sum()
    mean = float(weights @ losses[:n])
    error = np.sqrt(weights**2 @ (losses[:n] - mean) ** 2 + losses[n:].var() / m)
    return bool(mean - losses[n:].mean() > 3 * error)


def _p(value: float) -> str:
    return f"adjusted p {'=' if value > 0.0035 else '<'} {max(value, 0.003):.2g}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times as frequent" if ratio >= 1 else f"{1 / ratio:.1f} times as rare"


def as_vectors(data: Dataset, rows: Ints) -> Floats:
    """These rows (n,) of a data set as plain vectors (n, d)."""
    import torch

    pieces = [
        _flat(data.inputs.take(torch.from_numpy(rows[start : start + 512])))
        for start in range(0, len(rows), 512)
    ]
    return np.concatenate(pieces)


def some_rows(rows: Ints, seed: int, most: int = MOST_ROWS) -> Ints:
    """At most `most` of these rows, drawn at random, in order."""
    if len(rows) <= most:
        return rows
    return np.sort(numpy_generator(seed, "rows to look at").permutation(rows)[:most])


def _flat(values: Any) -> Floats:
    """(b, d) of any inputs; the squares of an image over which it is averaged are as small as fits.

    Averaging keeps what tells classes apart in most images, and costs little.
    """
    from torch.nn import functional

    while values.ndim == 4 and values[0].numel() > MOST_NUMBERS and min(values.shape[2:]) >= 2:
        values = functional.avg_pool2d(values, 2)
    return values.reshape(len(values), -1).double().numpy()
