"""`diw.audit`: of a run, or of arrays from a loop of one's own."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.diagnosis import Diagnosis, as_vectors, diagnose_data, some_rows
from diw.auditing.result import Audit
from diw.auditing.samples import of_run
from diw.errors import UsageError
from diw.experiments.exporting import check_files
from diw.experiments.places import is_own
from diw.experiments.sources import load_split, training_places
from diw.labels.crossfit import second_opinion
from diw.labels.history import (
    loss_scores,
    mean_weights,
    suggest,
    weight_scores,
    with_opinion,
)
from diw.labels.transitions import Floats, Ints
from diw.predict import Predictor
from diw.runs import Run, find_run
from diw.runs.selection import chosen_epoch


def audit(
    run: str | Path | Run | None = None,
    *,
    losses: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    trusted: ArrayLike | None = None,
    device: str = "cpu",
    model: str | None = None,
    trust_model: bool = False,
) -> Audit:
    """Rank training samples by how strongly their history says "wrong label".

    Either of a run on disk, whose data are read again and also shown to a classifier that has not
    seen the label (`diw.labels.crossfit`), or of arrays:

    >>> found = diw.audit("model")
    >>> found = diw.audit(losses=losses, labels=labels, probabilities=probabilities)
    >>> found.suspects

    Args:
        run: A run of `diw train` or `diw compare`, or its folder.
        losses: (epochs, n) the loss of each sample in each epoch; NaN where it was not seen.
        weights: (epochs, n) its weight; the score is made of these where there are no losses.
        labels: (n,) the given labels; class numbers if there are probabilities.
        probabilities: (n, k) class probabilities of the trained network, for suggested labels.
        trusted: (n,) bool, samples whose labels are known to be right.
        device: Where the run's network predicts.
        model: The run's network as `module:factory`, if it is one of your own.
        trust_model: Import the network that the run names.
    """
    arrays = {"losses": losses, "weights": weights, "labels": labels}
    if run is None:
        return _of_arrays(losses, weights, labels, probabilities, trusted)
    for name, value in (*arrays.items(), ("probabilities", probabilities), ("trusted", trusted)):
        if value is not None:
            raise UsageError(f"{name}: give a run or arrays, not both")
    found = run if isinstance(run, Run) else find_run(Path(run))
    return _of_run(found, device, model, trust_model)


def own_audit(run: Run | None) -> Audit | None:
    """The audit of a run on the user's own data, for pages; None where there is nothing to audit.

    That is so for data sets with a name, data that are not here any more, and a network that would
    have to be imported.
    """
    if run is None or not is_own(run.spec.data):
        return None
    try:
        return audit(run)
    except UsageError:
        return None


def _of_run(run: Run, device: str, model: str | None, trust_model: bool) -> Audit:
    predictor = Predictor.load(run, device, model=model, trust_model=trust_model)
    ledger, losses = run.ledger(), run.losses()
    if not len(ledger):
        raise UsageError(f"{run.folder}: {run.spec.method} trains on trusted rows alone")
    check_files(run)
    split = load_split(run.spec)
    n, labels = len(split.train), split.train.targets.numpy()
    if ledger.shape[1] != n:
        raise UsageError(f"{run.folder}: its weights are not of these {n:,} rows; train it again")
    if not len(losses) and not run.metrics()[-1].get("weighted"):
        raise UsageError(f"{run.folder}: has neither losses nor weights that differ")
    suggested, probability = np.empty(n, np.int64), np.empty(n)
    start = 0
    for batch in predictor.probabilities(split.train.inputs):
        rows = slice(start, start + len(batch))
        suggested[rows], probability[rows] = suggest(batch, labels[rows])
        start += len(batch)
    kept = chosen_epoch(run.metrics())
    trusted = np.zeros(n, bool)
    trusted[split.trusted_places.numpy()] = True
    history = loss_scores(losses, kept) if len(losses) else weight_scores(ledger)
    opinion, share = second_opinion(
        lambda rows: as_vectors(split.train, rows),
        some_rows(np.arange(n), run.spec.seed),
        labels,
        split.train.num_classes,
        history,
        trusted,
        run.spec.seed,
    )
    return Audit(
        labels=labels,
        suggested=suggested,
        probability=probability,
        score=with_opinion(history, opinion, share),
        weight=mean_weights(ledger),
        trusted=trusted,
        classes=split.train.classes,
        places=training_places(run.spec),
        diagnosis=diagnose_run(run),
        flipped=None if split.flipped is None else split.flipped.numpy(),
        opinion=opinion,
        origin=of_run(run),
    )


def diagnose_run(run: Run) -> Diagnosis:
    """Diagnose the data of a run: its training rows that are not trusted against those that are.

    Trusted rows that were held out to choose the epoch are trusted rows, too.
    """
    import torch

    from diw.data import Dataset
    from diw.data.dataset import JoinedInputs

    split = load_split(run.spec)
    others = torch.ones(len(split.train), dtype=torch.bool)
    others[split.trusted_places] = False
    trusted = split.trusted
    if split.selection is not None:
        trusted = Dataset(
            JoinedInputs(trusted.inputs, split.selection.inputs),
            torch.cat([trusted.targets, split.selection.targets]),
            trusted.classes,
        )
    return diagnose_data(
        split.train.subset(torch.nonzero(others).flatten()), trusted, seed=run.spec.seed
    )


def _of_arrays(
    losses: ArrayLike | None,
    weights: ArrayLike | None,
    labels: ArrayLike | None,
    probabilities: ArrayLike | None,
    trusted: ArrayLike | None,
) -> Audit:
    if losses is None and weights is None:
        raise UsageError("losses: give a run, or losses by epoch, or weights by epoch")
    if losses is not None:
        score = loss_scores(losses)
    else:
        assert weights is not None
        score = weight_scores(weights)
    n = len(score)
    known: NDArray[np.bool_] = np.zeros(n, bool) if trusted is None else _row("trusted", trusted, n)
    given: Ints = np.empty(0, np.int64)
    if labels is None:
        raise UsageError("labels: give the label of each sample")
    if probabilities is None:
        names, given = np.unique(_row("labels", labels, n), return_inverse=True)
        classes = tuple(map(str, names.tolist()))
        suggested, probability = given, np.full(n, np.nan)
    else:
        values = np.asarray(probabilities, np.float64)
        if values.ndim != 2 or len(values) != n:
            raise UsageError(f"probabilities: expected ({n}, classes), got {values.shape}")
        classes, given = tuple(map(str, range(values.shape[1]))), _row("labels", labels, n)
        if given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= len(classes):
            raise UsageError(f"labels: expected class numbers in 0..{len(classes) - 1}")
        suggested, probability = suggest(values, given)
    return Audit(
        labels=given.astype(np.int64),
        suggested=suggested,
        probability=probability,
        score=score,
        weight=np.ones(n) if weights is None else _row("weights", mean_weights(weights), n),
        trusted=known.astype(bool),
        classes=classes,
    )


def _row(name: str, values: ArrayLike | Floats | None, n: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (n,):
        raise UsageError(f"{name}: expected one entry per sample ({n},), got {array.shape}")
    return array
