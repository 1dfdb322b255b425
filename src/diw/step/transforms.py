"""Transformations π: what of a sample is matched between training and trusted data.

Fang et al. 2020, Section 2: z = π(x, y) with π made from the network itself,
so that the weights adapt to what the network currently is.
"""

from collections.abc import Callable

from torch import Tensor

from diw.step.batch import Batch, Outputs, first_tensor
from diw.step.criteria import logits_of

Transform = Callable[[Batch, Outputs], Tensor]
"""(batch, what the network gave for it) → z, (n,) or (n, d), without gradient, float32 or wider."""


def loss_values(batch: Batch, outputs: Outputs) -> Tensor:
    """Z = ℓ(f(x), y), (n,): one loss per sample. The label is part of it."""
    return _wide(outputs.losses)


def hidden_outputs(batch: Batch, outputs: Outputs) -> Tensor:
    """Z = h(x), (n, d): what enters the tapped layer."""
    return _wide(outputs.hidden)


def logits(batch: Batch, outputs: Outputs) -> Tensor:
    """Z = f(x), (n, k): π is the whole network (Section 2)."""
    return _wide(first_tensor(logits_of(outputs.values)).flatten(1))


def raw_inputs(batch: Batch, outputs: Outputs) -> Tensor:
    """Z = x, (n, d): the raw inputs, as importance weighting did before deep learning."""
    return _wide(first_tensor(batch.inputs).flatten(1))


def _wide(values: Tensor) -> Tensor:
    """Without gradient, and in float32 at least: half precision (autocast) would tie distances."""
    values = values.detach()
    wide = values.is_floating_point() and values.dtype.itemsize >= 4
    return values if wide else values.float()
