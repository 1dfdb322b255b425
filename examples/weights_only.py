"""Only weights
============

No network at all: ``diw.KMM`` and its relatives weigh one sample so that it looks like another.
Here the true weights are known, because both samples come from normal distributions.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import diw

n = 200 if "--quick" in sys.argv else 1000
rng = np.random.default_rng(0)
train, trusted = rng.normal(0, 1, n), rng.normal(0.7, 0.7, 300)

# %%
# ``KMM`` is the exact match of the kernel means. ``Entropy`` also keeps the weights near one, as
# far as the match allows; ``Logistic`` tells the samples apart, and takes the odds.
estimators = [diw.matching.KMM(), diw.matching.Entropy(), diw.matching.Logistic()]
for estimator in estimators:
    estimator.fit(train, trusted)

# %%
# Every estimator says how well it did, and has weights for new values, too.
order = np.argsort(train)
true = np.exp(-((train - 0.7) ** 2) / (2 * 0.7**2) + train**2 / 2)
true /= true.mean()
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
for axis, estimator in zip(axes, estimators, strict=True):
    name, weights = type(estimator).__name__, estimator.weights_
    error = np.sqrt(np.mean((weights - true) ** 2))
    axis.plot(train[order], true[order], color="black", lw=1, label="true ratio")
    axis.scatter(train, weights, s=4, label=f"{name}: error {error:.2f}")
    axis.set(xlabel="value", ylim=(0, 8)), axis.legend()
    print(f"{name:8} {estimator.status_}, mean {weights.mean():.3f}, error {error:.3f}")
axes[0].set_ylabel("weight")
figure.tight_layout()
plt.show()
