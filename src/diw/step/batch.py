"""The small values that pass between a host, a step and a method."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diw.brief import in_a_line
from diw.deprecated import Renamed
from diw.errors import UsageError

ModelInputs = Any
"""What a network takes: a tensor, or a tuple or mapping of arguments."""
ModelOutput = Any
"""What a network gives: mostly logits (n, k)."""
Criterion = Callable[[ModelOutput, Tensor], Tensor]
"""(outputs, targets) → one loss per sample, shape (n,): a PyTorch loss with `reduction="none"`."""
LABELS = ("labels", "label", "targets", "target")
"""The names under which a mapping may hold its labels."""
LARGEST_INDEX = 1 << 30
"""More training samples than that are not expected where their number is not known."""
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

    __repr__ = in_a_line

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

    def check_index(self, size: int | None = None) -> None:
        """Refuse an index that is not the place of each sample in the training set.

        A column of another meaning, such as a constant or a key, would mix samples up or ask for
        as much memory as its largest number.

        Args:
            size: How many training samples there are, if that is known.
        """
        index = self.index
        if index is None:
            return
        what = "batch: index has to be the place of each sample in the training set, counted from 0"
        if index.is_floating_point() or index.dtype == torch.bool or index.shape != (len(self),):
            raise UsageError(
                f"{what}: whole numbers of shape ({len(self)},), not {index.dtype} of shape "
                f"{tuple(index.shape)}"
            )
        if not len(index):
            return
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= (LARGEST_INDEX if size is None else size):
            wrong = low if low < 0 else high
            there = "" if size is None else f", which has {size:,} samples"
            raise UsageError(f"{what}{there}; {wrong} is none")
        if self.targets is None or self.targets.ndim != 1 or self.targets.is_floating_point():
            return
        order = torch.argsort(index, stable=True)
        targets = self.targets.to(index.device)[order]
        again = (index[order].diff() == 0) & (targets.diff() != 0)
        if again.any():
            place = int(again.nonzero()[0])
            first, second = int(order[place]), int(order[place + 1])
            raise UsageError(
                f"{what}; rows {first} and {second} have the index {int(index[first])} both, and "
                "different labels"
            )

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
    """What a forward gave: the network's output, the losses (n,) of the given labels, and a hidden
    output (n, d) if one was tapped.
    """

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

    Where a tensor is expected, it stands for `train`: in functions of torch and NumPy, and with
    operators.

    Attributes:
        train: (n,) the weights of the training batch; None: it does not count.
        targets: (n, k) the classes to train on, as shares of one; None: the given labels.
        trusted: (m,) the weights of the trusted batch in the loss; None: it is only looked at.
            Beside `train`, a trusted weight of one counts as much as a training weight of one.
        metrics: Numbers to record with the step.
        recorded: (n,) what the samples are worth, where `train` leaves some out of this step.
        normalise: Whether the objective brings `train` to mean one.
    """

    __repr__ = in_a_line

    train: Tensor | None
    targets: Tensor | None = None
    trusted: Tensor | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    recorded: Tensor | None = None
    normalise: bool = True

    estimate = Renamed("recorded")
    diagnostics = Renamed("metrics")

    def as_tensor(self) -> Tensor:
        """`train`, (n,)."""
        if self.train is None:
            raise UsageError("weights: this method does not train on the training batch")
        return self.train

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch with tensors instead."""
        named = {name: _plain(value) for name, value in (kwargs or {}).items()}
        return function(*_plain(tuple(args)), **named)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.as_tensor().cpu(), dtype=dtype, copy=copy)

    def __getattr__(self, name: str) -> Any:
        """Methods and attributes of the tensor: `weights.mean()`, `weights.shape`."""
        # Copying and pickling ask for private names before there is a tensor.
        if name.startswith("_") or not hasattr(Tensor, name):
            known = ", ".join(entry.name for entry in fields(self))
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {known}")
        return getattr(self.as_tensor(), name)

    def __len__(self) -> int:
        return len(self.as_tensor())

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.as_tensor())

    def __getitem__(self, place: Any) -> Tensor:
        return self.as_tensor()[_plain(place)]

    # Operators with a tensor on the other side reach `__torch_function__`; these are for numbers.
    def __mul__(self, other: Any) -> Tensor:
        return self.as_tensor() * _plain(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return self.as_tensor() / _plain(other)

    def __gt__(self, other: Any) -> Tensor:
        return self.as_tensor() > _plain(other)

    def __ge__(self, other: Any) -> Tensor:
        return self.as_tensor() >= _plain(other)

    def __lt__(self, other: Any) -> Tensor:
        return self.as_tensor() < _plain(other)

    def __le__(self, other: Any) -> Tensor:
        return self.as_tensor() <= _plain(other)


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


def _plain(value: Any) -> Any:
    """The tensor that a `Weights` stands for, also inside tuples and lists."""
    if isinstance(value, Weights):
        return value.as_tensor()
    if isinstance(value, (tuple, list)):
        plain = [_plain(item) for item in cast(Sequence[Any], value)]
        return plain if isinstance(value, list) else tuple(plain)
    return value
