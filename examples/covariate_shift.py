"""Other inputs, no trusted labels
===============================

The model will be used on inputs that training saw rarely. Trusted inputs are at hand, without
labels: enough to weigh the training rows and to fit where it matters.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from diw import ImportanceWeighted
from diw.matching import Entropy

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)
n = 400 if QUICK else 1000

# %%
# A straight line cannot follow this curve everywhere. Training data lie mostly on the left, and
# the model will be used on the right.
x_train, x_use = rng.normal(0.3, 0.35, (n, 1)), rng.normal(0.9, 0.25, (n // 2, 1))


def curve(x: np.ndarray) -> np.ndarray:
    """What is to be learned."""
    return (np.sin(2.5 * x) / x).ravel()


y_train = curve(x_train) + rng.normal(0, 0.15, n)

# %%
# ``ImportanceWeighted`` matches the inputs of ``X_trusted`` and passes the weights to any estimator
# that takes a ``sample_weight``. ``Entropy`` estimates the ratio of the two densities; nothing has
# to be chosen.
plain = LinearRegression().fit(x_train, y_train)
weighted = ImportanceWeighted(LinearRegression(), Entropy()).fit(x_train, y_train, X_trusted=x_use)

# %%
# The size of a point is its weight.
grid = np.linspace(-0.6, 1.8, 200)[:, None]
sizes = 1 + 12 * weighted.weights_
plt.scatter(x_train, y_train, s=sizes, alpha=0.4, label="training, sized by weight")
plt.plot(grid, curve(grid), color="black", lw=1, label="truth")
for name, model, style in (("plain", plain, "--"), ("weighted", weighted, "-")):
    error = np.mean((model.predict(x_use) - curve(x_use)) ** 2)
    plt.plot(grid, model.predict(grid), style, lw=2, label=f"{name}: squared error {error:.3f}")
    print(f"{name:8} squared error where it is used {error:.4f}")
plt.axvspan(0.5, 1.5, alpha=0.1, color="green", label="where it is used")
plt.xlabel("input"), plt.ylabel("output"), plt.ylim(-1, 3), plt.legend()
plt.show()
