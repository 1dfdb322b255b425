"""Training in steps, for estimators: a schedule that suits the number of samples."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, cos, pi

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diw.errors import RunError
from diw.metrics import effective_sample_size
from diw.objective import Objective
from diw.seeding import derive, torch_generator
from diw.step.batch import Batch

LEAST_STEPS = 300
"""A network needs this many steps, however few samples there are."""
PASSES = 30
"""Passes over a training set that is large enough for them."""
PARTS = 20
"""A small training set counts several passes as an epoch: there are at most so many epochs of
warm-up, history and remembered weights."""


@dataclass(frozen=True)
class Schedule:
    """How a network is trained: AdamW, mean losses, a learning rate that falls to zero."""

    samples: int
    steps: int
    batch_size: int
    learning_rate: float
    weight_decay: float

    @classmethod
    def of(
        cls,
        samples: int,
        *,
        steps: int | None,
        batch_size: int,
        learning_rate: float,
        weight_decay: float,
    ) -> "Schedule":
        """A schedule for a number of samples.

        Args:
            samples: n, of the training set.
            steps: Steps of the optimiser; None for 30 passes, but 300 steps at least.
            batch_size: Samples per step, at most n.
            learning_rate: At the start; a half cosine takes it to zero.
            weight_decay: Of AdamW.
        """
        batch_size = min(batch_size, samples)
        per_pass = ceil(samples / batch_size)
        chosen = max(LEAST_STEPS, PASSES * per_pass) if steps is None else steps
        return cls(samples, chosen, batch_size, learning_rate, weight_decay)

    @property
    def steps_per_epoch(self) -> int:
        """A pass over the training set, or a twentieth of the training if that is longer."""
        return max(ceil(self.samples / self.batch_size), ceil(self.steps / PARTS))

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.learning_rate * (1 + cos(pi * step / self.steps)) / 2


@dataclass(frozen=True)
class Fitted:
    """What a training leaves besides the network."""

    weights: NDArray[np.float64]
    """(n,) the mean weight of each sample over the second half of the training."""
    history: list[dict[str, float]]
    """An entry per epoch: the mean loss, and the effective sample size of the weights."""


def fit_in_steps(
    model: nn.Module,
    objective: Objective,
    take: Callable[[Tensor], tuple[Tensor, Tensor]],
    schedule: Schedule,
    seed: int,
) -> Fitted:
    """Train a network on its objective.

    Args:
        model: The network.
        objective: Its objective, with mean losses.
        take: (row numbers) → inputs and targets of these training samples.
        schedule: How long and how fast.
        seed: Decides the order of the samples and whatever is random in the network.
    """
    objective.prepare()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay
    )
    weights, counts = torch.zeros(2, schedule.samples, dtype=torch.float64)
    history: list[dict[str, float]] = []
    losses: list[Tensor] = []
    sizes: list[float] = []
    model.train()
    torch.manual_seed(derive(seed, "fitting"))
    for step, index in enumerate(_batches(schedule, seed)):
        if step % schedule.steps_per_epoch == 0:
            objective.start_epoch(1 + step // schedule.steps_per_epoch)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        result = objective(Batch(*take(index), index))
        optimizer.zero_grad(set_to_none=True)
        result.loss.backward()
        optimizer.step()
        objective.after_step()
        losses.append(result.loss.detach())
        recorded = result.weights.recorded  # of a method that leaves samples out in turn
        used = result.weights.train if recorded is None else recorded
        used = torch.zeros(len(index)) if used is None else used.cpu()
        sizes.append(effective_sample_size(used.numpy()))
        if 2 * step >= schedule.steps:
            weights[index] += used
            counts[index] += 1
        if (step + 1) % schedule.steps_per_epoch == 0 or step + 1 == schedule.steps:
            history.append(_entry(len(history) + 1, losses, sizes))
            losses, sizes = [], []
    model.eval()
    mean = torch.where(counts > 0, weights / counts.clamp(min=1), 1.0)
    return Fitted(mean.numpy(), history)


def _batches(schedule: Schedule, seed: int) -> "list[Tensor]":
    """The row numbers of each step: pass after pass, in batches of nearly one size."""
    per_pass = ceil(schedule.samples / schedule.batch_size)
    batches: list[Tensor] = []
    while len(batches) < schedule.steps:
        generator = torch_generator(seed, "order", len(batches))
        batches += torch.randperm(schedule.samples, generator=generator).tensor_split(per_pass)
    return batches[: schedule.steps]


def _entry(epoch: int, losses: list[Tensor], sizes: list[float]) -> dict[str, float]:
    loss = float(torch.stack(losses).mean())
    if not np.isfinite(loss):
        raise RunError(f"learning_rate: the loss is {loss} in epoch {epoch}; lower it")
    return {"epoch": epoch, "loss": loss, "ess": float(np.mean(sizes))}
