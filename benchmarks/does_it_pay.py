"""Does it pay? The default method beside what one would do otherwise, on data of five kinds.

    python -m benchmarks.does_it_pay [--save] [--work FOLDER] [--seeds 0,1] [--cells digits]

Every contender gets the same training, trusted and test rows (`benchmarks.pay_cells`): networks of
`diw train`, scikit-learn's learners, the same learners with what the default method has learned,
and cleanlab (Northcutt et al. 2021, Apache licence; the package does not import it) around the
same learners. Accuracy, and detection: how well a score separates right from wrong labels (AUROC).
Networks are found again by their runs, learners by `found.jsonl`, one line per cell, seed and
contender; so an interrupted call goes on, and several may share the work. `--save` writes
benchmarks/results/does-it-pay.json, from which `scripts/write_pays.py` makes docs/pays.md.
"""

import argparse
import json
import tempfile
import warnings
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import machine
from benchmarks.pay_cells import CELLS, Cell, setting, write_files
from diw.auditing.audits import audit
from diw.config import DEFAULT_METHOD
from diw.data.split import Split
from diw.files import write_json
from diw.integrations.learners import all_trusted, as_arrays, learners
from diw.metrics import auroc
from diw.reports.summary import settled_weights, summarise
from diw.runs import RunSpec
from diw.runs.sources import Source
from diw.training.recorded import execute, with_method

RESULTS = Path(__file__).parent / "results" / "does-it-pay.json"
METHODS = (DEFAULT_METHOD, "uniform", "clean", "random", "reweight")
SEEDS = range(5)
OURS = (f"weights of {DEFAULT_METHOD}", f"without suspects of {DEFAULT_METHOD}")
"""Rows and weights for a learner of one's own that `diw export-weights` writes."""

Values = dict[str, float]


def networks(
    cell: Cell, seed: int, work: Path, methods: Sequence[str]
) -> Iterator[tuple[str, Values]]:
    """Each method's network."""
    wrong, base = prepared(cell, seed, work)
    for method in methods:
        run = execute(with_method(base, method), work / "runs")
        summary = summarise(run)
        values = {"accuracy": summary.accuracy, "balanced": float(summary.balanced_accuracy or 0)}
        weights = settled_weights(run)
        own, flipped = _own(Source.of(base).split, wrong)
        if weights is not None:
            known = own & np.isfinite(weights)
            values["weights"] = auroc(weights[known], ~flipped[known])
        if method == DEFAULT_METHOD:
            values["detection"] = auroc(audit(run).score[own], flipped[own])
        yield method, values


def others(
    cell: Cell, seed: int, work: Path, known: Collection[str] = ()
) -> Iterator[tuple[str, Values]]:
    """scikit-learn's learners on each choice of rows, and cleanlab around them, unless known."""
    pending = [
        (name, rows)
        for name in contenders(cell, seed)
        for rows in ("all rows", "trusted rows", *OURS, "cleanlab")
        if f"{name}, {rows}" not in known
    ]
    if not pending:
        return
    wrong, base = prepared(cell, seed, work)
    run = execute(with_method(base, DEFAULT_METHOD), work / "runs")
    found, weights, split = audit(run), settled_weights(run), Source.of(base).split
    own, flipped = _own(split, wrong)
    x, y = _table(split.train)
    x_trusted, y_trusted = _table(all_trusted(split))
    given = np.ones(len(y)) if weights is None else np.where(np.isfinite(weights), weights, 1.0)
    chosen = {
        "all rows": (x, y, None),
        "trusted rows": (x_trusted, y_trusted, None),
        OURS[0]: (x[given > 0], y[given > 0], given[given > 0]),
        OURS[1]: (x[~found.suspected], y[~found.suspected], None),
    }
    for name, rows in pending:
        learner = contenders(cell, seed)[name]
        if rows == "cleanlab":
            yield f"{name}, cleanlab", _cleanlab(learner, x, y, own, flipped, split, seed)
        else:
            inputs, labels, weight = chosen[rows]
            learner.fit(inputs, labels, sample_weight=weight)
            yield f"{name}, {rows}", _scores(learner, split)


def contenders(cell: Cell, seed: int) -> dict[str, Any]:
    """New learners by name, on images a support vector machine among them."""
    from sklearn.svm import SVC

    svc = {"SVC": SVC()} if cell.data in ("digits", "images") else {}
    return {**learners(seed), **svc}


def _cleanlab(
    learner: Any,
    x: NDArray[Any],
    y: NDArray[Any],
    own: NDArray[np.bool_],
    flipped: NDArray[np.bool_],
    split: Split,
    seed: int,
) -> Values:
    """Cleanlab's way: out-of-fold probabilities, the issues left out (never a trusted row)."""
    from cleanlab.classification import CleanLearning  # pyright: ignore
    from sklearn.calibration import CalibratedClassifierCV

    if not hasattr(learner, "predict_proba"):
        learner = CalibratedClassifierCV(learner, ensemble=False)
    cleaner = CleanLearning(learner, seed=seed, verbose=False)
    issues = cleaner.find_label_issues(x, y).copy()
    quality = issues["label_quality"].to_numpy()
    issues["is_label_issue"] &= own
    cleaner.fit(x, y, label_issues=issues)
    return {**_scores(cleaner, split), "detection": auroc(1 - quality[own], flipped[own])}


def prepared(cell: Cell, seed: int, work: Path) -> tuple[NDArray[np.bool_], RunSpec]:
    """Which labels are wrong, and the spec of the cell's files."""
    folder = work / "data" / f"{cell.data}-{cell.noise.replace(':', '-')}-{seed}"
    return write_files(cell, seed, folder), setting(folder, seed)


def _own(split: Split, wrong: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) which training rows are not trusted, and which labels are wrong."""
    rows = split.rows.numpy()
    own = np.ones(len(rows), bool)
    own[split.trusted_index.numpy()] = False
    return own, own & wrong[np.where(own, rows, 0)]


def _table(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    inputs, labels = as_arrays(data)
    return inputs.reshape(len(inputs), -1), labels


def _scores(learner: Any, split: Split) -> Values:
    x, y = _table(split.test)
    right = learner.predict(x) == y
    return {
        "accuracy": float(right.mean()),
        "balanced": float(np.mean([right[y == label].mean() for label in np.unique(y)])),
    }


def measure(cells: Sequence[Cell], seeds: Sequence[int], work: Path, parts: Sequence[str]) -> None:
    """Measure what is not in `found.jsonl` yet, and append it there."""
    work.mkdir(parents=True, exist_ok=True)
    file = work / "found.jsonl"
    for seed in seeds:
        for cell in cells:
            known = {line["name"] for line in read(file) if _is(line, cell, seed)}
            pending = [m for m in METHODS if m in parts and m not in known]
            found = networks(cell, seed, work, pending)
            if "learners" in parts:
                found = chain(found, others(cell, seed, work, known))
            for name, values in found:
                rounded = {key: round(value, 5) for key, value in values.items()}
                line = json.dumps({"cell": cell.name, "seed": seed, "name": name, **rounded})
                with file.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
                print(line, flush=True)


def read(file: Path) -> list[dict[str, Any]]:
    """The lines of a `found.jsonl`."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def gathered(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By cell, measure and contender the values by seed."""
    result: dict[str, Any] = {}
    for cell in CELLS:
        own = result.setdefault(cell.name, {})
        for line in sorted((one for one in lines if one["cell"] == cell.name), key=_seed):
            for measure_ in ("accuracy", "balanced", "detection", "weights"):
                if measure_ in line:
                    by_name = own.setdefault(measure_, {}).setdefault(line["name"], {})
                    by_name[str(line["seed"])] = line[measure_]
    return {cell: own for cell, own in result.items() if own}


def _seed(line: dict[str, Any]) -> int:
    return int(line["seed"])


def _is(line: dict[str, Any], cell: Cell, seed: int) -> bool:
    return line["cell"] == cell.name and line["seed"] == seed


def run(
    work: Path, cells: Sequence[Cell], seeds: Sequence[int], parts: Sequence[str], save: bool
) -> None:
    """Measure, and keep the results if asked."""
    warnings.filterwarnings("ignore", category=FutureWarning)
    measure(cells, seeds, work, parts)
    if save:
        found = gathered(read(work / "found.jsonl"))
        write_json(RESULTS, {"machine": machine(), "cells": found})


def main(quick: bool = False, save: bool = False) -> None:
    """All cells in a folder that does not stay; with `quick` one of them."""
    with tempfile.TemporaryDirectory() as folder:
        cells, seeds = (CELLS[:1], SEEDS[:1]) if quick else (CELLS, SEEDS)
        run(Path(folder), cells, seeds, (*METHODS, "learners"), save and not quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("runs/does-it-pay"), help="runs and data")
    parser.add_argument("--cells", default="", help="only names that contain this")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument(
        "--parts", default=",".join((*METHODS, "learners")), help="methods, learners"
    )
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    run(
        asked.work,
        [cell for cell in CELLS if asked.cells in cell.name],
        [int(seed) for seed in asked.seeds.split(",")],
        asked.parts.split(","),
        asked.save,
    )
