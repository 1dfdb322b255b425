"""How many rows to verify: accuracy, detection and the interval's width against their number.

    python -m benchmarks label_rows [--quick] [--save]

Logistic regression on digits (symmetric, pair and annotator errors) and on questions (errors of
rules). Accuracy of `TrustedClassifier` stands beside that of the verified rows alone and of
CleanLearning, AUROC of wrong labels beside cleanlab's score. `scripts/write_verified.py` draws them
and writes `docs/verified.md`. With `--save` it goes on where it was stopped.
"""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.label_cells import draw, learner
from benchmarks.label_model import available, cleanlab, detection, right_share
from benchmarks.measuring import made_by
from diw import TrustedClassifier
from diw.files import write_json

RESULTS = Path(__file__).parent / "results" / "label-rows.json"
CELLS = (
    ("digits", "symmetric"),
    ("digits", "pair"),
    ("digits", "annotator"),
    ("questions", "rules"),
)
COUNTS = 20, 50, 100, 200, 500
SEEDS = 5


def one(data: str, noise: str, seed: int) -> dict[str, Any]:
    """All figures of one draw, by number of verified rows."""
    made = draw(data, noise, "logistic", seed)
    order = np.random.default_rng([seed, 1]).permutation(len(made.given))
    found: dict[str, Any] = {
        "given": right_share(made, learner("logistic").fit(made.X, made.given)),
        "right": right_share(made, learner("logistic").fit(made.X, made.right)),
        "CleanLearning": cleanlab(made, "logistic", seed),
    }
    for m in COUNTS:
        rows = np.sort(order[:m])
        verified = np.full(len(made.given), np.nan)
        verified[rows] = made.right[rows]
        ours = TrustedClassifier(learner("logistic"), random_state=seed)
        ours.fit(made.X, made.given, verified=verified)
        share = ours.label_model_.share
        found[str(m)] = {
            "ours": right_share(made, ours),
            "verified alone": right_share(
                made, learner("logistic").fit(made.X[rows], made.right[rows])
            ),
            "width": round(100 * (share.high - share.low), 2),
            **detection(made, ours, order[m:]),
        }
    return found


def main(quick: bool = False, save: bool = False) -> None:
    """Print means over seeds, a line a cell and number of rows."""
    warnings.filterwarnings("ignore")
    before: dict[str, Any] = json.loads(RESULTS.read_text()) if save and RESULTS.exists() else {}
    kept: dict[str, Any] = before.get("cells", {})
    for seed in range(1 if quick else SEEDS):
        for data, noise in CELLS:
            cell = kept.setdefault(f"{data} {noise}", {})
            if str(seed) not in cell and (data, noise) in available():
                cell[str(seed)] = one(data, noise, seed)
                if save:
                    write_json(RESULTS, {**made_by("label_rows"), "cells": kept})
    for name, cell in kept.items():
        runs = list(cell.values())
        for m in COUNTS:
            figures = {
                key: round(float(np.mean([run[str(m)][key] for run in runs])), 3)
                for key in runs[0][str(m)]
            }
            print(f"{name:20}{m:5}", figures)


if __name__ == "__main__":
    main(save=True)
