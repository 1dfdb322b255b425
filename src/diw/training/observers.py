"""Looking along while a network trains: what some figures need beyond a run's metrics.

A run names its observers in its spec (`observe`), so that the training loop
collects what a figure needs and no script has to train anything of its own.
Looking leaves no trace: the run ends bit for bit as an unobserved one does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, final

import torch
from torch import Tensor, nn

from diw.data import Dataset
from diw.data.split import Split, stratified
from diw.errors import UsageError
from diw.records import Row, Run
from diw.step.probe import Tap, looking

PIECE = 1000
"""Rows a forward."""

MOST_HIDDEN = 2000
"""Training samples whose representation is kept: as many points as a scatter plot can show."""


class Observer(Protocol):
    """Something that is shown the network after each epoch and at the end."""

    def after_epoch(self, model: nn.Module) -> Row:
        """Numbers that join the epoch's metrics."""
        ...

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Keep what only the final network can tell."""
        ...


@final
@dataclass(frozen=True)
class Subsets:
    """Training accuracy on intact and on mislabelled data (Fang et al. 2020, Figure 6).

    Mislabelled samples are scored twice: by the label they were given and by
    the true one. A network that memorises noise reaches the first, one that
    sees through it the second.
    """

    train: Dataset
    flipped: Tensor
    true_labels: Tensor

    def after_epoch(self, model: nn.Module) -> Row:
        """Accuracies as fractions; None where no sample is of the kind."""
        guesses = torch.cat(
            [model_out.argmax(1).cpu() for model_out in _outputs(model, self.train)]
        )
        given, true = guesses == self.train.targets, guesses == self.true_labels
        return {
            "intact_accuracy": _mean(given[~self.flipped]),
            "mislabelled_accuracy_given": _mean(given[self.flipped]),
            "mislabelled_accuracy_true": _mean(true[self.flipped]),
        }

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Nothing more."""


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
        """Keep `hidden.npz`: features (m, d), the samples' places, given and true labels (m,)."""
        truth = self.train.targets if self.true_labels is None else self.true_labels
        count = min(MOST_HIDDEN, len(truth))
        places = torch.from_numpy(stratified(truth.numpy(), count, self.seed, "hidden"))
        part = self.train.subset(places)
        with Tap(model).listening() as caught:
            features = [caught.hidden.cpu() for _ in _outputs(model, part)]
        run.write_arrays(
            "hidden",
            features=torch.cat(features).float().numpy(),
            index=places.numpy(),
            targets=part.targets.numpy(),
            true_labels=truth[places].numpy(),
        )


OBSERVERS = ("subsets", "hidden")
"""The names that a spec's `observe` may hold."""


def make_observers(names: Iterable[str], split: Split, seed: int) -> list[Observer]:
    """The observers a spec names; what a split cannot tell is refused here, before training.

    Args:
        names: From `OBSERVERS`.
        split: The run's data.
        seed: Decides which samples are looked at.
    """
    return [_make(name, split, seed) for name in names]


def _make(name: str, split: Split, seed: int) -> Observer:
    if name == "hidden":
        return Hidden(split.train, split.true_labels, seed)
    if name != "subsets":
        raise UsageError(f"observe: unknown {name!r}; choose from {', '.join(OBSERVERS)}")
    if split.flipped is None or split.true_labels is None:
        raise UsageError("observe: subsets needs simulated label noise, which these data lack")
    return Subsets(split.train, split.flipped, split.true_labels)


def _outputs(model: nn.Module, data: Dataset) -> Iterator[Tensor]:
    """The network's outputs, some rows at a time, in evaluation mode and without gradients."""
    parameter = next(model.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    with torch.no_grad(), looking(model):
        for index in torch.arange(len(data)).split(PIECE):
            yield model(data.take(index)[0].to(device))


def _mean(hits: Tensor) -> float | None:
    return float(hits.double().mean()) if len(hits) else None
