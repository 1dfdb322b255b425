"""scikit-learn: any classifier, trained on labels of which some are wrong and some are verified.

The learner is cross-fitted on the given labels. A label model (`diw.labels`), fitted on the
verified rows, says how probable each class is for every row. Then the learner is trained once more,
on corrected labels or on given ones that are weighted by the probability that they are right.
"""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from diw.errors import DIWWarning, UsageError
from diw.integrations import missing
from diw.integrations.vectors import as_vectors, probabilities, take
from diw.labels import Evidence, LabelModel, fit, verified_log_p
from diw.labels.evidence import draw_folds, read_verified
from diw.labels.transitions import Floats, Ints, information
from diw.seeding import numpy_generator

try:
    from sklearn import config_context
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
    from sklearn.base import clone as clone_estimator
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
    from sklearn.utils import check_random_state, get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _num_samples,  # pyright: ignore[reportPrivateUsage]
        check_is_fitted,
        column_or_1d,
        has_fit_parameter,
        validate_data,
    )
except ImportError:
    raise missing("scikit-learn (1.6 or newer)", "sklearn") from None

ENOUGH = 50
"""With fewer verified rows the label model's coefficients decide how to train."""
TRIALS = 3
"""Parts of the verified rows, each of which judges both ways of training without it."""
LEAST = 0.02
"""Classes that are less probable are no targets."""
MOST_COUNTED = 5.0
"""A verified row counts for at most so many others."""


class TrustedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Any classifier, for labels of which some are wrong, with the right labels of a few rows.

    `fit` takes the right labels of verified rows beside the given labels of all. A label model,
    fitted on the rows that have both, judges every label; then the learner is trained on corrected
    labels, or on the given ones weighted by the probability that they are right.

    Which of the two is decided by the likelihood of verified labels that were left out, where they
    differ by more than a standard error. Where they do not, or with fewer than 50 verified rows,
    the label model decides: if it believes the verified rows more than the learner, labels are
    corrected; otherwise half corrected and half weighted. A learner without `sample_weight` is
    trained on the most probable classes.

    Args:
        estimator: Any classifier of scikit-learn's kind, a pipeline too.
        correct: `"auto"` as above, True for corrected labels, False for weighted given ones.
        folds: Folds of the cross-fitting.
        random_state: Decides folds and whatever else is random here.

    Attributes:
        estimator_: The learner, trained at last.
        classes_: The labels, in the order of `predict_proba`'s columns.
        label_model_: The fitted `diw.labels.LabelModel`: coefficients, share of wrong labels,
            transitions, doubtful verified labels.
        posterior_: (n, k) the probability of each class for each row of X.
        probabilities_: (n, k) cross-fitted probabilities of the given labels.
        weights_: (n,) the probability that each given label is right; of verified rows 0 or 1.
        suspects_: Rows of X whose labels are probably wrong, the worst first; no verified ones.
        correct_: The share of correction in the last training: 1 corrected, 0 weighted.
    """

    def __init__(
        self, estimator: Any, *, correct: Any = "auto", folds: int = 5, random_state: Any = None
    ):
        self.estimator = estimator
        self.correct = correct
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any, verified: Any = None, groups: Any = None) -> Self:
        """Judge the given labels by the verified rows, and train the learner.

        Args:
            X: (n, d) whatever the learner takes: arrays, sparse matrices, DataFrames, lists of
                texts.
            y: (n,) the given labels.
            verified: (n,) the right labels, None or NaN where nobody checked, which a
                cross-validation splits along with X; or a mapping from row number to right label.
            groups: (n,) rows of one group, such as duplicates or those of a patient, are never
                split between folds.
        """
        self._check()
        numbers = self._read(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = right = np.zeros(0, np.int64)
        if verified is not None:
            rows, right = read_verified(verified, self.classes_, len(numbers))
        self.correct_ = 0.0
        if len(rows):
            evidence = self._evidence(X, numbers, rows, right, groups, seed)
            self.label_model_ = fit(evidence, seed=seed)
            self.posterior_ = _posterior(self.label_model_, evidence)
            self.probabilities_ = np.exp(evidence.log_p)
            self.correct_ = self._amount(X, evidence, seed)
            targets = _targets(self.label_model_, self.posterior_, evidence, self.correct_)
            self.estimator_ = self._trained(X, targets)
        else:
            warnings.warn(
                "verified: no row is verified, so the learner is trained on the labels as they "
                "are; verify some rows and give their right labels",
                DIWWarning,
                stacklevel=2,
            )
            k = len(self.classes_)
            self.label_model_ = LabelModel.plain(np.zeros((k, k)))
            self.posterior_ = self.probabilities_ = np.eye(k)[numbers]
            self.estimator_ = self._fitted(X, numbers)
        self.weights_: Floats = self.posterior_[np.arange(len(numbers)), numbers]
        found = self.label_model_.suspects(self.posterior_, numbers)
        found[rows] = False
        order = np.argsort(self.weights_, kind="stable")
        self.suspects_: Ints = order[found[order]]
        return self

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """(n, k) the learner's probability of each class."""
        self._check_rows(X)
        return probabilities(self.estimator_, X, self.classes_)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """(n,) or (n, k) as the learner has it."""
        self._check_rows(X)
        return self.estimator_.decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,) the learner's classes."""
        self._check_rows(X)
        return self.estimator_.predict(X)

    def _check_rows(self, X: Any) -> None:
        check_is_fitted(self, "estimator_")
        if getattr(X, "ndim", 2) != 1:  # texts, or what the learner refuses
            validate_data(self, X, reset=False, skip_check_array=True)

    def _check(self) -> None:
        if self.correct not in ("auto", True, False):
            raise UsageError(f"correct: 'auto', True or False, and is {self.correct!r}")
        if self.folds < 2:
            raise UsageError(f"folds: must be at least 2, and is {self.folds}")
        if self.correct is False and not self._weighted:
            name = type(self.estimator).__name__
            raise UsageError(
                f"correct: {name}.fit takes no sample_weight, so labels can only be corrected; "
                "use correct=True or 'auto'"
            )

    def _read(self, X: Any, y: Any) -> Ints:
        """(n,) given labels as numbers; what else is wrong with X is the learner's to say."""
        if y is None:
            raise UsageError("y: requires y to be passed, but the target y is None")
        validate_data(self, X, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        if len(y) != _num_samples(X):
            raise UsageError(
                f"y: inconsistent numbers of samples: X has {_num_samples(X)} rows, y {len(y)}"
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0])
            raise UsageError(f"y: row {row} is NaN or inf; drop rows without a label")
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise UsageError(
                "y: holds one class only; a classifier needs at least 2 classes, got 1 class"
            )
        return numbers.astype(np.int64)

    # Judging labels

    def _evidence(
        self, X: Any, numbers: Ints, rows: Ints, right: Ints, groups: Any, seed: int
    ) -> Evidence:
        """Cross-fitted probabilities of the learner, and the small model of the verified rows."""
        k = len(self.classes_)
        p = np.zeros((len(numbers), k))
        fold = self._folds(numbers, groups, seed)
        for f in range(int(fold.max()) + 1):
            others, own = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            p[own] = self._predicted(X, others, numbers[others], own)
        parts = draw_folds(len(rows), seed)
        vectors = as_vectors(X, self.estimator)
        if vectors is not None:
            log_v = verified_log_p(vectors, rows, right, parts, k)
        else:  # nothing but the learner itself can read X
            log_v = np.full((int(parts.max()) + 1, len(numbers), k), np.nan, np.float32)
            for f, one in enumerate(log_v):
                seen = np.unique(right[parts != f])
                if len(seen) > 1:
                    said = self._predicted(X, rows[parts != f], right[parts != f], slice(None))
                    one[:, seen] = np.log(np.maximum(said[:, seen], 1e-12))
        log_p = np.log(np.maximum(p, 1e-12))
        return Evidence(log_p, numbers, rows, right, fold=parts, log_v=log_v)

    def _folds(self, numbers: Ints, groups: Any, seed: int) -> Ints:
        """(n,) folds, each with its share of every class; a group is in one of them."""
        n, fold = len(numbers), np.empty(len(numbers), np.int64)
        if groups is None:
            order = numpy_generator(seed, "folds").permutation(n)
            order = order[np.argsort(numbers[order], kind="stable")]
            fold[order] = np.arange(n) % min(self.folds, n)
            return fold
        own = np.asarray(groups)
        if own.shape != (n,):
            raise UsageError(f"groups: expected {n}, one a row, got {own.shape}")
        count = min(self.folds, len(np.unique(own)))
        if count < 2:
            raise UsageError("groups: all rows are of one group, so there is nothing to leave out")
        large = np.bincount(numbers).min() >= count
        split = StratifiedGroupKFold(count) if large else GroupKFold(count)
        for f, (_, held) in enumerate(split.split(np.zeros((n, 1)), numbers, own)):
            fold[held] = f
        return fold

    def _amount(self, X: Any, evidence: Evidence, seed: int) -> float:
        """How much to correct: 1 corrected labels, 0 weighted given ones."""
        if self.correct != "auto" or not self._weighted:
            return float(self.correct is not False)
        believed = self.label_model_.coefficients
        usual = 1.0 if believed.verified > believed.model else 0.5
        assert evidence.rows is not None
        assert evidence.trusted is not None
        rows, right = evidence.rows, evidence.trusted
        if len(rows) < ENOUGH:
            return usual
        gained = np.zeros(len(rows))
        part = draw_folds(len(rows), seed + 1, TRIALS)
        for f in range(TRIALS):
            own, kept = part == f, part != f
            without = replace(
                evidence,
                rows=rows[kept],
                trusted=right[kept],
                fold=None if evidence.fold is None else evidence.fold[kept],
            )
            model = fit(without, seed=seed, share=False)
            posterior = _posterior(model, without)
            for sign, amount in ((1, 1.0), (-1, 0.0)):
                targets = _targets(model, posterior, without, amount)
                targets[rows[own]] = 0.0
                trained = self._trained(X, targets)
                said = probabilities(trained, take(X, rows[own]), self.classes_)
                likely = said[np.arange(int(own.sum())), right[own]]
                gained[own] += sign * np.log(likely + 1e-3)
        error = float(gained.std()) / np.sqrt(len(gained))
        return usual if abs(gained.mean()) <= error else float(gained.mean() > 0)

    # Training the learner

    def _predicted(self, X: Any, rows: Ints, numbers: Ints, asked: Any) -> Floats:
        """(b, k) probabilities of the rows `asked`, by the learner fitted on others."""
        if len(np.unique(numbers)) == 1:
            count = _num_samples(X) if isinstance(asked, slice) else len(asked)
            return np.tile(np.eye(len(self.classes_))[numbers[0]], (count, 1))
        model = self._fitted(take(X, rows), numbers)
        return probabilities(
            model, X if isinstance(asked, slice) else take(X, asked), self.classes_
        )

    def _trained(self, X: Any, targets: Floats) -> Any:
        """The learner, fitted on targets (n, k): a row stands for each of its likely classes."""
        used = targets.sum(axis=1) > 0
        if not self._weighted:
            rows = np.flatnonzero(used)
            return self._fitted(take(X, rows), targets[rows].argmax(axis=1))
        rows, numbers = np.nonzero(targets > LEAST)
        if len(np.unique(numbers)) < 2:
            rows, numbers = np.nonzero(targets > 0)
        return self._fitted(take(X, rows), numbers, targets[rows, numbers])

    def _fitted(self, X: Any, numbers: Ints, weights: Floats | None = None) -> Any:
        """A fitted copy of the learner."""
        clone: Any = clone_estimator
        model = clone(self.estimator)
        named = {} if weights is None else {self._weighted: weights}
        with config_context(enable_metadata_routing=False):
            return model.fit(X, self.classes_[numbers], **named)

    @property
    def _weighted(self) -> str:
        """What `fit` of the learner calls weights; empty if it takes none."""
        if has_fit_parameter(self.estimator, "sample_weight"):
            return "sample_weight"
        steps = getattr(self.estimator, "steps", None)
        if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
            return f"{steps[-1][0]}__sample_weight"
        return ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        tags.non_deterministic = inner.non_deterministic
        return tags


def _posterior(model: LabelModel, evidence: Evidence) -> Floats:
    """(n, k) the probability of each class; verified rows are of theirs."""
    assert evidence.rows is not None
    found = model.posterior(evidence.log_p, evidence.given, evidence.log_v)
    found[evidence.rows] = np.eye(evidence.classes)[evidence.trusted]
    return found


def _targets(model: LabelModel, posterior: Floats, evidence: Evidence, correct: float) -> Floats:
    """(n, k) weights of rows as classes; a verified row counts for what its label is worth."""
    assert evidence.rows is not None
    n = len(posterior)
    targets = correct * posterior
    right = posterior[np.arange(n), evidence.given]
    targets[np.arange(n), evidence.given] += (1 - correct) * right
    worth = min(1 / information(model.transitions), MOST_COUNTED)
    targets[evidence.rows] = worth * np.eye(evidence.classes)[evidence.trusted]
    return targets
