"""What a weighting method is: it looks at one training step and gives one weight per sample."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from diw.runs.spec import field_values
from diw.step.batch import Batch, Criterion, Weights
from diw.step.probe import Tap
from diw.step.rows import Rows
from diw.step.step import Step


class Task(Protocol):
    """What a method may ask of its host before training; methods never import training."""

    @property
    def train(self) -> Rows | None:
        """The whole training set, if the host has it."""
        ...

    @property
    def trusted(self) -> Rows:
        """The whole trusted set."""
        ...

    @property
    def trusted_places(self) -> Tensor | None:
        """Places (m,) of the trusted samples in the training set; empty where they are kept out of
        it, None where the host does not know.
        """
        ...

    @property
    def true_weights(self) -> Tensor | None:
        """The true weight of each training sample, (n,), known for simulated shifts; else None."""
        ...

    @property
    def criterion(self) -> Criterion:
        """(outputs, targets) → losses (n,) of training samples."""
        ...

    @property
    def trusted_criterion(self) -> Criterion:
        """(outputs, targets) → losses (m,) of trusted samples."""
        ...

    @property
    def batch_size(self) -> int | None:
        """Training samples per step, if the host knows it beforehand."""
        ...

    def pretrain(self, epochs: int, /) -> nn.Module:
        """A network trained without weights for some epochs; an interrupted call is resumed."""
        ...


State = Mapping[str, Tensor]
"""Parameters and buffers by name, as `Module.state_dict` gives them."""


@dataclasses.dataclass(kw_only=True)
class Method(ABC):
    """One method. Its dataclass fields are its configuration, their docstrings the explanation.

    Subclasses with a `name` are registered by being defined. The weights that
    `weigh` returns need no scale: the objective normalises them to mean one.
    """

    name: ClassVar[str] = ""
    """The canonical name: the paper's, in lower case. Empty for shared parts."""
    aliases: ClassVar[tuple[str, ...]] = ()
    trains_on: ClassVar[str] = "train"
    """"train", or "trusted" for a method that leaves the training data alone."""

    costs_like: ClassVar[str] = ""
    """A method whose steps cost about as much and that needs no pretraining; empty: none does."""

    by_losses: ClassVar[bool] = False
    """Whether it compares losses of training and trusted samples, or what the network predicts for
    their labels; then the trusted samples have to be trained on too."""

    def tap(self, network: nn.Module) -> Tap | None:
        """Where the method wants a hidden output of `network` caught, if it does."""
        return None

    def prepare(self, task: Task) -> State | None:
        """Get ready, once, before the first step; may return the parameters to start from."""
        return None

    @abstractmethod
    def weigh(self, step: Step) -> Weights:
        """The weights of one step."""

    def after_step(self) -> None:  # noqa: B027
        """Act after an optimiser step, once; for a method with an optimiser of its own."""

    def losses(self, values: Any, batch: Batch, criterion: Criterion) -> Tensor:
        """One loss per sample, (n,); a method that corrects losses overrides this."""
        assert batch.targets is not None
        return criterion(values, batch.targets)

    def state_dict(self) -> dict[str, Any]:
        """What the method has learned besides its configuration; tensors and plain values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Take over what `state_dict` gave."""

    def fields(self) -> dict[str, Any]:
        """The configuration by field name, as a run's spec states it."""
        return field_values(self)


def normalised(weights: Tensor) -> Tensor:
    """Weights scaled to mean one, (n,); weights that are all zero stay zero.

    Fang et al. 2020, Section 5: normalised within each mini-batch.
    """
    mean = weights.mean()
    return torch.where(mean > 0, weights / torch.where(mean > 0, mean, 1), 0.0).to(weights.dtype)
