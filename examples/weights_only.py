"""Only weights
============

No network at all: ``diw.kmm`` and its relatives weigh one sample so that it looks like another.
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
# ``diw`` is the exact match of the kernel means. ``entropy`` also keeps the weights near one, as
# far as the match allows; ``ulsif`` fits a model of the ratio and chooses its width itself.
matches = {name: diw.kmm(train, trusted, solver=name) for name in ("diw", "entropy", "ulsif")}

# %%
# Every match says how well it did.
order = np.argsort(train)
true = np.exp(-((train - 0.7) ** 2) / (2 * 0.7**2) + train**2 / 2)
true /= true.mean()
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
for axis, (name, match) in zip(axes, matches.items(), strict=True):
    error = np.sqrt(np.mean((match.weights - true) ** 2))
    axis.plot(train[order], true[order], color="black", lw=1, label="true ratio")
    axis.scatter(train, match.weights, s=4, label=f"{name}: error {error:.2f}")
    axis.set(xlabel="value", ylim=(0, 8)), axis.legend()
    print(f"{name:8} {match.status}, mean {match.weights.mean():.3f}, error {error:.3f}")
axes[0].set_ylabel("weight")
figure.tight_layout()
plt.show()
