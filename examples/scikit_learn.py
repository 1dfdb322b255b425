"""A pipeline of scikit-learn
==========================

``DIWClassifier`` is an estimator like any other: it stands at the end of a pipeline, its
parameters can be searched, and trusted rows are a mask that cross-validation splits along with
the data.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from diw import DIWClassifier

QUICK = "--quick" in sys.argv


# %%
# Numbers and words, the labels "high" and "low", and which of them are wrong.
def table(n: int, wrong: float, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A DataFrame, its given labels, and a mask of the wrong ones."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    rows = pd.DataFrame(
        {"size": rng.normal(0, 10, n), "age": rng.normal(40, 3, n), "colour": colour}
    )
    high = rows["size"] / 10 + (rows["age"] - 40) / 3 + 2 * (colour == "red") > 0.7
    flipped = rng.random(n) < wrong
    return rows, np.where(high ^ flipped, "high", "low"), flipped


X, y, flipped = table(300 if QUICK else 2000, wrong=0.3, seed=0)
X_test, y_test, _ = table(1000, wrong=0.0, seed=2)

# %%
# Someone has checked the first 60 rows: their labels are right, and the mask says so.
right = table(len(X), wrong=0.0, seed=0)[1]
trusted = np.arange(len(X)) < 60
y[trusted], flipped[trusted] = right[trusted], False

# %%
# The same pipeline with plain and with weighted training.
for method in ("uniform", "remember"):
    columns = make_column_transformer(
        (StandardScaler(), ["size", "age"]), (OneHotEncoder(), ["colour"])
    )
    learner = DIWClassifier(method, steps=100 if QUICK else None, random_state=0)
    model = make_pipeline(columns, learner).fit(X, y, diwclassifier__trusted=trusted)
    print(f"{method:8} test accuracy {model.score(X_test, y_test):.3f}")
print(f"AUROC of the weights, right against wrong: {roc_auc_score(~flipped, learner.weights_):.3f}")
for name, of in (("right labels", ~flipped), ("wrong labels", flipped)):
    plt.hist(learner.weights_[of].clip(max=3), bins=40, alpha=0.6, label=name)
plt.xlabel("weight"), plt.ylabel("rows"), plt.legend()
plt.show()
