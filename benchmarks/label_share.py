"""The interval of the share of wrong labels: how often it holds the truth, and how wide it is.

    python -m benchmarks label_share [--quick] [--save]

Six tables with 8 to 45% wrong labels, and one without; logistic regression, cross-fitted once a
table. Each draw verifies other rows at random and fits the label model anew. Wilson's interval of
the same verified rows, with the same correction for a finite population, stands beside it. With
`--save` it goes on where it was stopped.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from benchmarks.label_cells import TEXTS, Draw, Floats, Ints, draw, learner
from benchmarks.measuring import made_by
from diw.errors import UsageError
from diw.files import write_json
from diw.labels import Evidence, fit, verified_log_p
from diw.labels.evidence import draw_folds

RESULTS = Path(__file__).parent / "results" / "label-share.json"
CELLS = (
    ("cancer", "none"),
    ("comments", "rules"),
    ("cancer", "pair"),
    ("unbalanced", "annotator"),
    ("overlapping", "pair"),
    ("digits", "symmetric"),
    ("questions", "rules"),
)
VERIFIED = 60, 200
DRAWS, AT_ONCE = 1000, 100
SEED = 0


def cross_fitted(made: Draw, model: Any, folds: int = 5, seed: int = 0) -> Floats:
    """(n, k) log p of given labels, from fits without the row."""
    fold = np.random.default_rng(seed).permutation(len(made.given)) % folds
    p = np.zeros((len(made.given), made.k))
    for f in range(folds):
        fitted = clone(model).fit(made.X[fold != f], made.given[fold != f])
        p[np.ix_(fold == f, fitted.classes_)] = fitted.predict_proba(made.X[fold == f])
    return np.log(np.maximum(p, 1e-12))


@cache
def table(data: str, noise: str) -> tuple[Draw, Floats]:
    """A cell's rows, and their cross-fitted log p."""
    made = draw(data, noise, "logistic", SEED)
    return made, cross_fitted(made, learner("logistic"))


def wilson(wrong: int, m: int, n: int) -> float:
    """The width of Wilson's interval with the correction for a finite population."""
    p, factor = wrong / m, norm.ppf(0.975) ** 2 / m * (1 - m / n)
    return float(2 * np.sqrt(factor * (p * (1 - p) + factor / 4)) / (1 + factor))


def one(made: Draw, log_p: Floats, m: int, seed: int) -> tuple[bool, float, float, float]:
    """Whether the interval holds the truth, its width, Wilson's, and the error."""
    rng = np.random.default_rng([seed, m])
    rows: Ints = np.sort(rng.permutation(len(made.given))[:m])
    right, fold = made.right[rows], draw_folds(m, seed)
    log_v = verified_log_p(made.X, rows, right, fold, made.k)
    share = fit(Evidence(log_p, made.given, rows, right, fold=fold, log_v=log_v)).share
    assert share is not None
    truth = float((made.given != made.right).mean())
    peer = wilson(int((made.given[rows] != right).sum()), m, len(made.given))
    return (
        share.low - 1e-12 <= truth <= share.high + 1e-12,
        share.high - share.low,
        peer,
        share.value - truth,
    )


def main(quick: bool = False, save: bool = False) -> None:
    """Print coverage and widths of each cell."""
    if not os.environ.get(TEXTS):
        raise UsageError(f"{TEXTS}: set it to the folder of questions and comments")
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if save and RESULTS.exists() else {}
    cells = kept.setdefault("cells", {})
    for data, noise in CELLS:
        for m in VERIFIED:
            name = f"{data} {noise} {m}"
            found = cells.setdefault(name, {"draws": 0, "held": 0, "width": 0, "wilson": 0})
            while found["draws"] < (50 if quick else DRAWS):
                start = found["draws"]
                step = [
                    one(*table(data, noise), m, start + i) for i in range(50 if quick else AT_ONCE)
                ]
                held, width, peer, _ = np.sum(np.array(step, float), axis=0)
                found["draws"] += len(step)
                found["held"] += int(held)
                found["width"] = round(found["width"] + float(width), 4)
                found["wilson"] = round(found["wilson"] + float(peer), 4)
                if save:
                    write_json(RESULTS, {**made_by("label_share"), "seed": SEED, "cells": cells})
            draws = found["draws"]
            print(
                f"{name:28} coverage {found['held'] / draws:.3f}  "
                f"width {found['width'] / draws:.3f}  Wilson {found['wilson'] / draws:.3f}  "
                f"ratio {found['width'] / found['wilson']:.2f}",
                flush=True,
            )
    held = [one["held"] / one["draws"] for one in cells.values()]
    ratios = [one["width"] / one["wilson"] for name, one in cells.items() if name.endswith(" 200")]
    print(f"least {min(held):.3f}  mean {np.mean(held):.4f}  width at 200: {np.mean(ratios):.3f}")


if __name__ == "__main__":
    main(save=True)
