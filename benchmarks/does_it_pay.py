"""Does it pay? The default method beside what one would do otherwise, on data of five kinds.

    python -m benchmarks.does_it_pay --seeds 5 --out benchmarks/results/does-it-pay

Data ship with scikit-learn or are generated (the embedded images with the package); labels are made
wrong here, so that it is known which. None of them was used to choose a default. Every method gets
the same training, trusted and test rows. Accuracy, and detection: how well weights separate right
from wrong labels (AUROC). Runs that are finished are found again, so an interrupted call goes on.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.diagnostics import auroc
from diw.experiments.execute import execute
from diw.experiments.fitting import fit_recipe, held_out_share
from diw.experiments.learners import is_small, learner_scores
from diw.experiments.sources import load_split, stamp, with_method
from diw.records import RunSpec, write_json, write_text
from diw.records.spec import DEFAULT_METHOD
from diw.reports.comparison import VERDICTS
from diw.reports.statistics import standings
from diw.reports.summary import settled_weights, summarise
from diw.reports.table import Cell, Column, make_table, number_cell, text_cell, to_markdown

METHODS = ("uniform", "random", "clean", "reweight", "diw", DEFAULT_METHOD)

Data = tuple[NDArray[Any], NDArray[np.int64], int, int]
"""Inputs, right labels, training rows, trusted rows; the rest are test rows."""


def medical(seed: int) -> Data:
    """Breast cancer, 569 rows of 30 numbers."""
    from sklearn.datasets import load_breast_cancer

    return *load_breast_cancer(return_X_y=True), 350, 40


def digits(seed: int) -> Data:
    """Digits of 8 x 8 pixels, as a table of 64 numbers."""
    from sklearn.datasets import load_digits

    return *load_digits(return_X_y=True), 1100, 200


def churn(seed: int) -> Data:
    """A large table with clusters and noise features."""
    from sklearn.datasets import make_classification

    inputs, labels = make_classification(
        15_000, 20, n_informative=8, n_clusters_per_class=4, flip_y=0.02, random_state=100 + seed
    )
    return inputs, labels, 12_000, 300


def imbalanced(seed: int) -> Data:
    """A table with one class in ten."""
    from sklearn.datasets import make_classification

    inputs, labels = make_classification(
        6000, 12, n_informative=6, weights=[0.9], random_state=200 + seed
    )
    return inputs, labels, 4000, 200


def images(seed: int) -> Data:
    """3,000 of the embedded images, 28 x 28."""
    import torch

    from diw.data import load

    data = load().train
    taken, labels = data.take(torch.arange(len(data)))
    return (255 * taken.numpy()).round().astype(np.uint8), labels.numpy(), 3000, 200


SETS: dict[str, Callable[[int], Data]] = {
    f.__name__: f for f in (medical, digits, churn, imbalanced, images)
}
NOISE = 0.35
"""Share of the training labels that are wrong, drawn among the other classes."""


def write_files(name: str, seed: int, folder: Path) -> NDArray[np.bool_]:
    """Write train, trusted and test rows as .npz; returns which training labels are wrong."""
    inputs, labels, n, m = SETS[name](seed)
    rng = np.random.default_rng([seed, *map(ord, name)])
    order = rng.permutation(len(labels))
    parts = {
        "train": order[:n],
        "trusted": order[n : n + m],
        "test": order[n + m : n + m + 3000],
    }
    wrong = rng.random(n) < NOISE
    given = {part: labels[rows] for part, rows in parts.items()}
    classes = int(labels.max()) + 1
    moved = (given["train"] + rng.integers(1, classes, n)) % classes
    given["train"] = np.where(wrong, moved, given["train"])
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in parts.items():
        if not (folder / f"{part}.npz").exists():  # a run knows its files by their time
            np.savez(folder / f"{part}.npz", X=inputs[rows], y=given[part])
    return wrong


def measure(name: str, seed: int, methods: Sequence[str], out: Path) -> dict[str, dict[str, float]]:
    """Accuracy and detection of every method and learner on one draw of one data set."""
    folder = out / "data" / f"{name}-{seed}"
    wrong = write_files(name, seed, folder)
    paths = {part: str(folder / f"{part}.npz") for part in ("train", "trusted", "test")}
    base = stamp(
        RunSpec(data=paths["train"], trusted=paths["trusted"], test=paths["test"], seed=seed)
    )
    split = load_split(base)
    share = held_out_share(len(split.trusted))
    base = RunSpec(**{**vars(base), "recipe": fit_recipe(len(split.train), {}), "selection": share})
    found: dict[str, dict[str, float]] = {}
    learned: dict[str, NDArray[np.float64]] = {}
    for method in dict.fromkeys(methods):
        run = execute(with_method(base, method), out / "runs")
        found[method] = {"accuracy": summarise(run).accuracy}
        weights = settled_weights(run)
        if weights is None:
            continue
        rows = load_split(base).rows.numpy()
        own = (rows < len(wrong)) & np.isfinite(weights)
        found[method]["detection"] = auroc(weights[own], ~wrong[rows[own]])
        if method in ("diw", DEFAULT_METHOD):
            learned[method] = weights
    split = load_split(base)
    if is_small(split):
        for learner, score in learner_scores(split, learned, seed).items():
            found[learner] = {"accuracy": score}
        found |= other_learners(split, seed)
    return found


def other_learners(split: Any, seed: int) -> dict[str, dict[str, float]]:
    """A support vector machine, and cleanlab around the learners where it is installed."""
    import torch
    from sklearn.svm import SVC

    from diw.experiments.learners import learners

    def arrays(part: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        inputs, targets = part.take(torch.arange(len(part)))
        return inputs.numpy(), targets.numpy()

    (x, y), (x_test, y_test) = arrays(split.train), arrays(split.test)
    found: dict[str, dict[str, float]] = {}
    if len(x) <= 5000:
        for rows, (inputs, labels) in (("all", (x, y)), ("trusted", arrays(split.trusted))):
            score = SVC().fit(inputs, labels).score(x_test, y_test)
            found[f"SVC, {rows} rows"] = {"accuracy": float(score)}
    try:
        from cleanlab.classification import CleanLearning  # pyright: ignore
    except ImportError:
        return found
    for name, learner in learners(seed).items():
        cleaner = CleanLearning(learner, seed=seed, verbose=False).fit(x, y)
        score = float((cleaner.predict(x_test) == y_test).mean())
        quality = cleaner.get_label_issues()["label_quality"].to_numpy()
        found[f"cleanlab, {name}"] = {"accuracy": score}
        if split.flipped is not None:
            found[f"cleanlab, {name}"]["detection"] = auroc(quality, ~split.flipped.numpy())
    return found


def table(name: str, results: dict[str, dict[str, dict[str, float]]]) -> str:
    """The results of one data set by seed as Markdown, best accuracy first."""
    by_method: dict[str, dict[int, float]] = {}
    detection: dict[str, list[float]] = {}
    for seed, found in results.items():
        for method, values in found.items():
            by_method.setdefault(method, {})[int(seed)] = values["accuracy"]
            if "detection" in values:
                detection.setdefault(method, []).append(values["detection"])
    places = standings(by_method)

    def row(method: str) -> list[tuple[Column, Cell]]:
        place = places[method]
        known = detection.get(method)
        best = place.mark == "best"
        words = VERDICTS[place.mark] if place.mark else ""
        return [
            (Column("method", "method", "left"), text_cell(method)),
            (
                Column("accuracy", "accuracy %"),
                number_cell(place.mean, place.std, scale=100, strong=best),
            ),
            (Column("verdict", "verdict", "left"), text_cell(words)),
            (
                Column("detection", "detection AUROC"),
                number_cell(float(np.mean(known)) if known else None, digits=3),
            ),
        ]

    order = sorted(places, key=lambda method: -places[method].mean)
    about = (SETS[name].__doc__ or "").rstrip(".")
    return to_markdown(make_table(map(row, order), f"{name}: {about}, {len(results)} seeds"))


def main() -> None:
    """Measure what is asked, and write results.json and README.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/does-it-pay"))
    parser.add_argument("--work", type=Path, default=Path("runs/does-it-pay"), help="runs and data")
    asked = parser.parse_args()
    file = asked.out / "results.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    asked.out.mkdir(parents=True, exist_ok=True)
    for seed in range(asked.seeds):
        for name in asked.sets.split(","):
            found = measure(name, seed, asked.methods.split(","), asked.work)
            kept.setdefault(name, {}).setdefault(str(seed), {}).update(found)
            write_json(file, kept)
            print(name, seed, {method: round(v["accuracy"], 3) for method, v in found.items()})
    text = "\n".join(table(name, results) for name, results in kept.items())
    write_text(asked.out / "README.md", f"# Does it pay?\n\n{text}")


if __name__ == "__main__":
    main()
