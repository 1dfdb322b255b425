"""Learning from wrong labels with a few verified rows: accuracy beside what a user has anyway.

    python -m benchmarks label_model [--quick] [--save]

For each data set, kind of errors, learner and number of verified rows: test accuracy of
`TrustedClassifier` beside the learner on given labels, on given labels with verified rows right and
weighted 5, on the verified rows alone, and in cleanlab's CleanLearning; and the AUROC of wrong
labels beside cleanlab's score of the same cross-fitted probabilities. Single runs are kept in the
temporary folder, so that it goes on where it was stopped; `--save` writes what they say of cells.
"""

import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_cells import LEARNERS, NOISES, TEXTS, Draw, draw, learner
from benchmarks.measuring import made_by
from diw import TrustedClassifier
from diw.files import write_json
from diw.metrics import auroc

RESULTS = Path(__file__).parent / "results" / "label-model.json"
RUNS = Path(tempfile.gettempdir()) / "diw-label-model.json"
VERIFIED = 60, 120
SEEDS = 20
RIVALS = "given", "weighted 5", "verified alone", "CleanLearning"


def available() -> list[tuple[str, str]]:
    """(data set, noise) of all cells that can be made here."""
    made = [(data, noise) for data, kinds in NOISES.items() for noise in kinds]
    texts = bool(os.environ.get(TEXTS))
    return [cell for cell in made if texts or cell[0] not in ("questions", "comments")]


def right_share(made: Draw, model: Any) -> float:
    """The accuracy on test rows, in per cent."""
    return round(100 * float((model.predict(made.X_test) == made.right_test).mean()), 2)


def cleanlab(made: Draw, name: str, seed: int) -> float:
    """The accuracy of CleanLearning; of the plain learner where it fails."""
    from cleanlab.classification import CleanLearning  # pyright: ignore

    try:
        return right_share(made, CleanLearning(learner(name), seed=seed).fit(made.X, made.given))
    except ValueError:  # too few samples of a class are left
        return right_share(made, learner(name).fit(made.X, made.given))


def one(data: str, noise: str, name: str, seed: int) -> dict[str, Any]:
    """All contenders on one draw."""
    made = draw(data, noise, name, seed)
    n = len(made.given)
    order = np.random.default_rng([seed, 1]).permutation(n)
    found: dict[str, Any] = {
        "given": right_share(made, learner(name).fit(made.X, made.given)),
        "right": right_share(made, learner(name).fit(made.X, made.right)),
        "CleanLearning": cleanlab(made, name, seed),
    }
    for m in VERIFIED:
        rows = np.sort(order[:m])
        labels, weights = made.given.copy(), np.ones(n)
        labels[rows], weights[rows] = made.right[rows], 5.0
        verified = np.full(n, np.nan)
        verified[rows] = made.right[rows]
        ours = TrustedClassifier(learner(name), random_state=seed)
        ours.fit(made.X, made.given, verified=verified)
        weighted = learner(name).fit(made.X, labels, sample_weight=weights)
        alone = learner(name).fit(made.X[rows], made.right[rows])
        found[str(m)] = {
            "ours": right_share(made, ours),
            "weighted 5": right_share(made, weighted),
            "verified alone": right_share(made, alone),
            "corrected": ours.correct_,
            **detection(made, ours, order[m:]),
        }
    return found


def detection(made: Draw, ours: Any, others: Any) -> dict[str, float]:
    """AUROC of wrong labels among the rows that nobody verified; nothing where none is wrong."""
    from cleanlab.rank import get_label_quality_scores  # pyright: ignore

    wrong = (made.given != made.right)[others]
    if not wrong.any():
        return {}
    given, p = made.given[others], ours.probabilities_[others]
    ours_score = 1 - ours.posterior_[others, given]
    theirs = -np.asarray(get_label_quality_scores(given, p))
    return {
        "auroc": round(auroc(ours_score, wrong), 4),
        "cleanlab auroc": round(auroc(theirs, wrong), 4),
    }


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean and its 95% interval."""
    from scipy.stats import t

    mean, n = float(np.mean(values)), len(values)
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return mean, mean - half, mean + half


def judged(runs: list[dict[str, Any]], m: int, noise: str) -> dict[str, Any]:
    """A cell beside what is asked: never clearly a point behind, and clearly ahead of the mean."""

    def accuracy(run: dict[str, Any], rival: str) -> float:
        return run[rival] if rival in run else run[str(m)][rival]

    ours = [run[str(m)]["ours"] for run in runs]
    behind = {
        rival: interval([a - accuracy(run, rival) for a, run in zip(ours, runs, strict=True)])
        for rival in RIVALS
    }
    mean = float(np.mean([[accuracy(run, rival) for rival in RIVALS] for run in runs]))
    right = float(np.mean([run["right"] for run in runs]))
    asked = min(3.0, (right - mean) / 2) if noise != "none" else None
    figures: dict[str, Any] = {
        "seeds": len(runs),
        "ours": round(float(np.mean(ours)), 2),
        **{r: round(float(np.mean([accuracy(run, r) for run in runs])), 2) for r in RIVALS},
        "right": round(right, 2),
        "clearly behind": [rival for rival, (_, _, high) in behind.items() if high < -1],
        "ahead of the mean": round(float(np.mean(ours)) - mean, 2),
        "asked": None if asked is None else round(asked, 2),
    }
    if "auroc" in runs[0][str(m)]:
        pairs = [(run[str(m)]["auroc"], run[str(m)]["cleanlab auroc"]) for run in runs]
        figures["auroc"], figures["cleanlab auroc"] = np.mean(pairs, axis=0).round(3).tolist()
        figures["auroc clearly behind"] = interval([a - b for a, b in pairs])[2] < -0.01
    return figures


def main(quick: bool = False, save: bool = False) -> None:
    """Print each cell beside its rivals."""
    warnings.filterwarnings("ignore")
    runs: dict[str, dict[str, Any]] = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    for name in LEARNERS:
        for seed in range(1 if quick else SEEDS):
            for data, noise in available():
                cell = runs.setdefault(f"{data} {noise} {name}", {})
                if str(seed) not in cell:
                    cell[str(seed)] = one(data, noise, name, seed)
                    write_json(RUNS, runs)
    cells = {
        f"{cell} {m}": judged(list(found.values()), m, cell.split()[1])
        for cell, found in runs.items()
        for m in VERIFIED
        if found
    }
    for cell, figures in cells.items():
        print(f"{cell:36}", figures)
    if save:
        write_json(RESULTS, {**made_by("label_model"), "cells": cells})


if __name__ == "__main__":
    main(save=True)
