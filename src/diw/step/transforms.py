"""Transformations π: what of a sample is matched between training and trusted data.

Fang et al. 2020, Section 2: z = π(x, y) with π made from the network itself,
so that the weights adapt to what the network currently is.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from diw.step.batch import Batch, Outputs, first_tensor


@dataclass(frozen=True)
class Transform(ABC):
    """Maps a batch and what the network gave for it to the values that are matched."""

    taps: ClassVar[bool] = False
    """Whether the transformation needs what enters a hidden layer."""

    by_class: bool = False
    """Whether values compare only within a class, so that each class is matched alone."""

    @abstractmethod
    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The values z, (n,) or (n, d), without gradient, in float32 or float64."""


@dataclass(frozen=True)
class LossValue(Transform):
    """-L: z = ℓ(f(x), y), one number a sample; y is in it already, so classes stay together."""

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The losses, (n,)."""
        return _wide(outputs.losses)


@dataclass(frozen=True)
class HiddenOutput(Transform):
    """-F: z = what enters the last linear layer (or the layer named), matched class by class."""

    taps: ClassVar[bool] = True
    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The hidden outputs, (n, d)."""
        return _wide(outputs.hidden)


@dataclass(frozen=True)
class WholeOutput(Transform):
    """π is the whole network (Section 2): z = f(x), the logits, matched class by class."""

    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The network's outputs, (n, k)."""
        return _wide(first_tensor(outputs.values).flatten(1))


@dataclass(frozen=True)
class RawInput(Transform):
    """z = x itself, the raw input of plain importance weighting, matched class by class."""

    by_class: bool = True

    def __call__(self, batch: Batch, outputs: Outputs) -> Tensor:
        """The inputs, (n, d)."""
        return _wide(first_tensor(batch.inputs).flatten(1))


def _wide(values: Tensor) -> Tensor:
    """Without gradient, and in float32 at least: half precision (autocast) would tie distances."""
    values = values.detach()
    wide = values.is_floating_point() and values.dtype.itemsize >= 4
    return values if wide else values.float()
