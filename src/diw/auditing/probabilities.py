"""An audit from anybody's predictions: nothing is trained, and no network is needed.

Probabilities of a model that did not learn a row's label say how well the label fits. Rows of which
somebody verified the label say how far to believe the model: `diw.labels`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
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
from diw.labels.history import suggest
from diw.labels.transitions import TINY, Bools
from diw.labels.verified import read_verified

IN_SAMPLE = (
    "{share:.1%} of the given labels are what the probabilities say: those of a model that learned "
    "these very labels hide wrong ones; give probabilities from fits without the row "
    "(scikit-learn: cross_val_predict)."
)
NOBODY = (
    "No row is verified, so nothing tells how many labels are wrong: check some rows drawn at "
    "random and give them as verified."
)


def audit_probabilities(
    probabilities: Any,
    given: ArrayLike,
    verified: Any = None,
    classes: Sequence[Any] | None = None,
    *,
    seed: int = 0,
) -> Audit:
    """The audit of arrays; arguments as for `diw.audit`."""
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
    return judge(Evidence(np.log(np.maximum(values, TINY)), numbers, rows, right), names, seed=seed)


def _as_given(names: Sequence[str], labels: NDArray[Any]) -> Sequence[Any]:
    """The classes (k,) as the given labels write them: as words, as numbers, or as places."""
    if labels.dtype.kind in "US":
        return names
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


def warn_of(found: Audit) -> None:
    """Warn of probabilities that hide wrong labels, at the place of the caller of `diw.audit`."""
    for note in found.notes:
        if "fits without the row" in note:
            warnings.warn(f"probabilities: {note}", DIWWarning, stacklevel=3)
