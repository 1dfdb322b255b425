"""Rare classes
============

Two of ten classes are 30 times rarer in training than in use. A few trusted samples of each
class, and a method that looks at them, bring the rare ones back.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import diw
from diw.data import load
from diw.data.split import make_split
from diw.models import make_model

QUICK = "--quick" in sys.argv
torch.manual_seed(0)

# %%
# The shift keeps 300 images of classes 0 to 7 and 10 of the last two, bags and boots.
split = make_split(load(), shift="prior:0.2,30,300", trusted="5/class", seed=0)
rows = torch.arange(len(split.train))
train = TensorDataset(*split.train.take(rows))
test_images, test_labels = split.test.take(torch.arange(len(split.test)))
trusted = split.trusted.take(torch.arange(len(split.trusted)))


def recalls(method: str, epochs: int) -> np.ndarray:
    """The share of each class that is recognised, after training."""
    model = make_model("mlp", shape=(1, 28, 28), num_classes=10, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    objective = diw.Objective(model, method, trusted, trusted_index=split.trusted_index)
    loader = DataLoader(diw.IndexedDataset(train), batch_size=100, shuffle=True)
    for epoch in range(1, epochs + 1):
        objective.start_epoch(epoch)
        for inputs, targets, index in loader:
            optimizer.zero_grad()
            objective((inputs, targets, index)).loss.backward()
            optimizer.step()
            objective.after_step()
    with torch.no_grad():
        right = (model(test_images).argmax(1) == test_labels).double()
    return np.array([right[test_labels == label].mean() for label in range(10)])


# %%
# The last two columns are the rare classes.
for place, method in enumerate(("uniform", "reweight", "remember")):
    found = recalls(method, epochs=1 if QUICK else 15)
    label = f"{method}: {found.mean():.1%}, rare ones {found[8:].mean():.1%}"
    plt.bar(np.arange(10) + 0.27 * (place - 1), found, width=0.25, label=label)
    print(f"{method:8} balanced test accuracy {found.mean():.3f}")
plt.xticks(range(10), load().train.classes, rotation=40, ha="right")
plt.ylabel("recognised"), plt.ylim(0, 1.35), plt.legend(), plt.tight_layout()
plt.show()
