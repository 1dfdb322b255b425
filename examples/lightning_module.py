"""A Lightning module
==================

Two lines turn a ``LightningModule`` into a weighted one: the loss, and a callback. The callback
counts epochs and steps, logs the weights, and goes into the Trainer's checkpoints.
"""

import logging
import sys

import lightning.pytorch as pl
import matplotlib.pyplot as plt
import torch
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

from diw import IndexedDataset
from diw.data import load
from diw.data.split import make_split
from diw.integrations.lightning import ImportanceWeighting
from diw.models import MLP

QUICK = "--quick" in sys.argv
OFF = ("logger", "enable_checkpointing", "enable_model_summary", "enable_progress_bar")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):  # as anyone has it, except for (1)
    def __init__(self) -> None:
        super().__init__()
        self.net, self.curve = MLP((1, 28, 28), 10), []

    def training_step(self, batch, batch_idx):
        return self.objective(batch).loss  # (1) was: cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        inputs, targets = batch
        self.curve.append(float((self.net(inputs).argmax(1) == targets).float().mean()))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


# 2,000 images, of which 40% have a wrong label, and 200 trusted ones
split = make_split(load(), shift="symmetric:0.4", trusted=200, seed=0, trusted_in_train=False)
trusted = TensorDataset(*split.trusted.take(torch.arange(200)))
noisy = TensorDataset(*split.train.take(torch.arange(300 if QUICK else 2000)))
train = DataLoader(IndexedDataset(ConcatDataset([trusted, noisy])), batch_size=100, shuffle=True)
test = DataLoader(TensorDataset(*split.test.take(torch.arange(2000))), 2000)

for method in ("uniform", "diw"):
    pl.seed_everything(0, verbose=False)
    weighting = ImportanceWeighting(trusted, method, network="net", trusted_index=range(200))  # (2)
    options = {"max_epochs": 2 if QUICK else 20, "num_sanity_val_steps": 0, "accelerator": "cpu"}
    trainer = pl.Trainer(callbacks=[weighting], **options, **dict.fromkeys(OFF, False))
    trainer.fit(model := Classifier(), train, test)
    plt.plot(model.curve, label=f"{method}: {model.curve[-1]:.1%} at the end")
    print(f"{method:8} test accuracy {model.curve[-1]:.3f}")
plt.xlabel("epoch"), plt.ylabel("test accuracy"), plt.legend()
plt.show()
