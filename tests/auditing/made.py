"""Probabilities of rows with wrong labels, as a model that did not learn them would give them."""

from pathlib import Path

import numpy as np

CLASSES = ("ant", "bee", "cat")


def make(n: int = 600, wrong: float = 0.3, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Probabilities (n, 3), given and right class numbers: errors go to the next class."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, 3, n)
    given = np.where(rng.random(n) < wrong, (right + 1) % 3, right)
    scores = rng.normal(size=(n, 3)) + 2.5 * np.eye(3)[right]
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return probabilities, given, right


def some(right: np.ndarray, m: int = 80, seed: int = 1) -> dict[int, int]:
    """The right labels of m rows drawn at random."""
    rows = np.random.default_rng(seed).choice(len(right), m, replace=False)
    return {int(row): int(right[row]) for row in rows}


def write_table(path: Path, probabilities: np.ndarray, given: np.ndarray) -> Path:
    """A CSV file as `diw predict` writes it, with the given labels and a column of the data."""
    lines = ["size,=odd,status," + ",".join(f"p_{name}" for name in CLASSES)]
    for row, (p, label) in enumerate(zip(probabilities, given, strict=True)):
        lines.append(f"{row},x,{CLASSES[label]}," + ",".join(f"{value:.9f}" for value in p))
    path.write_text("\n".join(lines) + "\n")
    return path
