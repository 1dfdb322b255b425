"""Your own loop, with batch norm and mixed precision
==================================================

A network with batch norm and dropout, trained in bfloat16 where that is safe. Estimating the
weights leaves no trace: running means, modes and the random state are as if nobody had looked.
"""

import sys

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diw
from diw.data import load
from diw.data.split import make_split

QUICK = "--quick" in sys.argv
torch.manual_seed(0)

# %%
# 1,500 images, of which 40% have the label of the next class, and 200 trusted ones. Their losses
# can be compared because both are trained on.
split = make_split(load(), shift="pair:0.4", trusted=200, seed=0, trusted_in_train=False)
rows, trusted = torch.arange(300 if QUICK else 1500), split.trusted.take(torch.arange(200))
images, labels = (torch.cat(pair) for pair in zip(split.train.take(rows), trusted, strict=True))
wrong = torch.cat([split.flipped[rows], torch.zeros(200, dtype=torch.bool)])
loader = DataLoader(TensorDataset(images, labels), batch_size=100, shuffle=True)

model = nn.Sequential(
    *(nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU()),
    *(nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten()),
    *(nn.Dropout(0.2), nn.Linear(16 * 36, 10)),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
objective = diw.Objective(model, "diw", trusted)

# %%
# Losses are matched in float32, whatever the forward does. On CUDA write ``"cuda"`` here.
for epoch in range(1, 3 if QUICK else 16):
    objective.start_epoch(epoch)
    for batch in loader:
        with torch.autocast("cpu", torch.bfloat16):
            result = objective(batch)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        objective.after_step()
    print(f"epoch {epoch:2}  diw, loss {result.loss:.3f}")

# %%
# What the network thinks each label is worth after training.
weights = objective.weigh((images, labels)).train
for name, of in (("right labels", ~wrong), ("wrong labels", wrong)):
    text = f"{name}: mean {weights[of].mean():.2f}"
    plt.hist(weights[of].clamp(max=4).numpy(), bins=40, alpha=0.6, label=text)
plt.xlabel("weight"), plt.ylabel("samples"), plt.legend()
plt.show()
