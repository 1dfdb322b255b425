"""One run in a few numbers, from its records alone, and the weights it settled on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError
from diw.labels.history import SUSPECT, loss_scores
from diw.metrics import auroc, mean_absolute_error, root_mean_square_error
from diw.runs import Row, Run
from diw.runs.journal import chosen_epoch

WINDOW = 10
"""How many final epochs are averaged: the weights of one mini-batch are noisy."""

BALANCED_RATIO = 1.5
"""Classes whose sizes differ by less than this factor count as balanced: chance does as much."""

FEW_EPOCHS = 5
"""A run that scores the same in as many epochs does not learn, if its loss stays, too."""

LEAST_FALL = 0.05
"""The share by which the training loss falls where something is learned."""

NEAR_CHANCE = 0.1
"""The part of the way from guessing to perfection below which a run is said to guess."""

MOST_GROUPS = 4
"""True weights that take more values than this are not a grouping of the samples."""


@dataclass(frozen=True)
class Summary:
    """What a table says of one run; accuracies are fractions."""

    method: str
    seed: int
    last_accuracy: float
    """The final epoch's test accuracy."""
    last10_accuracy: float
    """The mean over the final ten epochs."""
    best_accuracy: float
    """The highest of any epoch: it peeks at the test set."""
    last_balanced_accuracy: float | None
    """The mean of the classes' accuracies in the final epoch."""
    last10_balanced_accuracy: float | None
    best_balanced_accuracy: float | None
    last10_calibration_error: float | None
    """Expected calibration error on the test data, the mean over the final ten epochs."""
    weight_auroc: float | None
    """AUROC of the settled weights, intact against flipped labels; None where that is unknown."""
    weight_mae: float | None
    """Mean absolute distance from the weights to the true ones; None where those are unknown."""
    weight_rmse: float | None
    """Root-mean-square distance from the weights to the true ones."""
    ess: float | None
    """Kish's effective sample size of the settled weights, as a fraction of n."""
    seconds: float
    """Wall-clock time of the run."""
    epochs: int
    balanced_classes: bool
    """Whether training and test classes are of about the same size."""
    kept_epoch: int | None
    """The epoch, from 1, that was kept for its held-out trusted loss; None for the last."""
    kept_accuracy: float | None
    """Its test accuracy."""
    kept_balanced_accuracy: float | None
    scored_on: str
    """What the accuracies are of: "test", or "held-out trusted" where no test data were given."""
    run: Run

    @property
    def accuracy(self) -> float:
        """The accuracy of the network that predictions use: the kept one, or the last."""
        return self.last_accuracy if self.kept_accuracy is None else self.kept_accuracy

    @property
    def balanced_accuracy(self) -> float | None:
        """Its balanced accuracy."""
        kept = self.kept_epoch is not None
        return self.kept_balanced_accuracy if kept else self.last_balanced_accuracy

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values by name; the run is named by its folder."""
        return {**asdict(self), "run": str(self.run.folder)}


def summarise(run: Run) -> Summary:
    """Read one run's records; it must have at least one finished epoch."""
    rows = run.metrics()
    if not rows:
        raise UsageError(f"{run.folder}: no finished epoch to report; run it first")
    samples = run.samples()
    _check(run, rows, samples)
    accuracies = [float(row["test_accuracy"]) for row in rows]
    balanced = _column(rows, "balanced_accuracy")
    calibration = _column(rows, "calibration_error")
    kept = chosen_epoch(rows)
    distances = _distances_to_truth(run, rows, samples.get("true_weights"))
    return Summary(
        method=run.spec.method,
        seed=run.spec.seed,
        last_accuracy=accuracies[-1],
        last10_accuracy=float(np.mean(accuracies[-WINDOW:])),
        best_accuracy=max(accuracies),
        last_balanced_accuracy=balanced[-1] if balanced else None,
        last10_balanced_accuracy=float(np.mean(balanced[-WINDOW:])) if balanced else None,
        best_balanced_accuracy=max(balanced, default=None),
        last10_calibration_error=float(np.mean(calibration[-WINDOW:])) if calibration else None,
        weight_auroc=_weight_auroc(settled_weights(run, rows), samples.get("flipped")),
        weight_mae=distances[0] if distances else None,
        weight_rmse=distances[1] if distances else None,
        ess=_settled_ess(rows),
        seconds=float(rows[-1]["seconds"]),
        epochs=len(rows),
        balanced_classes=_train_is_balanced(samples) and _test_is_balanced(rows),
        kept_epoch=kept,
        kept_accuracy=None if kept is None else accuracies[kept - 1],
        kept_balanced_accuracy=balanced[kept - 1] if kept is not None and balanced else None,
        scored_on=_scored_on(run),
        run=run,
    )


def remark(summary: Summary) -> str | None:
    """What is wrong with a run that learned nothing, in a line; None for others."""
    rows, targets = summary.run.metrics(), summary.run.samples().get("targets")
    accuracies = _column(rows, "test_accuracy")
    what = f"{summary.method} seed {summary.seed}"
    losses = _column(rows, "train_loss")
    stuck = bool(losses) and min(losses) > (1 - LEAST_FALL) * losses[0]
    if stuck and len(accuracies) >= FEW_EPOCHS and min(accuracies) == max(accuracies):
        return f"{what} never moved: {100 * accuracies[0]:.1f}% in every epoch"
    if targets is None or summary.balanced_accuracy is None:
        return None
    chance = 1 / max(1, len(np.unique(targets)))
    if summary.balanced_accuracy > chance + NEAR_CHANCE * (1 - chance):
        return None
    return (
        f"{what} is hardly better than guessing: balanced accuracy "
        f"{100 * summary.balanced_accuracy:.1f}%, guessing {100 * chance:.1f}%"
    )


def results_json(spec: Mapping[str, Any], summaries: Iterable[Summary]) -> dict[str, Any]:
    """The content of `--json FILE`: what was asked, and one entry per run."""
    return {"spec": dict(spec), "results": [summary.as_json() for summary in summaries]}


def _check(run: Run, rows: Sequence[Row], samples: Mapping[str, NDArray[Any]]) -> None:
    """Refuse records without the numbers, or of other shapes, than a run writes."""
    for row in rows:
        for key in ("test_accuracy", "seconds", "balanced_accuracy", "ess"):
            needed = key in ("test_accuracy", "seconds")
            if not isinstance(row.get(key), int | float) and (needed or row.get(key) is not None):
                path = run.folder / "metrics.jsonl"
                raise UsageError(
                    f"{path}: epoch {row['epoch']} has no number {key}; train it again"
                )
    n = {array.shape for array in samples.values()}
    ledger = run.ledger()
    if len(ledger) and n and n != {ledger.shape[1:]}:
        raise UsageError(f"{run.folder}: weights.npy and samples.npz are not of the same samples")


def _scored_on(run: Run) -> str:
    has_facts = run.verified("facts.json").exists()  # older versions wrote none
    return str(run.read("facts.json").get("scored_on", "test")) if has_facts else "test"


def _column(rows: Sequence[Row], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row.get(key) is not None]


def settled_weights(run: Run, rows: Sequence[Row] | None = None) -> NDArray[np.float64] | None:
    """Mean weight of each training sample over the last ten weighted epochs.

    Shape (n,), NaN for a sample that none of these epochs saw. None where there is nothing
    to compare: no training weights, or all of them equal. `rows`: the metrics, if at hand.
    """
    window = _window(run, _weighted_epochs(run.metrics() if rows is None else rows))
    seen = np.isfinite(window)
    if not seen.any() or np.ptp(window[seen]) == 0:
        return None
    counts = seen.sum(axis=0)
    totals = np.where(seen, window, 0.0).sum(axis=0)
    return np.divide(totals, counts, out=np.full(counts.shape, np.nan), where=counts > 0)


def groups(samples: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.bool_]]:
    """How a simulated shift divides the samples: masks of shape (n,) by name.

    Label noise divides them into intact and mislabelled; a shift with few distinct
    true weights (class prior) into one group for each. Empty where the truth is unknown (see
    `suspect_groups`).
    """
    if "flipped" in samples and samples["flipped"].any():
        flipped = samples["flipped"].astype(bool)
        return {"intact": ~flipped, "mislabelled": flipped}
    if "true_weights" in samples:
        true = samples["true_weights"].astype(np.float64)
        values = np.unique(true.round(6))
        if 1 < values.size <= MOST_GROUPS:
            return {f"true weight {v:.3g}": np.isclose(true, v, atol=1e-6) for v in values}
    return {}


def suspect_groups(run: Run) -> dict[str, NDArray[np.bool_]]:
    """Samples whose losses say that their label is wrong, and the others: masks of shape (n,).

    For runs whose truth is unknown. Empty where no losses were kept, or all are of one kind.
    """
    losses = run.losses()
    if not len(losses):
        return {}
    suspect = loss_scores(losses, chosen_epoch(run.metrics())) >= SUSPECT
    return {} if suspect.all() or not suspect.any() else {"others": ~suspect, "suspects": suspect}


def _weighted_epochs(rows: Sequence[Row]) -> list[Row]:
    """The last ten epochs in which the method weighed; warm-up epochs do not count."""
    return [row for row in rows if row.get("weighted")][-WINDOW:]


def _window(run: Run, rows: Sequence[Row]) -> NDArray[np.float64]:
    """The weights of these epochs, shape (epochs, n); (0, n) or (0, 0) where there are none."""
    ledger = run.ledger()
    epochs = [int(row["epoch"]) - 1 for row in rows]
    return np.asarray(ledger[[epoch for epoch in epochs if epoch < len(ledger)]], dtype=np.float64)


def _weight_auroc(
    weights: NDArray[np.float64] | None, flipped: NDArray[Any] | None
) -> float | None:
    if flipped is None or weights is None:
        return None
    seen = np.isfinite(weights)
    intact = ~flipped.astype(bool)[seen]
    if intact.all() or not intact.any():
        return None
    return auroc(weights[seen], intact)


def _distances_to_truth(
    run: Run, rows: Sequence[Row], true: NDArray[Any] | None
) -> tuple[float, float] | None:
    """Mean absolute and root-mean-square distance from the weights to the true ones.

    The weights of each epoch are compared and the distances averaged over the last ten
    weighted epochs (over the last ten of all where the method never weighs): averaging
    the weights first would hide what training really saw. None where either is unknown.
    """
    pairs: list[tuple[float, float]] = []
    if true is None:
        return None
    for weights in _window(run, _weighted_epochs(rows) or rows[-WINDOW:]):
        seen = np.isfinite(weights)
        if seen.any():
            w, t = weights[seen], true[seen]
            pairs.append((mean_absolute_error(w, t), root_mean_square_error(w, t)))
    if not pairs:
        return None
    mae, rmse = np.mean(pairs, axis=0)
    return float(mae), float(rmse)


def _settled_ess(rows: Sequence[Row]) -> float | None:
    """Over the epochs that `weight_auroc` looks at; of all where the method never weighs."""
    sizes = _column(_weighted_epochs(rows), "ess") or _column(rows, "ess")[-WINDOW:]
    return float(np.mean(sizes)) if sizes else None


def _train_is_balanced(samples: Mapping[str, NDArray[Any]]) -> bool:
    """By the true labels where known: flipping changes the given counts by chance."""
    labels = samples.get("true_labels", samples.get("targets"))
    if labels is None or labels.size == 0 or labels.dtype.kind not in "iu":
        return True
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() < BALANCED_RATIO * counts.min())


def _test_is_balanced(rows: Sequence[Row]) -> bool:
    """With test classes of the same size the two accuracies are the same number."""
    return all(
        abs(float(row["balanced_accuracy"]) - float(row["test_accuracy"])) < 1e-6
        for row in rows
        if row.get("balanced_accuracy") is not None
    )
