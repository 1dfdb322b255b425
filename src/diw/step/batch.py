"""The small values that pass between a host, a step and a method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.nn import functional

from diw.errors import UsageError

ModelInputs = Any
"""What a network takes: a tensor, or a tuple or mapping of arguments."""
ModelOutput = Any
"""What a network gives: mostly logits (n, k)."""
Criterion = Callable[[ModelOutput, Tensor], Tensor]
"""(outputs, targets) → one loss per sample, shape (n,): a PyTorch loss with `reduction="none"`."""


@dataclass(frozen=True)
class Batch:
    """Some samples: inputs, targets, and their places in the data set they come from.

    `inputs` is a tensor, or a tuple or mapping of arguments for the network;
    `targets` (n,…) is None for unlabelled trusted data; `index` (n,) is None
    where the loader does not say which samples it drew.
    """

    inputs: ModelInputs
    targets: Tensor | None
    index: Tensor | None = None

    def __len__(self) -> int:
        if self.targets is not None:
            return len(self.targets)
        return len(first_tensor(self.inputs))

    def to(self, device: torch.device) -> "Batch":
        """The same samples on a device; the index stays where it is."""
        targets = None if self.targets is None else self.targets.to(device)
        return Batch(each_tensor(self.inputs, lambda x: x.to(device)), targets, self.index)

    @classmethod
    def of(cls, batch: "Batch | Sequence[Any]") -> "Batch":
        """Take a `Batch` or what a loader yields: (inputs, targets) or (inputs, targets, index)."""
        if isinstance(batch, Batch):
            return batch
        if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
            return cls(*batch)
        raise UsageError("batch: give (inputs, targets), (inputs, targets, index) or a diw.Batch")


@dataclass(frozen=True)
class Outputs:
    """What a forward gave: the network's output, losses (n,), a tapped hidden output (n, d)."""

    values: ModelOutput
    maybe_losses: Tensor | None
    maybe_hidden: Tensor | None = None

    @property
    def losses(self) -> Tensor:
        """One loss per sample, (n,)."""
        if self.maybe_losses is None:
            raise UsageError("trusted: this method needs labels for the trusted samples")
        return self.maybe_losses

    @property
    def hidden(self) -> Tensor:
        """What entered the tapped layer, (n, d)."""
        if self.maybe_hidden is None:
            raise UsageError("layer: this method did not ask for a hidden output")
        return self.maybe_hidden


@dataclass(frozen=True)
class Weights:
    """A method's answer for one step; all tensors are detached.

    `train` (n,) weighs the training batch, None: it does not count. `trusted`
    (m,) weighs the trusted batch in the loss, None: it is only looked at.
    `normalise`: the objective brings `train` to mean one.
    """

    train: Tensor | None
    trusted: Tensor | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict[str, float])
    normalise: bool = True


class LossFunction(Protocol):
    """How a method turns outputs into losses: `Weighting.losses`."""

    def __call__(self, values: ModelOutput, batch: Batch, criterion: Criterion) -> Tensor:
        """One loss per sample, (n,)."""
        ...


def first_tensor(inputs: ModelInputs) -> Tensor:
    """The first tensor of what a network takes: a tensor, or a tuple or mapping of arguments."""
    positional, named = arguments(inputs)
    first = positional[0] if positional else next(iter(named.values()))
    return first if isinstance(first, Tensor) else first_tensor(first)


def arguments(inputs: ModelInputs) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Positional and keyword arguments of a network's call, from the inputs of a batch."""
    if isinstance(inputs, Mapping):
        return (), cast(Mapping[str, Any], inputs)
    if isinstance(inputs, (tuple, list)):
        return cast(Sequence[Any], inputs), {}
    return (inputs,), {}


def each_tensor(inputs: ModelInputs, change: Callable[[Any], Any]) -> ModelInputs:
    """The inputs of a batch with every tensor changed, also inside tuples and mappings."""
    if isinstance(inputs, Mapping):
        named = cast(Mapping[str, Any], inputs)
        return {name: each_tensor(value, change) for name, value in named.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(each_tensor(value, change) for value in cast(Sequence[Any], inputs))
    return change(inputs)


def one_per_sample(losses: Tensor, n: int) -> Tensor:
    """The losses (n,) of n samples, refused if the criterion averaged them."""
    if losses.shape != (n,):
        raise UsageError(
            f"criterion: it must give one loss per sample, shape ({n},), and gave "
            f'{tuple(losses.shape)}; use reduction="none" and average over other dimensions'
        )
    return losses


def cross_entropy(values: ModelOutput, targets: Tensor) -> Tensor:
    """The default criterion: the cross entropy of logits (n, k) and labels (n,), (n,)."""
    return functional.cross_entropy(values, targets, reduction="none")
