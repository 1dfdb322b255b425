"""Observing a network while it trains: what some figures need besides a run's metrics.

A run names its observers in its spec (`observe`), so that the training loop
collects what a figure needs and no figure needs a training of its own.
Observing leaves no trace: the run ends bit for bit as an unobserved one does.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from torch import nn

from diw.data.split import Split
from diw.errors import UsageError
from diw.runs import Row, Run


class Observer(Protocol):
    """Something that is shown the network after each epoch and at the end."""

    def after_epoch(self, model: nn.Module) -> Row:
        """Numbers that are added to the epoch's metrics."""
        ...

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Record something about the final network."""
        ...


OBSERVERS: dict[str, Callable[[Split, int], Observer]] = {}
"""How to make an observer of a run's data and seed, by the name that a spec's `observe` may hold.

Whoever defines observers enters them here, in every process that trains.
"""


def make_observers(names: Iterable[str], split: Split, seed: int) -> list[Observer]:
    """The observers that a spec names.

    An observer that needs what the split does not know is refused here, before training.

    Args:
        names: From `OBSERVERS`.
        split: The run's data.
        seed: Decides which samples are observed.
    """
    return [_maker(name)(split, seed) for name in names]


def _maker(name: str) -> Callable[[Split, int], Observer]:
    if name not in OBSERVERS:
        choices = ", ".join(OBSERVERS) or "none here"
        raise UsageError(f"observe: unknown {name!r}; choose from {choices}")
    return OBSERVERS[name]
