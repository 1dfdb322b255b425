"""A LightningModule on images with wrong labels: two lines turn it into a weighted one."""

import sys

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

import diw
from diw.data import load
from diw.data.split import make_split
from diw.integrations.lightning import ImportanceWeighting
from diw.models import LeNet5


class Classifier(pl.LightningModule):
    """As anyone has it, except for the marked line."""

    def __init__(self) -> None:
        super().__init__()
        self.net = LeNet5((1, 28, 28), 10)

    def training_step(self, batch, batch_idx):
        return self.objective(batch).loss  # (1) was: cross_entropy(self.net(x), y)

    def test_step(self, batch, batch_idx):
        inputs, targets = batch
        self.log("accuracy", (self.net(inputs).argmax(1) == targets).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main(quick: bool = False) -> None:
    """Train with and without weights."""
    split = make_split(load("embedded"), shift="symmetric:0.4", trusted=500, seed=0)
    rows = torch.arange(512 if quick else len(split.train))
    samples = diw.Indexed(TensorDataset(*split.train.take(rows)))  # to be remembered
    train = DataLoader(samples, batch_size=256, shuffle=True)
    test = DataLoader(TensorDataset(*split.test.take(torch.arange(len(split.test)))), 1000)
    trusted = split.trusted.take(torch.arange(500))
    for method in ("uniform", "remember"):
        pl.seed_everything(0, verbose=False)
        weighting = ImportanceWeighting(trusted, method, network="net")  # (2)
        trainer = pl.Trainer(
            max_epochs=2 if quick else 30,
            callbacks=[weighting],
            **{"logger": False, "enable_checkpointing": False, "enable_model_summary": False},
            **{"enable_progress_bar": False, "accelerator": "cpu"},
        )
        model = Classifier()
        trainer.fit(model, train)
        [result] = trainer.test(model, test, verbose=False)
        print(f"{method:8} test accuracy {result['accuracy']:.3f}")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
