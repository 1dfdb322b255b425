"""Looking at whole data sets: the values z of many samples, some rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.step.batch import Batch, Criterion, LossFunction, Outputs
from diw.step.probe import Tap, forward, looking
from diw.step.transforms import Transform
from diw.weighting.base import Samples, Task, Weighting

PIECE = 1000
"""Rows a forward."""


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

    def __call__(self, samples: Samples, criterion: Criterion, rows: Tensor) -> Tensor:
        """The values z, (len(rows),) or (len(rows), d), on the CPU."""
        if self.network is None:
            return torch.cat([self._values(batch, None) for batch in _pieces(samples, rows)])
        with torch.no_grad(), looking(self.network):
            return torch.cat(
                [
                    self._values(batch, self._look(self.network, batch, criterion))
                    for batch in _pieces(samples, rows, self.network)
                ]
            )

    def _values(self, batch: Batch, outputs: Outputs | None) -> Tensor:
        return self.transform(batch, outputs or Outputs(None, None)).cpu()

    def _look(self, network: nn.Module, batch: Batch, criterion: Criterion) -> Outputs:
        hidden = None
        if self.transform.taps:
            with Tap(network, self.layer).listening() as caught:
                values = forward(network, batch.inputs)
            hidden = caught.hidden
        else:
            values = forward(network, batch.inputs)
        losses = None if batch.targets is None else self.losses(values, batch, criterion)
        return Outputs(values, losses, hidden)


def whole_train(task: Task, method: Weighting) -> Samples:
    """The whole training set, or a message that says how to give it."""
    if task.train is None:
        raise UsageError(
            f"train: {method.name} weighs the whole training set beforehand; "
            "give Objective(…, train=…)"
        )
    return task.train


def _pieces(samples: Samples, rows: Tensor, network: nn.Module | None = None) -> Iterator[Batch]:
    parameter = None if network is None else next(network.parameters(), None)
    for index in rows.split(PIECE):
        inputs, targets = samples.take(index)
        batch = Batch(inputs, targets, index)
        yield batch if parameter is None else batch.to(parameter.device)
