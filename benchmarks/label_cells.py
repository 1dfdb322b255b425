"""Data, wrong labels and learners on which the label model is measured.

Six data sets: scikit-learn's digits and breast cancer, two made tables, and two tables of texts
whose labels come from rules (`DIW_HUMAN_ERRORS` names their folder; without it they are left out).
Labels are flipped at random (`symmetric`), to the next class (`pair`; of two classes only one is
mislabelled), or given by a weak model that saw few examples (`annotator`).
"""

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TEXTS = "DIW_HUMAN_ERRORS"
MOST_TEXTS = 3000
RATES = {"symmetric": (0.3, 0.4), "annotator": (0.3, 0.4), "pair": (0.45, 0.42)}
"""Rates for two classes and for more."""
MADE = ("none", "symmetric", "annotator", "pair")
NOISES = {
    "digits": MADE,
    "cancer": MADE,
    "overlapping": MADE,
    "unbalanced": MADE,
    "questions": ("none", "rules"),
    "comments": ("none", "rules"),
}
LEARNERS = ("logistic", "boosting")


@dataclass(frozen=True)
class Draw:
    """One draw of a cell: training rows with given and right labels, and test rows.

    `X` is what the learner is given: for boosting, texts are 50 principal directions.
    """

    X: Any
    given: Ints
    right: Ints
    X_test: Any
    right_test: Ints
    k: int


def draw(data: str, noise: str, learner: str, seed: int) -> Draw:
    """One draw: rows, wrong labels and the split into training and test rows follow the seed."""
    rng = np.random.default_rng(
        [seed, sorted(NOISES).index(data), MADE.index(noise) if noise in MADE else 9]
    )
    if data in ("questions", "comments"):
        X, given, right, X_test, right_test = _texts(data, rng)
        k = int(right.max()) + 1
        given = right if noise == "none" else given
        if learner == "boosting":
            svd = TruncatedSVD(50, random_state=0).fit(X)
            X, X_test = svd.transform(X), svd.transform(X_test)
        return Draw(X, given, right, X_test, right_test, k)
    X, right, n = _table(data, seed)
    order = rng.permutation(len(X))
    train, test = order[:n], order[n:]
    scaler = StandardScaler().fit(X[train])
    X, k = scaler.transform(X), int(right.max()) + 1
    given = wrong_labels(X[train], right[train], noise, k, rng)
    return Draw(X[train], given, right[train], X[test], right[test], k)


def wrong_labels(X: Floats, right: Ints, noise: str, k: int, rng: np.random.Generator) -> Ints:
    """(n,) given labels of one kind of noise."""
    if noise == "none":
        return right.copy()
    n, rate = len(right), RATES[noise][int(k > 2)]
    if noise == "annotator":
        return _annotator(X, right, rate, k, rng)
    flips = rng.random(n) < rate
    if noise == "pair":
        flips &= (right == 0) | (k > 2)
        return np.where(flips, (right + 1) % k, right)
    return np.where(flips, (right + rng.integers(1, k, n)) % k, right)


def _annotator(X: Floats, right: Ints, rate: float, k: int, rng: np.random.Generator) -> Ints:
    """Labels drawn from a model that saw few examples, at the temperature that errs as asked.

    It sees as few examples of each class as suffice: the fewer, the more its errors follow a rule.
    """
    order, n = rng.permutation(len(right)), len(right)
    noise = rng.gumbel(size=(n, k))
    for seen in range(1, 200):
        few = np.concatenate([order[right[order] == c][:seen] for c in range(k)])
        logits = LogisticRegression(max_iter=200).fit(X[few], right[few]).decision_function(X)
        logits = np.column_stack([-logits / 2, logits / 2]) if k == 2 else logits
        if (logits.argmax(1) != right).mean() <= rate:
            break
    low, high = -8.0, 8.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        wrong = 1 - softmax(logits * np.exp(middle), axis=1)[np.arange(n), right].mean()
        low, high = (middle, high) if wrong > rate else (low, middle)
    return (logits * np.exp(high) + noise).argmax(1)


def _table(data: str, seed: int) -> tuple[Floats, Ints, int]:
    """All rows, right labels, and how many of them are for training."""
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16 + 1e-6, y.astype(np.int64), 1297
    if data == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return X, y.astype(np.int64), 369
    if data == "overlapping":
        X, y = make_classification(
            2500, 20, n_informative=8, n_redundant=4, n_classes=4, n_clusters_per_class=1,
            class_sep=0.7, random_state=seed,
        )  # fmt: skip
    else:
        X, y = make_classification(
            2500, 15, n_informative=6, n_redundant=2, weights=[0.7], class_sep=0.6,
            n_clusters_per_class=2, random_state=seed,
        )  # fmt: skip
    return X, y.astype(np.int64), 1500


def _texts(data: str, rng: np.random.Generator) -> tuple[Any, Ints, Ints, Any, Ints]:
    folder = Path(os.environ[TEXTS])
    train, test = _read(folder / f"{data}-train.csv"), _read(folder / f"{data}-test.csv")
    names = sorted({row["right"] for row in train})
    number = {name: place for place, name in enumerate(names)}
    chosen = [train[int(i)] for i in rng.permutation(len(train))[:MOST_TEXTS]]
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    X = words.fit_transform([row["text"] for row in chosen])
    given, right = (np.array([number[row[c]] for row in chosen]) for c in ("given", "right"))
    right_test = np.array([number[row["right"]] for row in test])
    return X, given, right, words.transform([row["text"] for row in test]), right_test


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def learner(name: str) -> Any:
    """A fresh learner."""
    if name == "logistic":
        return LogisticRegression(max_iter=200)
    return HistGradientBoostingClassifier(
        max_iter=20, max_leaf_nodes=8, min_samples_leaf=5, early_stopping=False, random_state=0
    )
