"""A table whose suspects are checked
==================================

A quarter of the labels of a table are wrong. The weights say which rows to check first; after
someone has checked one row in five, most wrong labels are right again.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

from diw import DIWClassifier

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# Measurements of 569 tumours. 60 rows are trusted, 150 are kept for the test, the labels of the
# others are made wrong for one row in four.
X, y = load_breast_cancer(return_X_y=True)
order = rng.permutation(len(X))
trusted, test, train = order[:60], order[60:210], order[210:]
wrong = rng.random(len(train)) < 0.25
given = np.where(wrong, 1 - y[train], y[train])

# %%
# Rows with little weight are suspect; ``model.suspects_`` has those below half the mean weight.
model = DIWClassifier("diw", steps=30 if QUICK else None, random_state=0)
model.fit(X[train], given, X[trusted], y[trusted])
order = np.argsort(model.weights_, kind="stable")
found = np.cumsum(wrong[order]) / wrong.sum()

# %%
# Check one row in five, in that order, and fit what you like.
checked = order[: len(train) // 5]
fixed = given.copy()
fixed[checked] = y[train][checked]
scores = {"network, weighted": model.score(X[test], y[test])}
for name, labels in (("boosting, as given", given), ("boosting, checked", fixed)):
    boosting = HistGradientBoostingClassifier(random_state=0).fit(X[train], labels)
    scores[name] = boosting.score(X[test], y[test])
for name, score in scores.items():
    print(f"{name:20} test accuracy {score:.3f}")

# %%
# The dashed line is what checking in any order finds.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
share = np.arange(1, len(train) + 1) / len(train)
left.plot(share, found), left.plot([0, 1], [0, 1], "--", color="grey"), left.axvline(0.2, lw=0.5)
left.set(xlabel="share of rows checked", ylabel="share of wrong labels found")
right.barh(list(scores), list(scores.values())), right.set(xlim=(0.5, 1), xlabel="test accuracy")
figure.tight_layout()
plt.show()
