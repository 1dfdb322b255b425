"""The training loop: recorded epoch by epoch, and resumed bit for bit."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

from diw.data.split import Split
from diw.errors import RunError, UsageError, one_line
from diw.files import replacing
from diw.methods import Method, Task, make
from diw.objective import Objective, Result
from diw.runs import PRETRAINING, Journal, Recipe, Row, Run
from diw.seeding import derive, torch_generator
from diw.step.batch import Batch
from diw.step.step import Horizon
from diw.step.world import LOCAL, World
from diw.training.checkpoint import State, resume, save_checkpoint
from diw.training.evaluate import Selection, evaluate
from diw.training.observers import Observer
from diw.training.optimizing import Tally, make_optimizer, weight_metrics


@dataclass
class Training:
    """One network, trained by one method on one split, recorded in one run.

    Everything random is decided by (seed, purpose, epoch), and everything that
    changes is in the checkpoint written after each epoch. So a resumed run ends
    bit for bit as an uninterrupted one does.
    """

    split: Split
    make_model: Callable[[], nn.Module]
    """Makes the network with its initial parameters, the same each time."""
    method: Method
    recipe: Recipe
    run: Run
    seed: int
    device: torch.device
    observers: Sequence[Observer] = ()
    """Called with the network after each epoch and at the end; they leave it unchanged."""
    world: World = LOCAL
    """The processes that train together: each has a part of every mini-batch, and the first one
    keeps the records. The result is that of one process, but for rounding and batch norm."""

    def __post_init__(self) -> None:
        self._check_shares()
        self.model = self.new_model()
        self.objective = Objective(
            self.world.host(self.model),
            self.method,
            self._task(),
            reduction=self.recipe.reduction,
            trusted_batch_size=self.recipe.trusted_batch_size,
            trusted_draw=self.recipe.trusted_draw,
            seed=self.seed,
            world=self.world,
        )
        self.optimizer = make_optimizer(self.recipe, self.model.parameters())
        self.seconds = 0.0
        self.epoch = 0
        held_out, patience = self.split.selection, self.recipe.patience
        self.selection = None
        if held_out is not None and patience is not None:
            self.selection = Selection(held_out, patience)

    def new_model(self) -> nn.Module:
        """A new network on the device, in the memory format that suits its convolutions."""
        model = self.make_model().to(self.device)
        if len(self.split.train.shape) == 3:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return model

    def finish(self) -> None:
        """Train the remaining epochs and close the records; a finished run is left alone."""
        if self.world.agreed(self.run.finished):
            return
        journal = None
        if self.world.rank == 0:
            self.run.write_samples(**_known(self.split))
            journal = Journal(self.run.folder, self.recipe.epochs, len(self.split.train))
        with torch.random.fork_rng(devices=_cuda(self.device)):
            self._resume(journal)
            self.objective.prepare()
            for epoch in range(self.epoch + 1, self.recipe.epochs + 1):
                if self.selection is not None and self.world.agreed(self.selection.over):
                    break
                started = time.perf_counter()
                row, weights, losses = self.train_epoch(epoch)
                watched = self.selection.after_epoch(self.model) if self.selection else {}
                self.epoch = epoch
                if journal is not None:
                    row |= evaluate(self.model, self.split.test).as_row() | watched
                    self.seconds += time.perf_counter() - started
                    self._record(journal, row, weights, losses)
            if self.selection is not None:
                self.model.load_state_dict(self.selection.kept)
            if journal is not None:
                for observer in self.observers:
                    observer.at_end(self.model, self.run)
        if journal is not None:
            counts = evaluate(self.model, self.split.test).confusion
            self.run.write_arrays("confusion", counts=counts)
            self._write_model()
            journal.close()
            self.run.finish()

    def _record(self, journal: Journal, row: Row, weights: Tensor, losses: Tensor) -> None:
        """Add an epoch to the run's records, and make its end the place to resume from."""
        for observer in self.observers:  # not timed: no cost of the method
            row |= observer.after_epoch(self.model)
        row = {"epoch": self.epoch, **row, "seconds": round(self.seconds, 3)}
        ledgers = (weights.numpy(), losses.numpy()) if self._weighs else ()
        journal.append(row, *ledgers)
        self._save(journal)

    def train_epoch(self, epoch: int) -> tuple[Row, Tensor, Tensor]:
        """Train for one epoch, counted from 1, without recording it.

        Returns:
            The epoch's metrics, and the weight (n,) and the loss (n,) of each training sample, NaN
            for those that no step used.
        """
        rank = self.world.rank
        purpose = ("epoch", epoch, rank) if rank else ("epoch", epoch)
        torch.manual_seed(derive(self.seed, *purpose))  # dropout and the like
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate(epoch)
        self.objective.start_epoch(epoch)
        self.model.train()
        weights, losses = torch.full((2, len(self.split.train)), torch.nan)
        tally = Tally()
        for batch in self.batches(epoch):
            try:
                result = self.step(batch)
            except RunError as error:
                place = f"{self.run.folder}: epoch {epoch}, step {tally.steps + 1}"
                raise type(error)(f"{place}: {error}{self._kept}") from error
            if batch is not None and result.weights.train is not None:
                assert batch.index is not None
                recorded = result.weights.recorded
                recorded = result.weights.train if recorded is None else recorded
                assert result.losses is not None
                places, _ = self.world.gather(batch.index)
                weights[places] = self.world.gather(recorded)[0].to("cpu", torch.float32)
                losses[places] = self.world.gather(result.losses)[0].to("cpu", torch.float32)
            tally.add(result.loss.detach(), result.metrics)
        tally.loss = self.world.add(torch.as_tensor(tally.loss)) / self.world.size
        row = tally.row(self._samples_per_epoch, self.recipe.reduction)
        if not np.isfinite(row["train_loss"]):
            since = f"in epoch {epoch} from step {tally.first_bad_step} on"
            raise RunError(
                f"{self.run.folder}: the loss is {row['train_loss']} {since}; lower the learning "
                f"rate, now {self.recipe.lr:g}{self._kept}"
            )
        return row | weight_metrics(weights), weights, losses

    def batches(self, epoch: int) -> Iterator[Batch | None]:
        """The mini-batches of an epoch; None for each step of a method without training data.

        Their order depends on the seed and the epoch alone, so all methods see the same batches.
        """
        rows, passes = len(self.split.train), self.recipe.passes
        if not self._weighs:
            yield from [None] * (
                self.objective.steps_per_trusted_pass
                if passes is None
                else passes * ceil(rows / self.recipe.batch_size)
            )
            return
        for turn in range(passes or 1):
            purpose = ("training order", epoch, turn) if turn else ("training order", epoch)
            order = torch.randperm(rows, generator=torch_generator(self.seed, *purpose))
            for index in order.split(self.recipe.batch_size):
                index = self.world.share(index)
                inputs, targets = self.split.train.take(index)
                yield Batch(inputs.to(self.device), targets.to(self.device), index)

    def step(self, batch: Batch | None) -> Result:
        """One step of the optimiser on the weighted loss of a mini-batch."""
        self.optimizer.zero_grad(set_to_none=True)
        result = self.objective(batch)
        with self.world.together():
            result.loss.backward()
        self.optimizer.step()
        self.objective.after_step()
        return result

    def _task(self) -> Task:
        """The data as the method sees them before the first step."""
        steps = (self.recipe.passes or 1) * ceil(len(self.split.train) / self.recipe.batch_size)
        return Task(
            self.split.trusted,
            train=self.split.train,
            trusted_index=self.split.trusted_places,
            true_weights=self.split.true_weights,
            horizon=Horizon(
                steps=self.recipe.epochs * steps,
                steps_per_pass=steps,
                batch_size=self.recipe.batch_size,
            ),
            pretrain=self._pretrain,
        )

    def _pretrain(self, epochs: int) -> nn.Module:
        """A network trained without weights for `epochs` epochs, in a resumable run of its own.

        It starts from the same initial parameters, with other mini-batches.
        """
        run = Run(self.run.folder / PRETRAINING)
        if self.world.rank == 0:
            run = Run.create(run.folder, {**self.run.spec_json, "pretraining": epochs})
        before = Training(
            split=self.split,
            make_model=self.make_model,
            method=make("uniform"),
            recipe=replace(self.recipe, epochs=epochs, patience=None),
            run=run,
            seed=derive(self.seed, "pretraining"),
            device=self.device,
            world=self.world,
        )
        before.finish()
        if self.world.rank == 0:
            parameters = before.run.verified("model.safetensors")
            load_model(before.model, str(parameters), device=str(self.device))
        before.model.load_state_dict(self.world.agreed(before.model.state_dict()))
        return before.model

    @property
    def _kept(self) -> str:
        """What is left after a failure, in words."""
        return f"; the checkpoint of epoch {self.epoch} is kept" if self.epoch else ""

    @property
    def _weighs(self) -> bool:
        """Whether the training samples are used, and have weights."""
        return self.method.trains_on != "trusted"

    @property
    def _samples_per_epoch(self) -> int:
        rows = len(self.split.train if self._weighs else self.split.trusted)
        return rows * (self.recipe.passes or 1)

    def _write_model(self) -> None:
        with replacing(self.run.model) as temporary:
            try:
                save_model(self.model, str(temporary))
            except SafetensorError as error:  # its way to report a full disk
                raise RunError(f"{self.run.model}: cannot be written: {one_line(error)}") from None

    def _save(self, journal: Journal) -> None:
        state = {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "objective": self.objective.state_dict(),
            "records": journal.marks,
        }
        if self.selection is not None:
            state["selection"] = self.selection.state_dict()
        save_checkpoint(self.run, state)

    def _resume(self, journal: Journal | None) -> None:
        """Go on from the newest sound checkpoint, which the first process reads for all."""
        found: State | None = None

        def take(state: State) -> None:
            nonlocal found
            assert journal is not None
            marks = state.get("records")
            journal.cut(journal.marks_of_epochs(state["epoch"]) if marks is None else marks)
            self._load(state)
            found = state

        if journal is not None:
            resume(self.run, self.device, take)
            if not self.epoch:
                journal.cut({})
        found = self.world.agreed(found)
        if journal is None and found is not None:
            self._load(found)

    def _load(self, state: State) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.objective.load_state_dict(state["objective"])
        if self.selection is not None:
            self.selection.load_state_dict(state["selection"])
        self.epoch, self.seconds = state["epoch"], state["seconds"]

    def _check_shares(self) -> None:
        """Each process needs a sample of every mini-batch, also of a pass's last one."""
        size, rows = self.recipe.batch_size, len(self.split.train)
        smallest = min(size, rows % size or size)
        if smallest < self.world.size:
            raise UsageError(
                f"batch_size: a mini-batch of {smallest} rows is too small for {self.world.size} "
                "processes; choose another"
            )


def _known(split: Split) -> dict[str, NDArray[Any]]:
    known = {
        "targets": split.train.targets,
        "flipped": split.flipped,
        "true_labels": split.true_labels,
        "true_weights": split.true_weights,
    }
    return {name: value.numpy() for name, value in known.items() if value is not None}


def _cuda(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
