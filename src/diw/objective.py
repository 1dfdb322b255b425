"""The objective: what every caller calls, from a plain loop to the experiments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn

from diw.brief import in_a_line
from diw.config import DEFAULT_METHOD
from diw.deprecated import Renamed, warn
from diw.errors import UsageError
from diw.methods import make
from diw.methods.base import (
    Method,
    Task,
    check_needs,
    normalised,
    refuse_wrong_inputs,
)
from diw.runs.spec import TrustedDraw
from diw.step.batch import Batch, Criterion, ModelOutput, Weights, first_tensor
from diw.step.criteria import OfLogits, ToLogits, cross_entropy, logits_of
from diw.step.look import is_mode_free, unwrap
from diw.step.rows import Collate, TrustedStream, as_rows
from diw.step.step import Horizon, Step, StepContext
from diw.step.watch import Watch
from diw.step.world import LOCAL, Memory, World

Reduction = Literal["mean", "sum"]
Probe = Literal["auto", "shared", "separate"]
Unit = Literal["sample", "token"]
LoaderBatch = Batch | Sequence[Any] | Mapping[str, Any]
"""What a loader yields: see `Batch.of`."""
CHECKED = 100
"""Steps whose batches are checked for an index that means something else."""
TRUSTED_BATCH = 256
"""The largest trusted batch of a step, unless its loader says otherwise."""


@dataclass(frozen=True)
class Result:
    """What one call returns: back-propagate `loss`; the rest is for inspection."""

    __repr__ = in_a_line

    loss: Tensor
    outputs: ModelOutput
    """The network's output for the training batch; None if the method does not run it."""
    weights: Weights
    """The weights used: mean one over the batch (unless the method says otherwise), or all zero.
    They stand for the tensor `weights.train` (n,) wherever one is expected."""
    losses: Tensor | None = None
    """(n,) the unweighted losses of the given labels, detached; None if the batch was not run."""

    diagnostics = Renamed("metrics")

    @property
    def metrics(self) -> Mapping[str, float]:
        """The method's numbers of this step."""
        return self.weights.metrics


class TaskParts(TypedDict, total=False):
    """What an `Objective` makes a `Task` of, besides the trusted samples; see `Task`.

    Data sets are given in any form that the trusted samples may have. `collate` makes a batch of
    samples, where `trusted` is a data set.
    """

    train: Any
    trusted_index: Any
    trusted_given: Any
    true_weights: Any
    criterion: Criterion | None
    trusted_criterion: Criterion | None
    horizon: Horizon
    pretrain: Callable[[int], nn.Module] | None
    collate: Collate | None
    task: Task
    """The third argument, as it was called."""


class Objective:
    """A weighted loss for one network, one method and one trusted set.

    loss = Σ_i w_i ℓ_i / n   (`reduction="mean"`), or Σ_i w_i ℓ_i (`"sum"`, the paper's experiments)

    It is not an `nn.Module` and does not register the network, so it may live
    inside one. Called under `torch.no_grad()` it is the plain, unweighted loss
    and moves no state.

    Example:
        >>> objective = diw.Objective(model, "diw", trusted=(x_trusted, y_trusted))
        >>> for epoch in range(1, epochs + 1):
        ...     objective.start_epoch(epoch)
        ...     for inputs, targets in loader:
        ...         optimizer.zero_grad()
        ...         objective((inputs, targets)).loss.backward()
        ...         optimizer.step()
        ...         objective.after_step()
    """

    def __init__(
        self,
        model: nn.Module,
        method: str | Method = DEFAULT_METHOD,
        trusted: Any = None,
        *,
        outputs_to_logits: ToLogits | None = None,
        unit: Unit = "sample",
        reduction: Reduction = "mean",
        probe: Probe = "auto",
        trusted_batch_size: int | None = None,
        trusted_draw: TrustedDraw = "passes",
        seed: int = 0,
        world: World = LOCAL,
        **parts: Unpack[TaskParts],
    ):
        """Set up; a method that pretrains or weighs the whole training set does so at `prepare`.

        Args:
            model: The network being trained, wrapped or not.
            method: A method's name or an instance. One that is given by name suits itself to the
                length of the training, where that is known.
            trusted: The trusted samples: (inputs, targets) tensors, a mapping of tensors, a
                map-style data set of pairs or mappings, or a `DataLoader` over one. Or a `Task`,
                which holds the data and the criteria.
            outputs_to_logits: (what the network gives) → what the criterion takes. Without it, an
                output that has `logits` is replaced by them.
            unit: What gets a weight: each `"sample"`, also if it is a sequence, or each `"token"`
                whose label is not -100.
            reduction: Whether the weighted losses are averaged or summed.
            probe: `"auto"` looks at the network in evaluation mode, and uses the training forward
                for it where that is provably the same; `"shared"` and `"separate"` decide it.
            trusted_batch_size: The largest trusted batch of a step; 256, or that of its loader.
            trusted_draw: `"passes"` over the trusted set, or each batch `"afresh"` from all of it.
            seed: Decides the trusted batches and random weights.
            world: `diw.Distributed()` weighs the batches of all processes together; without it,
                each process weighs its own.
            **parts: The parts of a `Task`: `criterion` (cross entropy by default) and
                `trusted_criterion`; `train`, the whole training set, for methods that weigh it
                beforehand; `trusted_index`, the places of the trusted samples in it, as batches
                give them; `trusted_given`, their labels before they were checked; `true_weights`
                for `truth`; `pretrain`, (epochs) → a network trained without weights; `collate`.
        """
        for name, value, choices in (
            ("reduction", reduction, ("mean", "sum")),
            ("probe", probe, ("auto", "shared", "separate")),
            ("trusted_draw", trusted_draw, ("passes", "afresh")),
            ("unit", unit, ("sample", "token")),
        ):
            if value not in choices:
                among = ", ".join(f'"{choice}"' for choice in choices[:-1])
                raise UsageError(f'{name}: must be {among} or "{choices[-1]}", not {value!r}')
        self.method = make(method) if isinstance(method, str) else method
        self._by_name = isinstance(method, str)
        if "task" in parts:
            warn("Objective(task=…)", "the third argument, Objective(model, method, task)")
            if trusted is not None:
                raise UsageError("trusted: the task has it already; give trusted or task, not both")
            trusted = parts.pop("task")
        own_loop = not isinstance(trusted, Task)
        if own_loop:
            to_logits = (outputs_to_logits or logits_of) if unit == "sample" else None
            task = _make_task(trusted, to_logits, parts)
        else:
            for name, value in {**parts, "outputs_to_logits": outputs_to_logits}.items():
                if value is not None:
                    raise UsageError(
                        f"{name}: the task has it already; give {name} or task, not both"
                    )
            task = trusted
        self.task: Task = task
        self.reduction: Reduction = reduction
        self.epoch = 0  # until start_epoch: the loop has no epochs
        self.t = 0
        self.network = network = unwrap(model)
        """The network being trained, without wrappers: what methods look at."""
        self._model = model
        self._unit: Unit = unit
        size = trusted_batch_size
        if size is None:
            size = int(getattr(trusted, "batch_size", None) or TRUSTED_BATCH)
        self._stream = TrustedStream(
            as_rows(task.trusted), size, seed, world, afresh=trusted_draw == "afresh"
        )
        self._context = StepContext(
            network=network,
            criterion=task.criterion_of(trusted=False),
            trusted_criterion=task.criterion_of(trusted=True),
            tap=self.method.tap(network),
            shared=probe == "shared" or (probe == "auto" and is_mode_free(network)),
            memory=Memory(world),
            seed=seed,
            to_logits=outputs_to_logits or logits_of,
            world=world,
        )
        self._world = world
        if unit == "token" and self._context.tap is not None:
            raise UsageError(
                f"unit: {self.method.name} matches hidden outputs, one for each sequence; "
                "use a method that matches losses"
            )
        self.latest: Weights | None = None
        """The weights of the latest call, for logging."""
        self._prepared = False
        self._watch = Watch(
            self.method.name, self.method.fields(), health=own_loop and world.rank == 0
        )
        if self.method.by_losses and task.trusted_index is None and world.size == 1:
            self._watch.look_for(as_rows(task.trusted))
        if own_loop and task.trusted_index is not None and len(task.trusted_index):
            self._watch.look_for_places(task.trusted_index)
        self._adapt()

    def for_training(self, total_steps: int, steps_per_pass: int | None = None) -> Self:
        """Say how long the training goes on; a method given by name suits its warm-up to it.

        Args:
            total_steps: Optimiser steps in all.
            steps_per_pass: Those of one pass over the training data.
        """
        horizon = replace(self.task.horizon, steps=total_steps, steps_per_pass=steps_per_pass)
        self.task = replace(self.task, horizon=horizon)
        self._adapt()
        return self

    def _adapt(self) -> None:
        if self._by_name:
            self.method.adapt(self.task.horizon)

    @property
    def steps_per_trusted_pass(self) -> int:
        """How many steps see each trusted sample once: an epoch of a method that trains on them."""
        return self._stream.batches_per_pass

    def prepare(self) -> None:
        """Let the method pretrain, or weigh the whole training set; once, before the first step.

        The first call does it by itself. A method may set the network's initial
        parameters here, so call it before the optimiser copies them (most do not).
        """
        if not self._prepared:
            check_needs(self.method, self.task, self._world.size)
            start = self.method.prepare(self.task)
            if start is not None:
                self.network.load_state_dict(start)
            self._prepared = True
            index = self.task.trusted_index
            if self.method.by_losses and index is not None and not len(index):
                self._watch.not_trained_on("are not trained on")

    def __call__(
        self,
        batch: LoaderBatch | None,
        model: nn.Module | None = None,
        outputs: ModelOutput = None,
    ) -> Result:
        """The weighted loss of one training batch.

        Args:
            batch: (inputs, targets), (inputs, targets, index), a mapping of the network's
                arguments with `labels` and perhaps `index`, or a `Batch`; None for a method that
                trains on trusted data alone.
            model: The host's wrapped network (DDP) for the training forward.
            outputs: The training forward, where the host has run it already.
        """
        if not torch.is_grad_enabled():
            return self._plain(batch, model, outputs)
        step = self.step(batch, model, outputs, fits=True)
        weights = self._weigh(step)
        self._watch.see(step, weights)
        total: Tensor | None = None
        count = 0
        # Ones are not multiplied away: w ℓ = ℓ exactly, so uniform weights are plain training.
        if weights.train is not None:
            losses = step.trained_losses(self.method.losses, weights.targets)
            if not losses.isfinite().all():
                refuse_wrong_inputs(step.train, self.method.name)
                self._watch.not_finite(step)
            total = (weights.train * losses).sum()
            count = len(step.train)
        if weights.trusted is not None:
            trusted = step.trusted_loss(weights.trusted)
            total = trusted if total is None else total + trusted
            count = count or len(step.trusted)  # beside training samples: in their scale
        if total is None:
            raise UsageError(f"method: {self.method.name} weighs neither training nor trusted data")
        if self._world.size > 1:  # gradients are averaged over processes afterwards
            total = total * self._world.size
            count = float(self._world.add(torch.tensor(float(count))))
        loss = total / count if self.reduction == "mean" else total
        if weights.train is None:
            return Result(loss, None, weights)
        forward = step.train_forward
        return Result(loss, forward.values, weights, forward.losses.detach())

    def weigh(
        self,
        batch: LoaderBatch,
        model: nn.Module | None = None,
        outputs: ModelOutput = None,
    ) -> Weights:
        """The weights alone, for a risk of one's own: several heads, a regulariser, other labels.

        Args:
            batch: As in a call.
            model: As in a call.
            outputs: As in a call.
        """
        return self._weigh(self.step(batch, model, outputs))

    def step(
        self,
        batch: LoaderBatch | None,
        model: nn.Module | None = None,
        outputs: ModelOutput = None,
        fits: bool = False,
    ) -> Step:
        """One training step as a method sees it, for looking at losses, gradients or the memory.

        Args:
            batch: As in a call.
            model: As in a call.
            outputs: As in a call.
            fits: Whether the training forward is run in any case, as in a call, so that looking at
                the training batch may use it.
        """
        self.prepare()
        if batch is None:
            if self.method.trains_on != "trusted":
                raise UsageError(f"batch: {self.method.name} needs a training batch")
            return self._step(Batch(torch.empty(0), None), model, outputs, fits)
        taken = self._batch(batch)
        if self.t < CHECKED:
            taken.check_index(None if self.task.train is None else len(self.task.train))
        if taken.index is None and "index" in self.method.needs:
            raise UsageError(
                f"batch: {self.method.name} has to know each sample; yield (inputs, targets, "
                "index), index being the sample's place in the training set"
            )
        return self._step(taken, model, outputs, fits)

    def start_epoch(self, epoch: int) -> None:
        """Start epoch `epoch`, from 1; warm-up, random weights and noise depend on it."""
        if epoch < 1:
            raise UsageError(f"epoch: epochs count from 1, and this is {epoch}")
        self._watch.start_epoch(epoch)
        self.epoch = epoch

    def after_step(self) -> None:
        """Call this after each optimiser step; once per step, also with gradient accumulation."""
        self.t += 1
        self.method.after_step()

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs to go on bit for bit, besides network and optimiser."""
        return {
            "name": self.method.name,
            "epoch": self.epoch,
            "t": self.t,
            "prepared": self._prepared,
            "stream": self._stream.state_dict(),
            "memory": self._context.memory.state_dict(),
            "method": self.method.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave; the state of another method is refused."""
        if state.get("name") != self.method.name:
            raise UsageError(
                f"state: is of the method {state.get('name')}, and not of {self.method.name}"
            )
        self.epoch, self.t = state["epoch"], state["t"]
        self._prepared = state["prepared"]
        self._stream.load_state_dict(state["stream"])
        self._context.memory.load_state_dict(state["memory"])
        self.method.load_state_dict(state["method"])

    def _batch(self, batch: LoaderBatch, name: str = "batch") -> Batch:
        taken = Batch.of(batch, name)
        return taken.by_token(name) if self._unit == "token" else taken

    def _step(
        self, train: Batch, model: nn.Module | None, outputs: ModelOutput, fits: bool = False
    ) -> Step:
        return Step(
            self._context,
            train,
            self._draw_trusted,
            epoch=self.epoch,
            t=self.t,
            horizon=self.task.horizon,
            model=self._model if model is None else model,
            outputs=outputs,
            fits=fits,
        )

    def _weigh(self, step: Step) -> Weights:
        raw = self.method.weigh(step)
        if raw.train is None:
            return raw
        every, mine = self._world.gather(raw.train.detach())
        every = normalised(every) if raw.normalise else every
        train = every[mine]
        metrics = {**raw.metrics, "vanished": float(not every.any())}
        self.latest = replace(raw, train=train, metrics=metrics)
        return self.latest

    def _draw_trusted(self) -> Batch:
        batch = self._batch(self._stream.draw(), "trusted")
        parameter = next(self.network.parameters(), None)
        device = torch.device("cpu") if parameter is None else parameter.device
        return batch if first_tensor(batch.inputs).device == device else batch.to(device)

    def _plain(self, batch: Any, model: nn.Module | None, outputs: ModelOutput) -> Result:
        forward = self._step(self._batch(batch), model, outputs).train_forward
        losses = forward.losses
        loss = losses.mean() if self.reduction == "mean" else losses.sum()
        return Result(loss, forward.values, Weights(torch.ones_like(losses)), losses.detach())


def _make_task(trusted: Any, to_logits: ToLogits | None, parts: TaskParts) -> Task:
    """The task of a loop that hands its parts over.

    Args:
        trusted: The trusted samples in any usual form.
        to_logits: What the criteria look at; None where tokens are picked out of it before.
        parts: All else.
    """
    if trusted is None:
        raise UsageError("trusted: give the trusted samples: trusted=(inputs, targets)")
    named: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
    rows = as_rows(trusted, collate=named.pop("collate", None))
    if "train" in named:
        named["train"] = as_rows(named["train"], "train")
    named.setdefault("criterion", cross_entropy)
    for name in {"criterion", "trusted_criterion"} & named.keys():
        named[name] = OfLogits(named[name], to_logits) if to_logits else named[name]
    unknown = named.keys() - Task.__dataclass_fields__.keys()
    if unknown:
        raise TypeError(f"Objective got an unexpected keyword argument {min(unknown)!r}")
    return Task(rows, **named)
