"""The small values that pass between a host, a step and a method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from diw.errors import UsageError
from diw.step.like_tensor import LikeTensor

ModelInputs = Any
"""What a network takes: a tensor, or a tuple or mapping of arguments."""
ModelOutput = Any
"""What a network gives: mostly logits (n, k)."""
Criterion = Callable[[ModelOutput, Tensor], Tensor]
"""(outputs, targets) → one loss per sample, shape (n,): a PyTorch loss with `reduction="none"`."""
LABELS = ("labels", "label", "targets", "target")
"""The names under which a mapping may hold its labels."""
IGNORED = -100
"""The label of a token that does not count (padding), as in PyTorch and Hugging Face."""


@dataclass(frozen=True)
class Batch:
    """Some samples: inputs, targets, and their places in the data set they come from.

    `inputs` is a tensor, or a tuple or mapping of arguments for the network;
    `targets` (n,…) is None for unlabelled trusted data; `index` (n,) is None
    where the loader does not say which samples it drew. Where each token counts as a
    sample, `tokens` (sequences, length) marks those that do, and `targets` (n,) are theirs.
    """

    inputs: ModelInputs
    targets: Tensor | None
    index: Tensor | None = None
    tokens: Tensor | None = None

    def __len__(self) -> int:
        if self.targets is not None:
            return len(self.targets)
        return len(first_tensor(self.inputs))

    def to(self, device: torch.device) -> "Batch":
        """The same samples on a device; the index stays where it is."""
        targets = None if self.targets is None else self.targets.to(device)
        tokens = None if self.tokens is None else self.tokens.to(device)
        return Batch(each_tensor(self.inputs, lambda x: x.to(device)), targets, self.index, tokens)

    def part(self, chosen: Tensor) -> "Batch":
        """The samples where `chosen` (n,) holds; of a batch whose samples are not tokens."""
        targets = None if self.targets is None else self.targets[chosen]
        index = None if self.index is None else self.index[chosen.to(self.index.device)]
        return Batch(each_tensor(self.inputs, lambda x: x[chosen]), targets, index)

    def by_token(self, name: str) -> "Batch":
        """The same batch with each labelled token as a sample of its own.

        Args:
            name: The argument that holds the batch, for messages.
        """
        targets = self.targets
        if targets is None or targets.ndim != 2 or targets.is_floating_point():
            shape = None if targets is None else tuple(targets.shape)
            raise UsageError(
                f'{name}: unit="token" needs a label for each token, whole numbers of shape '
                f"(sequences, length), and got {shape}"
            )
        tokens = targets != IGNORED
        return Batch(self.inputs, targets[tokens], None, tokens)

    @classmethod
    def of(cls, batch: "Batch | Sequence[Any] | Mapping[str, Any]", name: str = "batch") -> "Batch":
        """Take a `Batch` or what a loader yields.

        Args:
            batch: (inputs, targets), (inputs, targets, index), or a mapping of the network's
                arguments with the labels under one of `LABELS`, and perhaps an `index`.
            name: The argument that holds it, for messages.
        """
        if isinstance(batch, Batch):
            return batch
        if isinstance(batch, Mapping):
            inputs = dict(batch)
            label = label_key(inputs, name)
            return cls(inputs, inputs.pop(label), inputs.pop("index", None))
        if isinstance(batch, (tuple, list)) and len(batch) in (2, 3):
            return cls(*batch)
        raise UsageError(
            f"{name}: give (inputs, targets), (inputs, targets, index), a mapping with labels, "
            "or a diw.Batch"
        )


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
class Weights(LikeTensor):
    """A method's answer for one step; all tensors are detached.

    `train` (n,) weighs the training batch, None: it does not count. `trusted`
    (m,) weighs the trusted batch in the loss, None: it is only looked at; beside `train` a
    trusted weight of one counts as much as a training weight of one.
    `normalise`: the objective brings `train` to mean one. `estimate` (n,): what the
    samples are worth, where `train` leaves some out of this step; that is what is recorded. Where a
    tensor is expected, a `Weights` is its `train`.
    """

    train: Tensor | None
    trusted: Tensor | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict[str, float])
    normalise: bool = True
    estimate: Tensor | None = None

    def as_tensor(self) -> Tensor:
        """`train`, (n,)."""
        if self.train is None:
            raise UsageError("weights: this method does not train on the training batch")
        return self.train


class LossFunction(Protocol):
    """How a method turns outputs into losses: `Method.losses`."""

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


def label_key(sample: Mapping[str, Any], name: str) -> str:
    """Under which name a mapping holds its labels.

    Args:
        sample: A sample or batch.
        name: The argument that holds it, for messages.
    """
    for key in LABELS:
        if key in sample:
            return key
    raise UsageError(
        f"{name}: a mapping needs its labels under {', '.join(LABELS[:-1])} or {LABELS[-1]}; "
        f"it has {', '.join(map(str, sample)) or 'nothing'}"
    )


def one_per_sample(losses: Tensor, n: int, values: ModelOutput = None) -> Tensor:
    """The losses (n,) of n samples, refused if the criterion averaged them.

    Args:
        losses: What the criterion gave, (n,) or (n, 1).
        n: The number of samples.
        values: The network's output, for the message.
    """
    if losses.shape == (n, 1):
        return losses.squeeze(1)
    if losses.shape != (n,):
        wide = losses.shape == (n, n) and getattr(values, "shape", None) == (n, 1)
        raise UsageError(
            f"criterion: it must give one loss per sample, shape ({n},), and gave "
            f"{tuple(losses.shape)}; "
            + (
                f"outputs ({n}, 1) and targets ({n},) were broadcast: use outputs.squeeze(1)"
                if wide
                else 'use reduction="none" and average over other dimensions'
            )
        )
    return losses
