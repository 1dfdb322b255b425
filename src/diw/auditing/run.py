"""The audit of a run: the history of its training, and a classifier that has not seen the label."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from diw.auditing.audits import judge
from diw.auditing.diagnosis import diagnose_rows
from diw.auditing.result import Audit
from diw.auditing.rows import as_vectors, pooled_data
from diw.auditing.samples import of_run
from diw.data import Dataset
from diw.data.dataset import JoinedInputs
from diw.data.marks import Verified, read_verified
from diw.data.split import Split
from diw.errors import UsageError
from diw.labels import Evidence, Share, verified_log_p
from diw.labels.crossfit import Embedding, second_opinion
from diw.labels.evidence import draw_folds
from diw.labels.history import (
    loss_scores,
    mean_weights,
    suggest,
    suspected,
    weight_scores,
    with_opinion,
)
from diw.labels.transitions import TINY, Bools, Floats, Ints
from diw.labels.trusted import check_trusted
from diw.predict import Predictor
from diw.runs import Run
from diw.runs.journal import chosen_epoch
from diw.runs.sources import is_own

VERIFY = (
    "Estimated from trusted samples, as if errors followed from the class alone: verified rows of "
    "the training data would tell more (diw trust draw, then --verified)."
)


def own_audit(run: Run | None) -> Audit | None:
    """The audit of a run on the user's own data, for pages; None where there is nothing to audit.

    That is so for data sets with a name, data that are not here any more, and a network that would
    have to be imported.
    """
    if run is None or not is_own(run.spec.data):
        return None
    try:
        return audit_run(run)
    except UsageError:
        return None


def audit_run(
    run: Run,
    verified: Mapping[Any, Any] | Path | None = None,
    *,
    device: str = "cpu",
    model: str | None = None,
    trust_model: bool = False,
) -> Audit:
    """The audit of a run; arguments as for `diw.audit`, where `verified` may be a file.

    Verified rows that the run was trained on with their right labels need not be given again.
    """
    predictor = Predictor.load(run, device, model=model, trust_model=trust_model)
    ledger, losses = run.ledger(), run.losses()
    if not len(ledger):
        raise UsageError(f"{run.folder}: {run.spec.method} trains on trusted rows alone")
    split, seed = run.source.split, run.spec.seed
    n, labels, classes = len(split.train), split.train.targets.numpy(), split.train.classes
    if ledger.shape[1] != n:
        raise UsageError(f"{run.folder}: its weights are not of these {n:,} rows; train it again")
    if not len(losses) and not run.metrics()[-1].get("weighted"):
        raise UsageError(f"{run.folder}: has neither losses nor weights that differ")
    trusted = np.zeros(n, bool)
    trusted[split.trusted_index.numpy()] = True
    kept = chosen_epoch(run.metrics())
    history = loss_scores(losses, kept) if len(losses) else weight_scores(ledger)
    checked = _trained_on(run) if verified is None else _checked(run, verified, trusted)
    diagnosis, embedding = diagnose_rows(pooled_data(*_apart(split, checked), seed), seed)
    opinion, share = second_opinion(
        lambda rows: as_vectors(split.train, rows),
        embedding,
        labels,
        len(classes),
        history,
        trusted,
        seed,
    )
    score = with_opinion(history, opinion[np.arange(n), labels].astype(float), share)
    predicted = np.concatenate(list(predictor.probabilities(split.train.inputs)))
    facts: dict[str, Any] = {
        "places": run.source.places,
        "diagnosis": diagnosis,
        "flipped": None if split.flipped is None else split.flipped.numpy(),
        "origin": of_run(run),
    }
    if checked is not None:
        table = _as_table(score, predicted + opinion, labels)
        if verified is None:  # the network was told their right labels, the opinion was not
            table[trusted] = opinion[trusted]
            labels = labels.copy()
            labels[checked.places] = checked.given
        fold = draw_folds(len(checked.places), seed)
        evidence = Evidence(
            np.log(table),
            labels,
            checked.places,
            checked.right,
            drawn=checked.drawn,
            fold=fold,
            log_v=_voices(split.train, embedding, checked, fold),
        )
        return judge(evidence, classes, known=trusted, shares=diagnosis.model, seed=seed, **facts)
    suggested, probability = suggest(predicted, labels)
    noise = diagnosis.noise
    return Audit(
        labels=labels,
        suggested=suggested,
        probability=probability,
        score=score,
        suspected=suspected(score, ~trusted, noise.share) & ~trusted,
        weight=mean_weights(ledger),
        trusted=trusted,
        classes=classes,
        wrong=Share(noise.share, noise.low, noise.high) if diagnosis.share_known else None,
        doubtful=_doubtful(np.flatnonzero(trusted), opinion[trusted].astype(float), labels),
        notes=(VERIFY,),
        **facts,
    )


def _checked(run: Run, verified: Mapping[Any, Any] | Path, trusted: Bools) -> Verified:
    """The verified rows that a user names, without those that the run was trusted with."""
    train, keys = run.source.split.train, [place.key for place in run.source.places]
    labels = train.targets.numpy()
    found = read_verified(verified, keys, labels, train.classes, run.source.contents)
    return found.only(~trusted[found.places])


def _trained_on(run: Run) -> Verified | None:
    """The verified rows that were the run's trusted ones; None where it had others."""
    split, known = run.source.split, run.source.verified
    if split.trusted_given is None:
        return None
    places = split.trusted_index.numpy()
    drawn = None
    if known is not None and known.drawn is not None:
        drawn = known.drawn[np.searchsorted(known.places, split.rows.numpy()[places])]
    given, right = split.trusted_given.numpy(), split.train.targets.numpy()[places]
    return Verified(places, given, right, drawn)


def _apart(split: Split, checked: Verified | None) -> tuple[Dataset, Dataset | Verified]:
    """The training rows with their given labels, and those that tell whether these are right.

    That are verified rows. Without them it is the trusted ones, which are left out of the others;
    trusted rows that were held out to choose the epoch are trusted rows, too.
    """
    train, trusted = split.train, split.trusted
    others = np.ones(len(train), bool)
    others[split.trusted_index.numpy()] = False
    if checked is not None:
        given = train.targets.clone()
        given[torch.from_numpy(checked.places)] = torch.from_numpy(checked.given)
        others[checked.places] = True
        kept = replace(train, targets=given).subset(torch.from_numpy(np.flatnonzero(others)))
        return kept, replace(checked, places=np.cumsum(others)[checked.places] - 1)
    if split.selection is not None:
        trusted = Dataset(
            JoinedInputs(trusted.inputs, split.selection.inputs),
            torch.cat([trusted.targets, split.selection.targets]),
            trusted.classes,
        )
    return train.subset(torch.from_numpy(np.flatnonzero(others))), trusted


def _doubtful(places: Ints, opinion: Floats, labels: Ints) -> Ints:
    """Trusted rows with labels that are probably wrong, the worst first.

    An improbable label is first blamed on the classifier: see `diw.labels.trusted`.
    """
    if not len(places):
        return places
    check = check_trusted(np.log(np.maximum(opinion, TINY)), labels[places])
    worst = np.argsort(-check.wrong, kind="stable")
    return places[worst[check.wrong[worst] > 0.5]] if check.enough else places[:0]


def _as_table(score: Floats, predicted: NDArray[np.floating], labels: Ints) -> Floats:
    """(n, k) probabilities: of the given label one less its score, of others in proportion."""
    rows = np.arange(len(labels))
    table = np.maximum(np.asarray(predicted, np.float64), TINY)
    table[rows, labels] = 0.0
    table *= (score / table.sum(axis=1))[:, None]
    table[rows, labels] = 1 - score
    return np.maximum(table, TINY)


def _voices(
    train: Dataset, embedding: Embedding, checked: Verified, fold: Ints
) -> NDArray[np.float32]:
    """(folds, n, k) log v of a small model of the verified rows alone."""
    parts = np.array_split(np.arange(len(train)), len(train) // 4096 + 1)
    components = np.concatenate([embedding.components(as_vectors(train, part)) for part in parts])
    k = len(train.classes)
    return verified_log_p(components, checked.places, checked.right, fold, k)
