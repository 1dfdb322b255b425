"""Transformations π: what of a sample is matched between training and trusted data.

Fang et al. 2020, Section 3: z = π(x, y) with π made from the network itself,
so that the weights adapt to what the network currently is.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from diw.batch import Batch, Outputs, first_tensor


class Transform(ABC):
    """Maps a batch and what the network gave for it to the values that are matched."""

    taps: bool = False
    """Whether the transformation needs what enters a hidden layer."""
    by_class: bool = False
    """Whether values are comparable only within a class, so that each class is matched alone."""

    @abstractmethod
    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The values z, (n,) or (n, d), without gradient."""


@dataclass(frozen=True)
class LossValue(Transform):
    """-L: z = ℓ(f(x), y), one number a sample; y is in it already, so classes stay together."""

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The losses, (n,); float32 at least, also under autocast."""
        losses = outputs.losses.detach()
        return losses.float() if losses.dtype.itemsize < 4 else losses


@dataclass(frozen=True)
class HiddenOutput(Transform):
    """-F: z = what enters the last linear layer (or the layer named), matched class by class."""

    taps = True
    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The hidden outputs, (n, d)."""
        return outputs.hidden.detach().float()


@dataclass(frozen=True)
class WholeOutput(Transform):
    """π is the whole network (Section 3): z = f(x), the logits, matched class by class."""

    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The network's outputs, (n, k)."""
        return outputs.values.detach().flatten(1).float()


@dataclass(frozen=True)
class Input(Transform):
    """z = x itself, the raw input of plain importance weighting, matched class by class."""

    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The inputs, (n, d)."""
        return first_tensor(batch.inputs).detach().flatten(1).float()
