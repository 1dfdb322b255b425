"""`diw.audit`: of a run, of the history of a loop of one's own, or of anybody's probabilities."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.given import check_labels
from diw.auditing.probabilities import NOBODY, audit_probabilities, warn_of
from diw.auditing.result import Audit
from diw.errors import UsageError
from diw.labels.history import (
    loss_scores,
    mean_weights,
    suggest,
    suspected,
    weight_scores,
)
from diw.runs import Run, find_run


def audit(
    run: str | Path | Run | None = None,
    *,
    probabilities: Any = None,
    given: ArrayLike | None = None,
    verified: Any = None,
    classes: Sequence[Any] | None = None,
    losses: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    device: str = "cpu",
    model: str | None = None,
    trust_model: bool = False,
) -> Audit:
    """Rank rows by how wrong their labels look, and say how many are wrong.

    Of a run on disk, whose data are read again and also shown to a classifier that has not seen
    the label (`diw.labels.crossfit`); of the probabilities of any model that has not learned a
    row's label; or of the history of a loop of your own:

    >>> found = diw.audit("model")
    >>> found = diw.audit(probabilities=P, given=y, verified={17: "cat", 1203: "dog"})
    >>> found = diw.audit(losses=losses, labels=labels, probabilities=probabilities)
    >>> found.suspects

    Args:
        run: A run of `diw train` or `diw compare`, or its folder.
        probabilities: (n, k) class probabilities. With `given`, from fits without the row
            (scikit-learn's `cross_val_predict`). With a history, of the trained network, for
            suggested labels.
        given: (n,) the labels as given, in the order of the probabilities.
        verified: The right label of each row that somebody has checked, drawn at random: a mapping
            from rows counted from 0 (of a run: rows of its data file, or names of images), or
            beside probabilities (n,) labels with NaN or None where nobody checked.
        classes: (k,) what the columns of the probabilities are; by default the names of a data
            frame's columns, or the sorted labels.
        losses: (epochs, n) the loss of each sample in each epoch; NaN where it was not seen.
        weights: (epochs, n) its weight; the score is made of these where there are no losses.
        labels: (n,) the given labels of a history; class numbers if there are probabilities.
        trusted: (n,) bool, samples of a history whose labels are known to be right.
        device: Where the run's network predicts.
        model: The run's network as `module:factory`, if it is one of your own.
        trust_model: Import the network that the run names.
    """
    arrays = {
        "probabilities": probabilities,
        "given": given,
        "classes": classes,
        "losses": losses,
        "weights": weights,
        "labels": labels,
        "trusted": trusted,
    }
    if run is not None:
        for name, value in arrays.items():
            if value is not None:
                raise UsageError(f"{name}: give a run or arrays, not both")
        from diw.auditing.run import audit_run

        found = run if isinstance(run, Run) else find_run(Path(run))
        return audit_run(found, verified, device=device, model=model, trust_model=trust_model)
    if losses is None and weights is None:
        if probabilities is None:
            raise UsageError("losses: give a run, or probabilities, or losses or weights by epoch")
        given = labels if given is None else given
        if given is None:
            raise UsageError("given: give the label of each row")
        if trusted is not None:
            raise UsageError(
                "trusted: is for a history; give right labels as verified={row: label}"
            )
        found = audit_probabilities(probabilities, given, verified, classes)
        warn_of(found)
        return found
    for name, value in (("given", given), ("verified", verified), ("classes", classes)):
        if value is not None:
            raise UsageError(f"{name}: is for probabilities alone; of a history give labels")
    return _of_history(losses, weights, labels, probabilities, trusted)


def _of_history(
    losses: ArrayLike | None,
    weights: ArrayLike | None,
    labels: ArrayLike | None,
    probabilities: ArrayLike | None,
    trusted: ArrayLike | None,
) -> Audit:
    if losses is not None:
        score = loss_scores(losses)
    else:
        assert weights is not None
        score = weight_scores(weights)
    n = len(score)
    known = np.zeros(n, bool) if trusted is None else _row("trusted", trusted, n).astype(bool)
    if labels is None:
        raise UsageError("labels: give the label of each sample")
    names = check_labels("labels", _row("labels", labels, n))
    if probabilities is None:
        different, given = np.unique(names, return_inverse=True)
        classes = tuple(map(str, different.tolist()))
        suggested, probability = given, np.full(n, np.nan)
    else:
        values = np.asarray(probabilities, np.float64)
        if values.ndim != 2 or len(values) != n:
            raise UsageError(f"probabilities: expected ({n}, classes), got {values.shape}")
        classes, given = tuple(map(str, range(values.shape[1]))), names
        if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= len(classes):
            raise UsageError(f"labels: expected class numbers in 0..{len(classes) - 1}")
        suggested, probability = suggest(values, given)
    return Audit(
        labels=given.astype(np.int64),
        suggested=suggested,
        probability=probability,
        score=score,
        suspected=suspected(score) & ~known,
        weight=np.ones(n) if weights is None else _row("weights", mean_weights(weights), n),
        trusted=known,
        classes=classes,
        notes=(NOBODY,),
    )


def _row(name: str, values: ArrayLike, n: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (n,):
        raise UsageError(f"{name}: expected one entry per sample ({n},), got {array.shape}")
    return array
