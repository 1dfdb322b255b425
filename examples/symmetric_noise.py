"""Images with wrong labels
========================

40% of the labels of 2,000 images are replaced by others. Plain training learns them by heart;
with weights the network does not.
"""

import sys

import matplotlib.pyplot as plt
import torch
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

import diw
from diw.data import load
from diw.data.split import make_split
from diw.models import make_model

QUICK = "--quick" in sys.argv
torch.manual_seed(0)

# %%
# The images are inside the package. 200 more are trusted, with right labels, and trained on, too.
split = make_split(load(), shift="symmetric:0.4", trusted=200, seed=0, trusted_in_train=False)
trusted = TensorDataset(*split.trusted.take(torch.arange(200)))
noisy = TensorDataset(*split.train.take(torch.arange(300 if QUICK else 2000)))
train = diw.IndexedDataset(ConcatDataset([trusted, noisy]))
test_images, test_labels = split.test.take(torch.arange(len(split.test)))


# %%
# ``diw.IndexedDataset`` adds the number of each sample, which ``remember`` needs.
def accuracies(method: str, epochs: int) -> list[float]:
    """Test accuracy after each epoch."""
    model = make_model("mlp", shape=(1, 28, 28), num_classes=10, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    objective = diw.Objective(model, method, trusted=trusted, trusted_index=range(200))
    loader = DataLoader(train, batch_size=100, shuffle=True)
    found = []
    for epoch in range(1, epochs + 1):
        objective.start_epoch(epoch)
        for inputs, targets, index in loader:
            optimizer.zero_grad()
            objective((inputs, targets, index)).loss.backward()
            optimizer.step()
            objective.after_step()
        with torch.no_grad():
            found.append(float((model(test_images).argmax(1) == test_labels).float().mean()))
    return found


# %%
# ``uniform`` reaches its best after some epochs and falls from there.
for method in ("uniform", "random", "diw", "remember"):
    curve = accuracies(method, epochs=2 if QUICK else 24)
    plt.plot(range(1, len(curve) + 1), curve, label=f"{method}: {curve[-1]:.1%} at the end")
    print(f"{method:8} test accuracy {curve[-1]:.3f}")
plt.xlabel("epoch"), plt.ylabel("test accuracy"), plt.legend()
plt.show()
