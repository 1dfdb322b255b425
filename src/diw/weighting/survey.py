"""Looking at whole data sets: the values z of many samples, some rows at a time."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.step.batch import Batch, Criterion, LossFunction, Outputs
from diw.step.probe import Tap, outputs_in_pieces
from diw.step.rows import Rows, in_pieces
from diw.step.transforms import Transform
from diw.weighting.base import Task, Weighting


@dataclass(frozen=True)
class Survey:
    """π(x, y) of whole sets, by a network in evaluation mode that is left as it was.

    Attributes:
        transform: π.
        network: The estimating network; None for a transformation that runs none.
        losses: How outputs become losses.
        layer: The tapped layer of a transformation that taps.
    """

    transform: Transform
    network: nn.Module | None
    losses: LossFunction
    layer: str | None = None

    def __call__(self, samples: Rows, criterion: Criterion, rows: Tensor) -> Tensor:
        """The values z, (len(rows),) or (len(rows), d), on the CPU."""
        if self.network is None:
            nothing = Outputs(None, None)
            return torch.cat(
                [self.transform(batch, nothing).cpu() for batch in in_pieces(samples, rows)]
            )
        tap = Tap(self.network, self.layer) if self.transform.taps else None
        return torch.cat(
            [
                self.transform(batch, self._with_losses(outputs, batch, criterion)).cpu()
                for batch, outputs in outputs_in_pieces(self.network, samples, rows, tap=tap)
            ]
        )

    def _with_losses(self, outputs: Outputs, batch: Batch, criterion: Criterion) -> Outputs:
        if batch.targets is None:
            return outputs
        return replace(outputs, maybe_losses=self.losses(outputs.values, batch, criterion))


def whole_train(task: Task, method: Weighting) -> Rows:
    """The whole training set, or a message that says how to give it."""
    if task.train is None:
        raise UsageError(
            f"train: {method.name} weighs the whole training set beforehand; "
            "give Objective(…, train=…)"
        )
    return task.train
