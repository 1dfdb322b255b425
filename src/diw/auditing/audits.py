"""`diw.audit`: of a run, of the history of a loop of one's own, or of anybody's probabilities.

Probabilities of a model that did not learn a row's label say how well the label fits. Rows of which
somebody verified the label say how far to believe the model: `diw.labels`. Nothing is trained.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diw.auditing.given import (
    check_labels,
    check_probabilities,
    class_numbers,
    column_names,
)
from diw.auditing.result import Audit
from diw.errors import DIWWarning, UsageError
from diw.labels import Evidence, LabelModel, fit
from diw.labels.evidence import read_verified
from diw.labels.history import (
    loss_scores,
    mean_weights,
    suggest,
    suspected,
    weight_scores,
)
from diw.labels.transitions import TINY, Bools
from diw.runs import Run, find_run

IN_SAMPLE = (
    "{share:.1%} of the given labels are what the probabilities say: those of a model that learned "
    "these very labels hide wrong ones; give probabilities from fits without the row "
    "(scikit-learn: cross_val_predict)."
)
NOBODY = (
    "No row is verified, so nothing tells how many labels are wrong: check some rows drawn at "
    "random and give them as verified."
)


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
        found = _of_probabilities(probabilities, given, verified, classes)
        for note in found.notes:
            if "fits without the row" in note:
                warnings.warn(f"probabilities: {note}", DIWWarning, stacklevel=2)
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


def _of_probabilities(
    probabilities: Any, given: ArrayLike, verified: Any, classes: Sequence[Any] | None
) -> Audit:
    labels = check_labels("given", given)
    values = check_probabilities(probabilities, len(labels))
    k = values.shape[1]
    names = column_names(probabilities, k, labels) if classes is None else tuple(map(str, classes))
    if len(names) != k or len(set(names)) != k:
        raise UsageError(f"classes: expected the names of {k} columns, each once, got {names}")
    numbers = class_numbers("given", labels, names)
    if len(np.unique(numbers)) < 2:
        raise UsageError(f"given: all labels are {names[numbers[0]]!r}; at least two are needed")
    rows, right = read_verified(
        {} if verified is None else verified, _as_given(names, labels), len(labels)
    )
    return judge(Evidence(np.log(np.maximum(values, TINY)), numbers, rows, right), names)


def _as_given(names: Sequence[str], labels: NDArray[Any]) -> Sequence[Any]:
    """The classes (k,) as the given labels write them: as words, as numbers, or as places."""
    if labels.dtype.kind in "US":
        return names
    if labels.dtype.kind == "b" and len(names) == 2:
        return (False, True)
    try:
        return [float(name) for name in names]
    except ValueError:
        return range(len(names))


def judge(
    evidence: Evidence,
    classes: tuple[str, ...],
    *,
    known: Bools | None = None,
    shares: LabelModel | None = None,
    seed: int = 0,
    **more: Any,
) -> Audit:
    """The audit that follows from evidence, with or without verified rows.

    Args:
        evidence: Predictions, given labels and verified rows.
        classes: Names by class number.
        known: (n,) further rows whose labels are known to be right.
        shares: A model that says how many labels are wrong; None: the one that is fitted here.
        seed: Decides folds.
        more: Further fields of the audit.
    """
    given, n, rows = evidence.given, len(evidence.given), evidence.rows
    m = 0 if rows is None else len(rows)
    known_pairs = evidence if m else Evidence(evidence.log_p, given)
    model = fit(known_pairs, seed=seed, share=shares is None)
    if shares is not None:
        model = replace(model, share=shares.share, by_class=shares.by_class, pairs=shares.pairs)
    posterior = model.posterior(evidence.log_p, given, evidence.log_v)
    suggested, probability = suggest(posterior, given)
    right = posterior[np.arange(n), given]
    known, doubtful = np.zeros(n, bool) if known is None else known.copy(), np.empty(0, np.int64)
    if rows is not None and m:
        known[rows] = True
        worst = np.argsort(-model.doubtful, kind="stable")
        doubtful = rows[worst[model.doubtful[worst] > 0.5]]
    return Audit(
        labels=given,
        suggested=suggested,
        probability=probability,
        score=1 - right,
        suspected=model.suspects(posterior, given) & ~known,
        weight=right,
        trusted=known,
        classes=classes,
        wrong=model.share if m else None,
        known_from=f"{m:,} verified rows",
        doubtful=doubtful,
        model=model if m else None,
        notes=_notes(evidence, model, classes, m),
        **more,
    )


def _notes(
    evidence: Evidence, model: LabelModel, classes: tuple[str, ...], m: int
) -> tuple[str, ...]:
    notes = [note for note in model.notes if not note.startswith("Nobody")] if m else [NOBODY]
    if m and len(model.unseen):
        named = ", ".join(classes[number] for number in model.unseen[:10])
        more = f" and {len(model.unseen) - 10} more" if len(model.unseen) > 10 else ""
        notes.append(f"Nobody verified a row of {named}{more}: verify some of each.")
    if evidence.looks_in_sample:
        agree = float((evidence.log_p.argmax(axis=1) == evidence.given).mean())
        notes.append(IN_SAMPLE.format(share=agree))
    return tuple(notes)
