"""One run in a few numbers, from its records alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.diagnostics import auroc
from diw.errors import UsageError
from diw.records import Row, Run
from diw.reports.weights import (
    WINDOW,
    distances_to_truth,
    settled_weights,
    weighted_epochs,
)

BALANCED_RATIO = 1.5
"""Classes whose sizes differ by less than this factor count as balanced: chance does as much."""


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
    weight_auroc: float | None
    """How well the settled weights tell intact from flipped labels; None where nobody can know."""
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
    """Whether training and test classes are of about one size."""
    scored_on: str
    """What the accuracies are of: "test", or "held-out trusted" where no test data were given."""
    run: str
    """The run's folder."""

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values by name."""
        return asdict(self)


def summarise(run: Run) -> Summary:
    """Read one run's records; it must have at least one finished epoch."""
    rows = run.metrics()
    if not rows:
        raise UsageError(f"{run.folder}: no finished epoch to report; run it first")
    samples = run.samples()
    accuracies = [float(row["test_accuracy"]) for row in rows]
    balanced = _column(rows, "balanced_accuracy")
    distances = distances_to_truth(run, samples)
    return Summary(
        method=run.spec.method,
        seed=run.spec.seed,
        last_accuracy=accuracies[-1],
        last10_accuracy=float(np.mean(accuracies[-WINDOW:])),
        best_accuracy=max(accuracies),
        last_balanced_accuracy=balanced[-1] if balanced else None,
        last10_balanced_accuracy=float(np.mean(balanced[-WINDOW:])) if balanced else None,
        best_balanced_accuracy=max(balanced, default=None),
        weight_auroc=_weight_auroc(run, samples),
        weight_mae=distances[0] if distances else None,
        weight_rmse=distances[1] if distances else None,
        ess=_settled_ess(rows),
        seconds=float(rows[-1]["seconds"]),
        epochs=len(rows),
        balanced_classes=_train_is_balanced(samples) and _test_is_balanced(rows),
        scored_on=_scored_on(run),
        run=str(run.folder),
    )


def results_json(spec: Mapping[str, Any], summaries: Iterable[Summary]) -> dict[str, Any]:
    """The content of `--json FILE`: what was asked, and one entry a run."""
    return {"spec": dict(spec), "results": [summary.as_json() for summary in summaries]}


def _scored_on(run: Run) -> str:
    has_facts = (run.folder / "facts.json").exists()
    return str(run.read("facts.json").get("scored_on", "test")) if has_facts else "test"


def _column(rows: Sequence[Row], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row.get(key) is not None]


def _weight_auroc(run: Run, samples: Mapping[str, NDArray[Any]]) -> float | None:
    flipped = samples.get("flipped")
    weights = settled_weights(run)
    if flipped is None or weights is None:
        return None
    seen = np.isfinite(weights)
    intact = ~flipped.astype(bool)[seen]
    if intact.all() or not intact.any():
        return None
    return auroc(weights[seen], intact)


def _settled_ess(rows: Sequence[Row]) -> float | None:
    """Over the epochs that `weight_auroc` looks at; of all where the method never weighs."""
    sizes = _column(weighted_epochs(list(rows)), "ess") or _column(rows, "ess")[-WINDOW:]
    return float(np.mean(sizes)) if sizes else None


def _train_is_balanced(samples: Mapping[str, NDArray[Any]]) -> bool:
    """By the true labels where known: flipping changes the given counts by chance."""
    labels = samples.get("true_labels", samples.get("targets"))
    if labels is None or labels.size == 0 or labels.dtype.kind not in "iu":
        return True
    counts = np.unique(labels, return_counts=True)[1]
    return bool(counts.max() < BALANCED_RATIO * counts.min())


def _test_is_balanced(rows: Sequence[Row]) -> bool:
    """With test classes of one size the two accuracies are the same number."""
    return all(
        abs(float(row["balanced_accuracy"]) - float(row["test_accuracy"])) < 1e-6
        for row in rows
        if row.get("balanced_accuracy") is not None
    )
