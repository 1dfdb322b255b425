"""The diagnosis: tests and estimates together, and one sentence that says where they point.

Three tests, adjusted by Holm, so that together they call no shift a shift in at most 5%:

- features: does p(x) differ? (MMD)
- labels: do the class shares differ?
- losses: do training labels fit their inputs worse than trusted ones, given the class, or better?

Labels that are wrong at random leave p(x) alone and fit worse. Errors of rules and people follow
from the inputs: a model learns them as if they were right, and it is the trusted labels that fit
worse. Other class shares show in the labels, not in the losses, and p(x|y) stays what it was;
otherwise it is the inputs that differ. Inputs that differ may change losses too; so where features
differ, wrong labels are named only if the losses still differ after the training samples are
weighted towards p_trusted(x).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.rows import FEWEST, Pooled, check_sizes, overlap, pooled_arrays, pooled_data
from diw.auditing.shift_tests import (
    class_ratios,
    feature_test,
    holm,
    label_test,
    loss_test,
    outside_share,
)
from diw.brief import in_a_line
from diw.labels import LabelModel, Share
from diw.labels.crossfit import Embedding, cross_fit
from diw.labels.fitting import judge_rows
from diw.labels.transitions import Floats, Ints, Noise, estimate_noise

if TYPE_CHECKING:
    from diw.data import Dataset, Verified

LEVEL = 0.05
SURE = 0.01
"""The level at which a second shift is named beside the first, or p(x|y) is said to differ."""
NOISE, SYSTEMATIC = "label noise", "systematic label errors"
PRIOR, INPUTS, NONE = "class-prior shift", "covariate shift", "no shift"

TESTS = {NOISE: "losses", SYSTEMATIC: "losses", PRIOR: "labels", INPUTS: "features"}
"""The test that speaks for each."""

ADVICE = {
    NOISE: "remember",
    SYSTEMATIC: "remember",
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
        overlap: Number of training samples left out because they are among the trusted ones.
        verified: Of how many of these both labels are known; they tell how many labels are wrong.
        model: The model of right labels that is fitted on these; None where there are too few.
    """

    __repr__ = in_a_line

    classes: tuple[str, ...]
    train: int
    trusted: int
    p_values: dict[str, float]
    adjusted: dict[str, float]
    shifts: tuple[str, ...]
    noise: Noise
    ratios: NDArray[np.float64]
    outside: tuple[float, float, float]
    overlap: int = 0
    verified: int = 0
    model: LabelModel | None = field(default=None, repr=False)

    @property
    def share_known(self) -> bool:
        """Whether anything tells how many labels are wrong."""
        return bool(np.isfinite(self.noise.share))

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
        found = " and ".join(f"{name} ({self._evidence(name)})" for name in self.shifts)
        detail = ""
        if SYSTEMATIC in self.shifts:
            detail = (
                ": trusted labels fit their inputs worse than given ones. Either the given labels "
                "have errors that follow from the inputs, as those of rules and people do, or "
                "trusted labels are wrong"
            )
        if self.share_known and {NOISE, SYSTEMATIC} & set(self.shifts):
            noise = self.noise
            detail += (
                f", about {100 * noise.share:.0f}% of the labels are wrong "
                f"(95% interval {100 * noise.low:.0f} to {100 * noise.high:.0f}%)"
            )
        elif SYSTEMATIC in self.shifts:
            detail += (
                ". Check some rows of the training data, drawn at random (diw trust draw), and "
                "give them as --verified"
            )
        elif PRIOR in self.shifts:
            far = int(np.abs(np.log(self.ratios[:, 0])).argmax())
            ratio = self.ratios[far, 0]
            detail = f", class {self.classes[far]} is {_times(ratio)} in the trusted data"
        return f"The evidence points to {found}{detail}; use {self.method}."

    def _evidence(self, shift: str) -> str:
        """What speaks for a shift: a test, or wrong labels among rows with both labels known."""
        if shift == NOISE and self.adjusted["losses"] > LEVEL:
            return f"{self.verified:,} rows of which both labels are known"
        return _p(self.adjusted[TESTS[shift]])

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
                "share": self.noise.share if self.share_known else None,
                "interval": [self.noise.low, self.noise.high],
                "transitions": self.noise.transitions.tolist() if self.share_known else None,
            },
            "classes": list(self.classes),
            "class_ratios": self.ratios.tolist(),
            "outside_support": list(self.outside),
            "overlap": self.overlap,
            "verified": self.verified,
        }


def diagnose_data(train: "Dataset", trusted: "Dataset | Verified", *, seed: int = 0) -> Diagnosis:
    """Diagnose data sets; of many rows a part is looked at.

    Args:
        train: The training rows, without the trusted ones.
        trusted: The trusted rows; or rows of `train` whose right labels somebody knows.
        seed: Decides which rows are looked at, and the permutations.
    """
    return diagnose_rows(pooled_data(train, trusted, seed), seed)[0]


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
    return diagnose_rows(pooled_arrays(X, y, X_trusted, y_trusted, seed), seed)[0]


def diagnose_rows(rows: Pooled, seed: int) -> tuple[Diagnosis, Embedding]:
    """The diagnosis, and the embedding that it made of all rows alike."""
    embedding = Embedding.fit(rows.vectors, seed, columns=rows.columns)
    again, pairs = overlap(rows)
    model = _verified_model(rows, pairs, embedding, seed) if len(pairs) >= FEWEST else None
    wrong = None if model is None else _noise(model)
    rows = rows.without(again)
    n, m, k, labels = rows.train, rows.trusted, len(rows.classes), rows.labels
    check_sizes(n, m)
    components = embedding.components(rows.vectors)
    features = embedding.features(components)
    predicted = cross_fit(features, labels, k, seed)
    losses = 1 - predicted[np.arange(n + m), labels]
    counts = [np.bincount(part, minlength=k) for part in (labels[:n], labels[n:])]
    worse, better = loss_test(losses, labels, m, seed)
    p_values = {
        "features": feature_test(features, m, seed),
        "labels": label_test(counts[0], counts[1], seed),
        "losses": min(1.0, 2 * min(worse, better)),
    }
    adjusted = holm(p_values)
    inputs, shares, fits = (adjusted[name] <= LEVEL for name in ("features", "labels", "losses"))
    if fits and inputs:
        fits = _remains(features, losses if worse < better else -losses, m, seed)
    if fits:
        shifts = [NOISE if worse < better else SYSTEMATIC]
        if inputs and adjusted["features"] <= SURE:
            shifts.append(PRIOR if shares else INPUTS)
    elif shares:  # other inputs of the same classes, or other classes with the same inputs?
        within = inputs and feature_test(features, m, seed, labels) <= SURE
        shifts = [INPUTS if within else PRIOR]
    else:
        shifts = [INPUTS] if inputs else []
    if wrong is not None and wrong.low > 0 and not fits:
        shifts.insert(0, NOISE)  # seen, though the labels fit alike
    if wrong is None and SYSTEMATIC in shifts:
        wrong = Noise(float("nan"), 0.0, 1.0, np.full((k, k), np.nan))
    elif wrong is None:
        wrong = estimate_noise(predicted[:n], labels[:n], predicted[n:], labels[n:], seed)
    found = Diagnosis(
        classes=rows.classes,
        train=n,
        trusted=m,
        p_values=p_values,
        adjusted=adjusted,
        shifts=tuple(shifts),
        noise=wrong,
        ratios=class_ratios(counts[0], counts[1]),
        outside=outside_share(components, m, seed),
        overlap=int(again.sum()),
        verified=len(pairs),
        model=model,
    )
    return found, embedding


def _noise(model: LabelModel) -> Noise:
    """Wrong labels as a model of right labels has them; of picked rows nothing says how many."""
    share = Share(float("nan"), 0.0, 1.0) if model.share is None else model.share
    return Noise(share.value, share.low, share.high, model.transitions)


def _verified_model(rows: Pooled, pairs: Ints, embedding: Embedding, seed: int) -> LabelModel:
    """The model of right labels by pairs of a given and a right label of the same row."""
    n, given = rows.train, rows.labels[: rows.train]
    places, first = np.unique(pairs[:, 0], return_index=True)
    right = rows.labels[pairs[first, 1]]
    drawn = None if rows.drawn is None else rows.drawn[first]
    k = len(rows.classes)
    return judge_rows(rows.vectors[:n], embedding, given, places, right, k, seed, drawn)[0]


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
