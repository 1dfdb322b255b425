"""What one would do without a network: scikit-learn's learners on the same rows.

Logistic regression and gradient boosting, on all training rows, on the trusted rows alone, on
all rows weighted by what a method has learned (its weights are a `sample_weight` for any learner),
on all rows but those whose labels its audit takes for wrong, and where rows are verified, on labels
that the label model has judged by them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diw.data import Dataset
from diw.data.dataset import JoinedInputs
from diw.data.split import Split
from diw.errors import UsageError

JUDGED = "labels judged by verified rows"
MOST_NUMBERS = 1 << 26
"""Rows times columns beyond which the learners would take longer than the networks."""


def learners(seed: int) -> dict[str, Any]:
    """New learners by name, with scikit-learn's defaults (and iterations until convergence)."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise UsageError(
            "learners: need scikit-learn: install diw with the extra 'sklearn'"
        ) from None
    return {
        "logistic regression": LogisticRegression(max_iter=2000),
        "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
    }


def learner_scores(
    split: Split,
    weights: Mapping[str, NDArray[np.float64]],
    seed: int,
    suspects: Mapping[str, NDArray[np.bool_]] | None = None,
) -> dict[str, float]:
    """Test accuracy of each learner on each choice of rows, by a name that says both.

    Trusted rows that choose the network's epoch are trusted rows like others here.

    Args:
        split: The data of a run.
        weights: By method, the weight (n,) of each training row; NaN counts as one.
        seed: Of the learners.
        suspects: By method, which training rows (n,) to leave out.
    """
    x_train, y_train = as_arrays(split.train)
    x_trusted, y_trusted = as_arrays(all_trusted(split))
    x_test, y_test = as_arrays(split.test)
    chosen: dict[str, tuple[Any, Any, Any]] = {
        "all rows": (x_train, y_train, None),
        "trusted rows": (x_trusted, y_trusted, None),
    }
    for method, given in weights.items():
        filled = np.where(np.isfinite(given), given, 1.0)
        chosen[f"weights of {method}"] = (x_train, y_train, filled)
    for method, wrong in (suspects or {}).items():
        kept = (~wrong).astype(np.float64)
        chosen[f"without suspects of {method}"] = (x_train, y_train, kept)
    scores: dict[str, float] = {}
    for rows, (inputs, labels, weight) in chosen.items():
        if weight is not None:  # a weight of zero is a row left out, which is quicker
            inputs, labels, weight = (values[weight > 0] for values in (inputs, labels, weight))
        if len(np.unique(labels)) < 2:
            continue  # nothing to learn from one class
        for name, learner in learners(seed).items():
            learner.fit(inputs, labels, sample_weight=weight)
            scores[f"{name}, {rows}"] = float((learner.predict(x_test) == y_test).mean())
    if split.trusted_given is not None:
        from diw.integrations.trusted import TrustedClassifier

        places = split.trusted_index.numpy()
        given, verified = y_train.copy(), np.full(len(y_train), np.nan)
        given[places], verified[places] = split.trusted_given.numpy(), y_train[places]
        for name, learner in learners(seed).items():
            judged = TrustedClassifier(learner, random_state=seed)
            judged.fit(x_train, given, verified=verified)
            scores[f"{name}, {JUDGED}"] = float((judged.predict(x_test) == y_test).mean())
    return scores


def is_small(split: Split) -> bool:
    """Whether the learners are done in a moment."""
    return len(split.train.shape) == 1 and len(split.train) * split.train.shape[0] <= MOST_NUMBERS


def all_trusted(split: Split) -> Dataset:
    """The trusted rows, those that choose the network's epoch among them."""
    if split.selection is None:
        return split.trusted
    return Dataset(
        JoinedInputs(split.trusted.inputs, split.selection.inputs),
        torch.cat([split.trusted.targets, split.selection.targets]),
        split.trusted.classes,
    )


def as_arrays(data: Dataset) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inputs (n, ...) and labels (n,) of a data set."""
    inputs, targets = data.take(torch.arange(len(data)))
    return inputs.numpy(), targets.numpy()
