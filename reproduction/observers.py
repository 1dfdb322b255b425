"""What some figures need besides a run's metrics, observed while its network trains."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from diw.data import Dataset, Split, stratified
from diw.errors import UsageError
from diw.runs import Row, Run
from diw.step import Tap, outputs_in_pieces
from diw.training import OBSERVERS

MOST_HIDDEN = 2000
"""Training samples whose representation is kept: as many points as a scatter plot shows well."""


@final
@dataclass(frozen=True)
class Subsets:
    """Training accuracy on intact and on mislabelled data (Fang et al. 2020, Figure 6).

    Mislabelled samples are scored twice: by the given label and by the true one.
    A network that memorises the noise predicts the first, a robust one the second.
    """

    train: Dataset
    flipped: Tensor
    true_labels: Tensor

    @classmethod
    def of(cls, split: Split, seed: int) -> "Subsets":
        """Of a run's data; they need simulated label noise."""
        if split.flipped is None or split.true_labels is None:
            raise UsageError(
                "observe: subsets needs simulated label noise, and these data have none"
            )
        return cls(split.train, split.flipped, split.true_labels)

    def after_epoch(self, model: nn.Module) -> Row:
        """Accuracies as fractions; None for a subset without samples."""
        pieces = outputs_in_pieces(model, self.train)
        guesses = torch.cat([outputs.values.argmax(1).cpu() for _, outputs in pieces])
        given, true = guesses == self.train.targets, guesses == self.true_labels
        return {
            "intact_accuracy": _mean(given[~self.flipped]),
            "mislabelled_accuracy_given": _mean(given[self.flipped]),
            "mislabelled_accuracy_true": _mean(true[self.flipped]),
        }

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Nothing."""


@final
@dataclass(frozen=True)
class Hidden:
    """The final network's last-layer representation of some training samples, for t-SNE."""

    train: Dataset
    true_labels: Tensor
    seed: int

    @classmethod
    def of(cls, split: Split, seed: int) -> "Hidden":
        """Of a run's data; given labels are the true ones where nothing else is known."""
        true_labels = split.train.targets if split.true_labels is None else split.true_labels
        return cls(split.train, true_labels, seed)

    def after_epoch(self, model: nn.Module) -> Row:
        """Nothing."""
        return {}

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Write `hidden.npz`: features (m, d), row numbers, given and true labels (m,)."""
        truth = self.true_labels
        count = min(MOST_HIDDEN, len(truth))
        places = torch.from_numpy(stratified(truth.numpy(), count, self.seed, "hidden"))
        pieces = outputs_in_pieces(model, self.train, places, tap=Tap(model))
        run.write_arrays(
            "hidden",
            features=torch.cat([outputs.hidden.cpu() for _, outputs in pieces]).float().numpy(),
            index=places.numpy(),
            targets=self.train.targets[places].numpy(),
            true_labels=truth[places].numpy(),
        )


def enter() -> None:
    """Let specs name these observers, in the process that calls it."""
    OBSERVERS.update(subsets=Subsets.of, hidden=Hidden.of)


def _mean(hits: Tensor) -> float | None:
    return float(hits.double().mean()) if len(hits) else None
