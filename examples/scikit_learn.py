"""A table whose labels are partly wrong, in scikit-learn: DIWClassifier against plain training.

python examples/scikit_learn.py
"""

import sys

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from diw import DIWClassifier


def table(n: int, wrong: float, seed: int) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Numbers and words, labels "high" and "low", and which of them are wrong."""
    generator = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "size": generator.normal(0, 10, n),
            "age": generator.normal(40, 3, n),
            "colour": pd.Categorical(generator.choice(["red", "green", "blue"], n)),
        }
    )
    score = rows["size"] / 10 + (rows["age"] - 40) / 3 + 2 * (rows["colour"] == "red")
    high = (score > 0.7).to_numpy()
    flipped = generator.random(n) < wrong
    return rows, pd.Series(np.where(high ^ flipped, "high", "low")), flipped


def main(quick: bool = False) -> None:
    """Train with and without weights, and print what the weights found."""
    X, y, flipped = table(300 if quick else 3000, wrong=0.3, seed=0)
    X_trusted, y_trusted, _ = table(60, wrong=0.0, seed=1)
    X_test, y_test, _ = table(2000, wrong=0.0, seed=2)
    for method in ("uniform", "remember"):
        model = DIWClassifier(method, steps=100 if quick else None, random_state=0)
        model.fit(X, y, X_trusted, y_trusted)
        print(f"{method:8} test accuracy {model.score(X_test, y_test):.3f}")
    first = model.suspects_[:50]
    auroc = roc_auc_score(~flipped, model.weights_)
    print(f"AUROC of the weights, right against wrong labels: {auroc:.3f}")
    print(f"wrong labels among the first {len(first)} suspects: {flipped[first].mean():.0%}")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
