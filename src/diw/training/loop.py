"""The training loop: mini-batches, steps and epochs of one network, and nothing on disk.

Runs are trained by it (`diw.training.recorded`), and so are the estimators of scikit-learn and the
trials that say how long a run will take.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diw.errors import RunError, UsageError
from diw.metrics import weight_summary
from diw.objective import Objective, Result
from diw.runs import Recipe, Row
from diw.seeding import derive, torch_generator
from diw.step.batch import Batch
from diw.step.rows import Rows
from diw.step.step import Horizon
from diw.step.world import LOCAL, World

WARM_UP = 2
TRIAL = 12
SECONDS = 2.0
"""A trial ends, after its warm-up, with this many steps or when so many seconds have passed."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch leaves.

    Attributes:
        number: Counted from 1.
        row: Its metrics.
        weights: (n,) the weight of each training sample, NaN for those that no step used.
        losses: (n,) their losses in the training forward, before the step.
    """

    number: int
    row: Row
    weights: Tensor
    losses: Tensor


class Training:
    """One network that is trained on its objective.

    Everything random is decided by (seed, purpose, epoch), and everything that changes is in
    `state_dict`. So a resumed training ends bit for bit as an uninterrupted one does.

    Example:
        >>> training = Training(model, objective, rows, Recipe(epochs=5), seed=0)
        >>> for epoch in training.epochs():
        ...     print(epoch.row["train_loss"])
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        train: Rows,
        recipe: Recipe,
        seed: int,
        *,
        steps: int | None = None,
        world: World = LOCAL,
    ) -> None:
        """Set up the optimiser.

        Args:
            model: The network, on the device on which it is trained.
            objective: Its objective.
            train: The training samples.
            recipe: How it is trained.
            seed: Decides the order of the samples and what is random in the network.
            steps: Steps after which to end, where that is within the last epoch.
            world: The processes that train together: each has a part of every mini-batch. The
                result is that of one process, but for rounding and batch norm.
        """
        self.model = model
        self.objective = objective
        self.recipe = recipe
        self.epoch = 0
        self.optimizer = make_optimizer(recipe, model.parameters())
        self._train, self._seed, self._world = train, seed, world
        self._steps = steps
        self._check_shares()

    def epochs(self) -> Iterator[Epoch]:
        """Train the epochs that are left, one each time the next one is asked for."""
        while self.epoch < self.recipe.epochs:
            yield self.train_epoch(self.epoch + 1)

    def train_epoch(self, number: int) -> Epoch:
        """Train for one epoch, counted from 1."""
        rank = self._world.rank
        purpose = ("epoch", number, rank) if rank else ("epoch", number)
        torch.manual_seed(derive(self._seed, *purpose))  # dropout and the like
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate(number)
        self.objective.start_epoch(number)
        self.model.train()
        weights, losses = torch.full((2, len(self._train)), torch.nan)
        tally = Tally()
        left = None if self._steps is None else self._steps - self.objective.t
        for batch in islice(self.batches(number), left):
            try:
                result = self.step(batch)
            except RunError as error:
                place = f"epoch {number}, step {tally.steps + 1}"
                raise type(error)(f"{place}: {error}") from error
            if batch is not None and result.weights.train is not None:
                assert batch.index is not None
                recorded = result.weights.recorded
                recorded = result.weights.train if recorded is None else recorded
                assert result.losses is not None
                places, _ = self._world.gather(batch.index)
                weights[places] = self._world.gather(recorded)[0].to("cpu", torch.float32)
                losses[places] = self._world.gather(result.losses)[0].to("cpu", torch.float32)
            tally.add(result.loss.detach(), result.metrics)
        tally.loss = self._world.add(torch.as_tensor(tally.loss)) / self._world.size
        row = tally.row(self._samples_per_epoch, self.recipe.reduction)
        if not np.isfinite(row["train_loss"]):
            raise RunError(
                f"the loss is {row['train_loss']} in epoch {number} from step "
                f"{tally.first_bad_step} on; lower the learning rate, now {self.recipe.lr:g}"
            )
        self.epoch = number
        return Epoch(number, row | weight_metrics(weights), weights, losses)

    def batches(self, epoch: int) -> Iterator[Batch | None]:
        """The mini-batches of an epoch; None for each step of a method without training data.

        Their order depends on the seed and the epoch alone, so all methods see the same batches.
        """
        rows, passes = len(self._train), self.recipe.passes
        per_pass = ceil(rows / self.recipe.batch_size)
        if not self._weighs:
            steps = self.objective.steps_per_trusted_pass if passes is None else passes * per_pass
            yield from [None] * steps
            return
        device = next(self.model.parameters()).device
        for turn in range(passes or 1):
            purpose = ("training order", epoch, turn) if turn else ("training order", epoch)
            order = torch.randperm(rows, generator=torch_generator(self._seed, *purpose))
            for index in order.split(self.recipe.batch_size):
                index = self._world.share(index)
                inputs, targets = self._train.take(index)
                yield Batch(inputs, targets, index).to(device)

    def step(self, batch: Batch | None) -> Result:
        """One step of the optimiser on the weighted loss of a mini-batch."""
        self.optimizer.zero_grad(set_to_none=True)
        result = self.objective(batch)
        with self._world.together():
            result.loss.backward()
        self.optimizer.step()
        self.objective.after_step()
        return result

    def trial_seconds(self) -> float:
        """Seconds per step, after some that warm up; what is trained here is thrown away."""
        self.objective.prepare()
        self.objective.start_epoch(2)  # the first epoch of DIW has no weights to find
        self.model.train()
        batches = (batch for epoch in count(2) for batch in self.batches(epoch))
        times: list[float] = []
        while len(times) < WARM_UP + TRIAL and sum(times[WARM_UP:]) < SECONDS:
            started = time.perf_counter()
            self.step(next(batches))
            times.append(time.perf_counter() - started)
        return sum(times[WARM_UP:]) / max(1, len(times) - WARM_UP)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed training needs."""
        return {
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "objective": self.objective.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.objective.load_state_dict(state["objective"])
        self.epoch = state["epoch"]

    @property
    def _weighs(self) -> bool:
        """Whether the training samples are used, and have weights."""
        return self.objective.method.trains_on != "trusted"

    @property
    def _samples_per_epoch(self) -> int:
        rows = len(self._train if self._weighs else self.objective.task.trusted)
        return rows * (self.recipe.passes or 1)

    def _check_shares(self) -> None:
        """Each process needs a sample of every mini-batch, also of a pass's last one."""
        size, rows = self.recipe.batch_size, len(self._train)
        smallest = min(size, rows % size or size)
        if smallest < self._world.size:
            raise UsageError(
                f"batch_size: a mini-batch of {smallest} rows is too small for {self._world.size} "
                "processes; choose another"
            )


def horizon(recipe: Recipe, rows: int) -> Horizon:
    """How long a training of `rows` samples is, as methods are told."""
    per_pass = ceil(rows / recipe.batch_size)
    return Horizon(recipe.epochs * (recipe.passes or 1) * per_pass, per_pass, recipe.batch_size)


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

    def add(self, loss: Tensor, metrics: Mapping[str, float]) -> None:
        """Count a step with its loss and the method's metrics."""
        self.steps += 1
        self.loss = self.loss + loss
        self._finite = self._finite + torch.isfinite(self.loss)
        for name, value in metrics.items():
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
