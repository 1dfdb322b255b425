"""From what a network gives to one number per sample: losses, and what is matched.

The default criterion, losses of soft targets, and the transformations π of Fang et al. 2020,
Section 2: z = π(x, y) is made from the network itself, so that the weights adapt to what the
network currently is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from diw.errors import UsageError
from diw.step.batch import IGNORED, Batch, Criterion, ModelOutput, Outputs, first_tensor


class TargetsError(UsageError):
    """Labels that the criterion cannot take; a step adds which samples they belong to."""


ToLogits = Callable[[ModelOutput], ModelOutput]
"""(what the network gave) → what the criterion takes."""


def logits_of(values: ModelOutput) -> ModelOutput:
    """The logits inside a `ModelOutput` or a mapping; anything else as it is."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, Mapping):
        return cast(Mapping[str, Any], values).get("logits", values)
    return getattr(values, "logits", values)


@dataclass(frozen=True)
class OfLogits:
    """A criterion after a choice of what it looks at: (outputs, targets) → losses (n,)."""

    criterion: Criterion
    to_logits: ToLogits = logits_of

    def __call__(self, values: ModelOutput, targets: Tensor) -> Tensor:
        """One loss per sample, (n,)."""
        return self.criterion(self.to_logits(values), targets)


def cross_entropy(values: ModelOutput, targets: Tensor) -> Tensor:
    """The default criterion, (n,): the cross entropy of logits and labels, averaged over tokens.

    Logits (n, k) go with labels (n,). Of sequences, logits (n, length, k) as Hugging Face has
    them or (n, k, length) as PyTorch has them go with labels (n, length); a label of -100 is
    a token that does not count, and a sequence's loss is the mean over those that do.
    """
    logits = logits_of(values)
    if not isinstance(logits, Tensor):
        key = _first_key(values)
        raise UsageError(
            f"model: it returns a {type(values).__name__}; let it return the logits alone, or say "
            f"which part they are: outputs_to_logits=lambda outputs: outputs[{key!r}]"
        )
    if logits.ndim == targets.ndim + 1 and logits.ndim > 2:
        return _of_tokens(logits, targets)
    if logits.ndim < 2 or logits.shape[1] == 1:
        raise UsageError(
            f"criterion: outputs {tuple(logits.shape)} hold no score for each class, which the "
            "default, cross entropy, needs; for regression or one logit give criterion="
        )
    try:
        return functional.cross_entropy(logits, targets, reduction="none")
    except (IndexError, RuntimeError, ValueError) as error:
        raise TargetsError(_why(logits, targets, error)) from error


def _first_key(values: ModelOutput) -> str | int:
    return next(iter(cast(Mapping[str, Any], values))) if isinstance(values, Mapping) else 0


def losses_of_targets(criterion: Criterion, values: ModelOutput, targets: Tensor) -> Tensor:
    """Σ_k t_k ℓ(f(x), k), (n,): the losses of targets that are shares of classes.

    A target of one class alone is that class's label.

    Args:
        criterion: ℓ, which takes class numbers.
        values: f(x), the network's output.
        targets: t, (n, k).
    """
    if isinstance(criterion, OfLogits):
        values, criterion = criterion.to_logits(values), criterion.criterion
    if criterion is cross_entropy:
        logits = logits_of(values)
        return functional.cross_entropy(logits, targets.to(logits), reduction="none")
    total = torch.zeros(len(targets), device=targets.device)
    for label in targets.any(dim=0).nonzero().flatten():
        losses = criterion(values, label.expand(len(targets)))
        total = total + torch.where(targets[:, label] > 0, targets[:, label] * losses, 0.0)
    return total


def _of_tokens(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over the tokens of each sequence that count, (n,)."""
    last, second = logits.shape[:-1] == targets.shape, logits.shape[2:] == targets.shape[1:]
    if last == second:
        raise UsageError(
            f"criterion: outputs {tuple(logits.shape)} and targets {tuple(targets.shape)} do not "
            "say where the classes are; give a criterion that returns one loss per sample"
        )
    scores = logits.movedim(-1, 1) if last else logits
    try:
        losses = functional.cross_entropy(scores, targets, reduction="none", ignore_index=IGNORED)
    except (IndexError, RuntimeError, ValueError) as error:
        raise TargetsError(_why(scores, targets, error)) from error
    counted = (targets != IGNORED).flatten(1)
    return losses.flatten(1).sum(1) / counted.sum(1).clamp(min=1)


def _why(logits: Tensor, targets: Tensor, error: Exception) -> str:
    """What is wrong with labels that cross entropy refuses."""
    classes = logits.shape[1]
    if isinstance(error, IndexError) and not targets.is_floating_point():
        low, high = int(targets.min()), int(targets.max())
        return f"labels go from {low} to {high}, but the outputs are of classes 0..{classes - 1}"
    return (
        f"targets of shape {tuple(targets.shape)} and {targets.dtype} do not suit outputs "
        f"{tuple(logits.shape)}: {str(error).splitlines()[0]}"
    )


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
