"""The parts of an epoch: the optimiser of a recipe, and what is recorded of the steps."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from diw.metrics import weight_summary
from diw.runs import Recipe, Row


def make_optimizer(recipe: Recipe, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser that a recipe describes, at its full learning rate.

    Args:
        recipe: How the network is trained.
        parameters: What the optimiser updates.
    """
    lr, decay = recipe.lr, recipe.weight_decay
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=decay)
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=lr, weight_decay=decay)
    return torch.optim.SGD(parameters, lr=lr, momentum=recipe.momentum, weight_decay=decay)


class Tally:
    """Sums over the steps of an epoch; the loss stays a tensor, so no step waits for a device."""

    def __init__(self) -> None:
        self.steps = 0
        self.loss: Tensor | float = 0.0
        self._finite: Tensor | int = 0
        self.sums: dict[str, float] = {}

    def add(self, loss: Tensor, diagnostics: Mapping[str, float]) -> None:
        """Count a step with its loss and the method's diagnostics."""
        self.steps += 1
        self.loss = self.loss + loss
        self._finite = self._finite + torch.isfinite(self.loss)
        for name, value in diagnostics.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    @property
    def first_bad_step(self) -> int:
        """The first step, from 1, whose loss is not finite: from there on the sum is not."""
        return int(self._finite) + 1

    def row(self, samples: int, reduction: str) -> Row:
        """Means over the steps; of the loss, the mean over samples, whatever the reduction."""
        sums = dict(self.sums)
        row: Row = {
            "train_loss": float(self.loss) / (samples if reduction == "sum" else self.steps)
        }
        if "vanished" in sums:
            row["vanished"] = int(sums.pop("vanished"))
        return row | {name: value / self.steps for name, value in sums.items()}


def weight_metrics(weights: Tensor) -> Row:
    """What is recorded of an epoch's weights.

    Args:
        weights: (n,) one for each training sample, NaN where no step used it.
    """
    seen = weights[~weights.isnan()].double().numpy()
    if not len(seen):
        return {}
    return {"weighted": bool((seen != 1).any()), **weight_summary(seen)}
