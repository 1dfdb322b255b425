"""Class shares without labels: accuracy under four simulated shifts, beside skada's estimators.

    python -m benchmarks label_shift [--quick] [--save]

Two classes in the plane (skada's `make_shifted_datasets`, 800 rows of either kind; under target
shift nine tenths of the target are of one class). A logistic regression and a support vector
machine are fitted with the weights of each contender and scored on the target.
The seeds are others than those that `LabelShift` was made on. How often its intervals hold the
true shares, and how long it takes, is measured besides. Needs skada for the data.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import machine
from diw.files import write_json
from diw.integrations.reweighted import ImportanceWeighted
from diw.matching import KMM, LabelShift, Logistic

RESULTS = Path(__file__).parent / "results" / "label_shift.json"
SHIFTS = {
    "target shift": "target_shift",
    "covariate shift": "covariate_shift",
    "concept drift": "conditional_shift",
    "subspace": "subspace",
}
SEEDS = range(1000, 1020)
NOISE = {"target shift": 0.8}
"""Of the others it is 0.5."""
DRAWS = 200
"""Draws whose shares the intervals are held against."""

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(shift: str, seed: int) -> Data:
    """Training rows and labels, target rows and labels."""
    from skada.datasets import make_shifted_datasets  # pyright: ignore

    X, y, domain = make_shifted_datasets(
        100, 100, shift=SHIFTS[shift], noise=NOISE.get(shift, 0.5), random_state=seed
    )
    ours = domain > 0
    return X[ours], y[ours], X[~ours], y[~ours]


def learners() -> dict[str, Any]:
    """What is fitted with the weights."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    return {"logistic": LogisticRegression(), "svc": SVC()}


def contenders() -> dict[str, Any]:
    """How to weigh, by name; None for equal weights, "true" for the true class shares."""
    import skada  # pyright: ignore[reportMissingImports]

    return {
        "none": None,
        "true shares": "true",
        "LabelShift": LabelShift(),
        "LabelShift, level=0": LabelShift(level=0),
        "KMM": KMM(),
        "Logistic": Logistic(),
        "skada MMDTarS": skada.MMDTarSReweightAdapter(gamma=1.0),
        "skada Gaussian": skada.GaussianReweightAdapter(),
        "skada KMM": skada.KMMReweightAdapter(gamma=1.0),
        "skada density": skada.DensityReweightAdapter(),
    }


def accuracy(weigh: Any, learner: Any, data: Data) -> float:
    """The accuracy on the target, in per cent, after a fit with the weights."""
    from sklearn.base import clone

    X, y, target, right = data
    if weigh is None or weigh == "true":
        shares = [np.bincount(labels, minlength=2) / len(labels) for labels in (y, right)]
        weights = None if weigh is None else (shares[1] / shares[0])[y]
        fitted = clone(learner).fit(X, y, sample_weight=weights)
    elif type(weigh).__module__.startswith("diw"):
        fitted = ImportanceWeighted(learner, weigh).fit(X, y, X_trusted=target)
    else:
        domain = np.repeat([1, -2], [len(X), len(target)])
        masked = np.concatenate([y, np.full(len(target), -1)])
        both = np.concatenate([X, target])
        found = clone(weigh).fit(both, masked, sample_domain=domain)
        weights = found.compute_weights(both, masked, sample_domain=domain)[: len(X)]
        fitted = clone(learner).fit(X, y, sample_weight=weights)
    return 100.0 * float(fitted.score(target, right))


def coverage(draws: int) -> dict[str, float]:
    """How often shares ± 1.96 standard errors hold the true ones, and other figures of draws.

    Three normal classes in the plane, 600 training rows, half of them held out, and 400 of the
    target, whose shares are drawn; a false alarm is a p-value below the level.
    """
    from sklearn.linear_model import LogisticRegression

    held, error, counted, alarms = [], [], [], 0
    for seed in range(draws):
        rng = np.random.default_rng([seed, 42])
        centres = 2.0 * np.array([[0, 0], [1, 0], [0, 1]])
        share = rng.dirichlet([3, 3, 3])
        y, right = rng.choice(3, 600), rng.choice(3, 400, p=share)
        X, target = (centres[labels] + rng.normal(size=(len(labels), 2)) for labels in (y, right))
        model = LogisticRegression().fit(X[:300], y[:300])
        found = LabelShift(level=0).fit(
            model.predict_proba(X[300:]), y[300:], model.predict_proba(target),
            rows=X[300:], target_rows=target,
        )  # fmt: skip
        inside = np.abs(found.shares_ - share) <= 1.96 * found.errors_
        held.append(inside.mean())
        error.append(np.sqrt(((found.shares_ - share) ** 2).mean()))
        counted.append(found.labels_worth_)
        alarms += found.p_value_ < LabelShift().level
    return {
        "coverage": float(np.mean(held)),
        "error": float(np.mean(error)),
        "labels_worth": float(np.median(counted)),
        "false_alarms": alarms / draws,
        "draws": draws,
    }


def seconds(rows: int) -> float:
    """Of processor time, of a fit with so many rows of either kind and ten classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=2 * rows)
    scores = rng.normal(size=(2 * rows, 10)) + 3 * np.eye(10)[y]
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    started = time.process_time()
    LabelShift().fit(p[:rows], y[:rows], p[rows:])
    return time.process_time() - started


def main(quick: bool = False, save: bool = False) -> None:
    """Print the tables, and with `save` write them."""
    warnings.simplefilter("ignore")
    seeds, figures = SEEDS[:2] if quick else SEEDS, dict[str, Any]()
    figures["coverage"] = coverage(10 if quick else DRAWS)
    figures["seconds"] = {str(rows): seconds(rows) for rows in (1000, 10_000, 100_000)}
    print(figures)
    for shift in SHIFTS:
        data = [drawn(shift, seed) for seed in seeds]
        for name, weigh in contenders().items():
            means = {}
            for learner, model in learners().items():
                found = [accuracy(weigh, model, each) for each in data]
                means[learner] = float(np.mean(found))
            figures.setdefault(shift, {})[name] = means
            print(shift, name, " / ".join(f"{mean:.1f}" for mean in means.values()), flush=True)
    if save:
        write_json(RESULTS, {"machine": machine(), **figures})


if __name__ == "__main__":
    main(save=True)
