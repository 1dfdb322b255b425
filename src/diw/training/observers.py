"""Observing a network while it trains: what some figures need besides a run's metrics.

A run names its observers in its spec (`observe`), so that the training loop
collects what a figure needs and no figure needs a training of its own.
Observing leaves no trace: the run ends bit for bit as an unobserved one does.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, final

import torch
from torch import Tensor, nn

from diw.data import Dataset
from diw.data.split import Split, stratified
from diw.errors import UsageError
from diw.runs import Row, Run
from diw.step.probe import Tap, outputs_in_pieces

MOST_HIDDEN = 2000
"""Training samples whose representation is kept: as many points as a scatter plot shows well."""


class Observer(Protocol):
    """Something that is shown the network after each epoch and at the end."""

    def after_epoch(self, model: nn.Module) -> Row:
        """Numbers that are added to the epoch's metrics."""
        ...

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Record something about the final network."""
        ...


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
    true_labels: Tensor | None
    seed: int

    def after_epoch(self, model: nn.Module) -> Row:
        """Nothing."""
        return {}

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Write `hidden.npz`: features (m, d), row numbers, given and true labels (m,)."""
        truth = self.train.targets if self.true_labels is None else self.true_labels
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


OBSERVERS = ("subsets", "hidden")
"""The names that a spec's `observe` may hold."""


def make_observers(names: Iterable[str], split: Split, seed: int) -> list[Observer]:
    """The observers that a spec names.

    An observer that needs what the split does not know is refused here, before training.

    Args:
        names: From `OBSERVERS`.
        split: The run's data.
        seed: Decides which samples are observed.
    """
    return [_make(name, split, seed) for name in names]


def _make(name: str, split: Split, seed: int) -> Observer:
    if name == "hidden":
        return Hidden(split.train, split.true_labels, seed)
    if name != "subsets":
        raise UsageError(f"observe: unknown {name!r}; choose from {', '.join(OBSERVERS)}")
    if split.flipped is None or split.true_labels is None:
        raise UsageError("observe: subsets needs simulated label noise, and these data have none")
    return Subsets(split.train, split.flipped, split.true_labels)


def _mean(hits: Tensor) -> float | None:
    return float(hits.double().mean()) if len(hits) else None
