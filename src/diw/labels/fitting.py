"""Fitting the model of right labels on verified rows: coefficients, transitions, the share.

Whatever enters the score of a verified row is from fits without its label, and for the share of
wrong labels also the coefficients are: each fold's fit on the other folds is asked about the rows
of that fold and about all rows.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from diw.labels.crossfit import Embedding, cross_fit
from diw.labels.evidence import Evidence, draw_folds
from diw.labels.model import FLOOR, Coefficients, LabelModel, floored, parts, voices_of
from diw.labels.share import Share, estimate_share
from diw.labels.small import verified_log_p
from diw.labels.transitions import TINY, Bools, Floats, Ints, estimate_noise, temperature
from diw.labels.trusted import check_trusted

PENALTIES = Coefficients(model=0.5, given=0.1, transitions=1.0, verified=1.0)
"""Of the squared distances to the defaults; in units of the log-likelihood of one row."""
BIAS_PENALTY = 12.0
VIEWS = Coefficients(), Coefficients(model=0.3, given=1.0, transitions=0.5, verified=1.0)
"""For the share of wrong labels: errors as usual, and errors that the learner has learned."""


def fit(evidence: Evidence, *, seed: int = 0, share: bool = True) -> LabelModel:
    """Fit the model on the verified rows; without any, on the trusted samples or on nothing.

    Args:
        evidence: Predictions, given labels, and what was verified.
        seed: Decides folds and bootstraps.
        share: Whether to estimate how many labels are wrong, too.
    """
    if evidence.trusted is None or not len(evidence.trusted):
        return _without_labels(evidence)
    if evidence.rows is None:
        return _from_trusted_samples(evidence, seed)
    return _Fit.of(evidence, seed).model(share)


def judge_rows(
    vectors: Floats,
    embedding: Embedding,
    given: Ints,
    rows: Ints,
    right: Ints,
    k: int,
    seed: int,
    drawn: Floats | None = None,
) -> tuple[LabelModel, Floats]:
    """The model of right labels by the quick classifier, and (n, k) P(right class) of each row.

    Args:
        vectors: (n, d) the rows.
        embedding: Makes components and features of them.
        given: (n,) the given labels.
        rows: (m,) the verified rows.
        right: (m,) their right labels.
        k: Number of classes.
        seed: Decides folds.
        drawn: (m,) the probability with which each was drawn; see `Evidence`.
    """
    components = embedding.components(vectors)
    log_p = np.log(cross_fit(embedding.features(components), given, k, seed))
    fold = draw_folds(len(rows), seed)
    log_v = verified_log_p(components, rows, right, fold, k)
    evidence = Evidence(log_p, given, rows, right, drawn=drawn, fold=fold, log_v=log_v)
    model = fit(evidence, seed=seed)
    return model, model.posterior(log_p, given, log_v)


@dataclass(frozen=True)
class _Fit:
    """The verified rows with everything that enters their score, from fits without their label."""

    evidence: Evidence
    rows: Ints
    right: Ints
    given: Ints
    fold: Ints
    features: Floats
    """(m, k, 4)"""
    seen: Bools
    """(k,) the classes with verified rows."""

    @classmethod
    def of(cls, evidence: Evidence, seed: int) -> "_Fit":
        rows, right = np.asarray(evidence.rows), np.asarray(evidence.trusted)
        given, fold, k = evidence.given[rows], evidence.folds(seed), evidence.classes
        seen = np.bincount(right, minlength=k) > 0
        ratios, voices = np.zeros((len(rows), k)), np.zeros((len(rows), k))
        for f in range(int(fold.max()) + 1):
            held = fold == f
            ratios[held] = log_ratios(right[~held], given[~held], k).T[given[held]]
            if evidence.log_v is not None:
                voices[held] = voices_of(evidence.log_v[f][rows[held]], np.flatnonzero(~seen))
        named = np.eye(k)[given]
        features = np.stack([floored(evidence.log_p[rows]), named, ratios, voices], axis=2)
        return cls(evidence, rows, right, given, fold, features, seen)

    def model(self, share: bool) -> LabelModel:
        """The model of all verified rows, and the share of wrong labels if that is asked."""
        evidence, k = self.evidence, self.evidence.classes
        found = self.without(np.zeros(len(self.rows), bool))
        posterior = found.posterior(evidence.log_p, evidence.given, evidence.log_v)
        posterior[self.rows] = np.eye(k)[self.right]
        joint = _by_given(posterior, evidence.given) + 1e-9 * np.eye(k)
        check = check_trusted(np.log(np.maximum(self.held_out(), FLOOR)), self.right)
        return replace(
            found,
            transitions=(joint / joint.sum(axis=0)).T,
            doubtful=check.wrong if check.enough else np.zeros(len(self.rows)),
            notes=self.notes(found.coefficients),
            **(self.shares() if share else {}),
        )

    def without(self, left_out: Bools) -> LabelModel:
        """Coefficients and transitions from the verified rows but those (m,)."""
        kept, k = ~left_out, self.evidence.classes
        coefficients, biases = _coefficients(self.features[kept], self.right[kept], self.seen)
        ratios = log_ratios(self.right[kept], self.given[kept], k)
        unseen = np.flatnonzero(~self.seen)
        # Of labels of such a class only wrong ones can have been verified: no evidence against all.
        ratios[:, unseen] = 0.0
        lead = self.lead(coefficients) if len(unseen) else 0.0
        plain = LabelModel.plain(ratios)
        return replace(plain, coefficients=coefficients, biases=biases, unseen=unseen, lead=lead)

    def lead(self, coefficients: Coefficients) -> float:
        """What T and v add for right labels, beyond the best other class; the mean, at least 0."""
        fine = np.flatnonzero(self.right == self.given)
        added = self.features[fine, :, 2:] @ [coefficients.transitions, coefficients.verified]
        own = added[np.arange(len(fine)), self.given[fine]]
        added[np.arange(len(fine)), self.given[fine]] = -np.inf
        added[:, ~self.seen] = -np.inf
        return max(float((own - added.max(axis=1)).mean()), 0.0) if len(fine) else 0.0

    def held_out(self) -> Floats:
        """(m, k) the posterior of the verified rows, each by the fit without its fold."""
        found = np.empty((len(self.rows), self.evidence.classes))
        for f in range(int(self.fold.max()) + 1):
            held = self.fold == f
            found[held] = self.says(self.without(held), f, self.rows[held])
        return found

    def says(self, model: LabelModel, f: int, rows: Ints) -> Floats:
        """(b, k) the posterior of these rows, with the small model that did not see fold f."""
        evidence = self.evidence
        log_v = None if evidence.log_v is None else evidence.log_v[f][rows]
        return model.posterior(evidence.log_p[rows], evidence.given[rows], log_v)

    def witnesses(self) -> "_Witnesses":
        """Predictions for the share: coefficients are not fitted, so that folds do not mix.

        The inputs of one fold's coefficients are from small models that saw other folds. That
        shrinks the errors on them, and made intervals too narrow by a fifth.
        """
        evidence, k = self.evidence, self.evidence.classes
        n, folds = len(evidence.given), int(self.fold.max()) + 1
        nobody = np.ones(n, bool)
        nobody[self.rows] = False
        held = np.empty((len(self.rows), k, len(VIEWS)))
        by_given = np.zeros((k, k, len(VIEWS)))
        for f in range(folds):
            own = self.fold == f
            model = LabelModel.plain(log_ratios(self.right[~own], self.given[~own], k))
            for place, view in enumerate(VIEWS):
                seen = replace(model, coefficients=view)
                held[own, :, place] = self.says(seen, f, self.rows[own])
                for part in parts(n):
                    rows = np.arange(n)[part][nobody[part]]
                    counts = _by_given(self.says(seen, f, rows), evidence.given[rows])
                    by_given[:, :, place] += counts / folds
        return _Witnesses(held, by_given)

    def shares(self) -> dict[str, Any]:
        """Shares of wrong labels in all, by given class and by pair, from rows drawn at random."""
        k, drawn = self.evidence.classes, self.evidence.drawn
        random = np.ones(len(self.rows), bool) if drawn is None else drawn > 0
        if not random.any():
            return {"share": None, "by_class": (None,) * k}
        said = self.witnesses()
        nobody = said.by_given[:, :, 0].sum(axis=1)

        def share(
            among: Bools, true: Bools, predicted: Floats, count: Floats, left: float
        ) -> Share:
            chosen = among & random
            n = round(left) + int(chosen.sum())
            weights = None if drawn is None else drawn[chosen]
            mean = count / max(left, TINY)
            found = estimate_share(true[chosen], predicted[chosen], mean, n, weights)
            return found.joined(true[among & ~random], n)

        wrong = self.right != self.given
        predicted = 1 - said.held[np.arange(len(self.rows)), self.given]
        counts = nobody[:, None] - np.einsum("iiv->iv", said.by_given)
        by_class: list[Share | None] = [None] * k
        for c in np.unique(self.given[random]):
            by_class[c] = share(self.given == c, wrong, predicted, counts[c], nobody[c])
        pairs = {
            (int(i), int(j)): share(
                self.given == j,
                self.right == i,
                said.held[:, i],
                said.by_given[j, i],
                float(nobody[j]),
            )
            for i, j in np.unique(np.stack([self.right, self.given])[:, random & wrong], axis=1).T
        }
        in_all = share(self.given >= 0, wrong, predicted, counts.sum(axis=0), nobody.sum())
        return {"share": in_all, "by_class": tuple(by_class), "pairs": pairs}

    def notes(self, coefficients: Coefficients) -> tuple[str, ...]:
        """What a user should know of the verified rows."""
        found = [f"Your verified rows say: {coefficients}."]
        if not self.seen.all():
            names = ", ".join(map(str, np.flatnonzero(~self.seen)))
            found.append(f"Nobody verified a row of class {names}: verify some of each.")
        drawn = self.evidence.drawn
        if drawn is not None and (drawn == 0).any():
            found.append(
                "Rows that were picked are known, and do not estimate the share of wrong labels."
            )
        return tuple(found)


@dataclass(frozen=True)
class _Witnesses:
    """What the fixed views of fits without a fold say."""

    held: Floats
    """(m, k, views) posterior of the verified rows, each by the fits without its fold."""
    by_given: Floats
    """(k, k, views) expected numbers by given and right class of the rows that nobody verified."""


def log_ratios(right: Ints, given: Ints, k: int) -> Floats:
    """(k, k) log T: how often class i is labelled j, relative to one rate of errors for all.

    Counts of verified pairs, shrunk towards that rate, which leaves classes that nobody verified
    without a say.

    Args:
        right: (m,) right labels.
        given: (m,) given labels.
        k: Number of classes.
    """
    counts = np.zeros((k, k))
    np.add.at(counts, (right, given), 1)
    rate = (1 + float((right != given).sum())) / (len(right) + 2)
    base = np.full((k, k), rate / (k - 1))
    np.fill_diagonal(base, 1 - rate)
    strength = max(2.0, k / 2)
    shrunk = (counts + strength * base) / (counts.sum(axis=1, keepdims=True) + strength)
    return np.log(shrunk / base)


def _coefficients(features: Floats, right: Ints, seen: Bools) -> tuple[Coefficients, Floats]:
    """Coefficients and (k,) biases of the conditional logit model, by penalised likelihood."""
    m, k, _ = features.shape
    usual = np.array([*asdict(Coefficients()).values()])
    penalty = np.append([*asdict(PENALTIES).values()], np.full(k, BIAS_PENALTY))
    centre = np.append(usual, np.zeros(k))
    own = np.append(features[np.arange(m), right].sum(axis=0), np.bincount(right, minlength=k))

    def loss(flat: Floats) -> tuple[float, Floats]:
        logs = log_softmax(features @ flat[:4] + flat[4:] * seen, axis=1)
        away = flat - centre
        expected = np.append(np.einsum("mk,mkp->p", np.exp(logs), features), np.exp(logs).sum(0))
        value = float((penalty * away**2).sum()) - float(logs[np.arange(m), right].sum())
        slope = expected - own
        slope[4:] *= seen
        return value, slope + 2 * penalty * away

    found = minimize(loss, centre, jac=True, method="L-BFGS-B").x
    return Coefficients(*map(float, found[:4])), found[4:] * seen


def _by_given(posterior: Floats, given: Ints) -> Floats:
    """(k, k) sums of posteriors (n, k) by given label (n,)."""
    k = posterior.shape[1]
    return np.stack([np.bincount(given, column, k) for column in posterior.T], axis=1, dtype=float)


def _without_labels(evidence: Evidence) -> LabelModel:
    """Predictions at face value: nobody verified anything."""
    k = evidence.classes
    note = "No row is verified: predictions are taken at face value. Verify rows of your data."
    alone = Coefficients(model=1.0, given=0.0, transitions=0.0, verified=0.0)
    return replace(LabelModel.plain(np.zeros((k, k))), coefficients=alone, notes=(note,))


def _from_trusted_samples(evidence: Evidence, seed: int) -> LabelModel:
    """Class-wide transitions from predictions for trusted samples that are no rows of the data."""
    assert evidence.trusted is not None
    assert evidence.trusted_log_p is not None
    k = evidence.classes
    log_trusted, trusted = evidence.trusted_log_p, evidence.trusted
    noise = estimate_noise(
        np.exp(evidence.log_p), evidence.given, np.exp(log_trusted), trusted, seed
    )
    rate = min(max(noise.share, FLOOR), 1 - FLOOR)
    base = np.full((k, k), rate / (k - 1))
    np.fill_diagonal(base, 1 - rate)
    ratios = np.log((noise.transitions + FLOOR) / (base + FLOOR))
    given = float(np.log(base[0, 0] + FLOOR) - np.log(base[0, 1] + FLOOR))
    coefficients = Coefficients(temperature(log_trusted, trusted), given, 1.0, 0.0)
    check = check_trusted(log_trusted, trusted)
    note = (
        "Estimated from trusted samples that are no rows of the data, as if errors followed from "
        "the class alone: verifying rows of the training data would tell more."
    )
    return LabelModel(
        coefficients,
        np.zeros(k),
        ratios,
        noise.transitions,
        share=Share(noise.share, noise.low, noise.high),
        doubtful=check.wrong if check.enough else np.zeros(len(trusted)),
        notes=(note,),
    )
