"""The task of a loop without a runner: what its caller handed to the objective, checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.step.batch import Criterion
from diw.step.rows import Rows


@dataclass(frozen=True)
class PlainTask:
    """The `Task` of a host without a runner: what its caller handed to `Objective`."""

    method: str
    train: Rows | None
    trusted: Rows
    trusted_places: Tensor | None
    true_weights: Tensor | None
    criterion: Criterion
    trusted_criterion: Criterion
    pretrainer: Callable[[int], nn.Module] | None
    batch_size: int | None = None

    def pretrain(self, epochs: int, /) -> nn.Module:
        """What the caller's function returns."""
        if self.pretrainer is None:
            raise UsageError(f"pretrain: {self.method} needs it; give Objective(…, pretrain=…)")
        return self.pretrainer(epochs)


def checked_weights(weights: Any) -> Tensor | None:
    """True weights as a vector of finite numbers that are not negative."""
    if weights is None:
        return None
    values = torch.as_tensor(weights)
    if values.ndim != 1 or not bool((values >= 0).all()) or not bool(values.isfinite().all()):
        raise UsageError(
            "true_weights: give one finite number that is not negative for each training sample, "
            f"shape (n,); got shape {tuple(values.shape)}"
        )
    return values


def checked_places(index: Any) -> Tensor | None:
    """Places in the training set as a vector of whole numbers that are not negative."""
    if index is None:
        return None
    places = torch.as_tensor(index)
    if places.ndim != 1 or places.is_floating_point() or bool((places < 0).any()):
        raise UsageError(
            "trusted_index: give the place of each trusted sample in the training set, whole "
            f"numbers of shape (m,); got {places.dtype} of shape {tuple(places.shape)}"
        )
    return places.long()
