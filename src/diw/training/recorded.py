"""A run from its spec: claimed, resumed, trained, scored and sealed.

A run is an idempotent unit of work that one process at a time takes up. A killed one goes on where
its last checkpoint was written, and ends bit for bit as it would have without the kill.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from diw.data.split import Split
from diw.errors import RunError, UsageError, one_line
from diw.files import replacing
from diw.methods import Method, Task, make
from diw.models import default_model, make_model
from diw.objective import Objective
from diw.runs import PRETRAINING, Recipe, Row, Run, RunSpec, Writer, claim, holding
from diw.runs.sources import Source
from diw.seeding import derive
from diw.step.world import LOCAL, World
from diw.training.loop import Training, horizon
from diw.training.scores import Scores, Selection, evaluate

Work = Callable[[RunSpec, Path], Any]
"""What is done for a spec and the folder of all runs, such as `execute`; other processes can
import it."""


def with_method(spec: RunSpec, name: str, fields: Mapping[str, Any] | None = None) -> RunSpec:
    """The same setting with another method: its canonical name and all of its fields.

    `name` may be an alias; fields that are not given have their defaults.
    """
    method = make(name, fields)
    return replace(spec, method=method.name, method_fields=method.fields())


def execute(spec: RunSpec, folder: Path, timeout: float | None = None) -> Run:
    """Bring the run of `spec` below `folder` to its end, from wherever it stands.

    A finished run is left alone; an interrupted one goes on.

    Args:
        spec: What to run.
        folder: Where the runs' folders are.
        timeout: Seconds to wait for another process that works on this run; None waits for ever.
    """
    run = spec.run(folder)
    if run.finished:
        return run
    with holding(run.folder, timeout):
        claim(spec, run)
        train_run(spec, run)
    return run


def train_run(spec: RunSpec, run: Run, world: World = LOCAL) -> None:
    """Train what is left of the run of `spec`; this process holds its lock.

    Args:
        spec: What to run.
        run: Its folder.
        world: The processes that train it together: the first one holds the lock, and writes.
    """
    if world.agreed(run.finished):
        return
    if world.rank == 0:
        Run.create(run.folder, spec.as_json())
    recorded = make_recorded(spec, run, world)
    if world.rank == 0:
        source = Source.of(spec)
        source.describe(run, _model_name(spec, source))
    recorded.finish()


def make_recorded(spec: RunSpec, run: Run, world: World = LOCAL) -> "Recorded":
    """The training that `spec` describes, recorded in `run`; sets this process's threads."""
    torch.set_num_threads(spec.threads)
    source = Source.of(spec)
    split = source.split
    name, shape, classes = _model_name(spec, source), split.train.shape, split.train.num_classes
    return Recorded(
        split=split,
        make_model=lambda: make_model(name, shape=shape, num_classes=classes, seed=spec.seed),
        method=make(spec.method, spec.method_fields),
        recipe=spec.recipe,
        run=run,
        seed=spec.seed,
        device=torch.device(spec.device),
        observers=make_observers(spec.observe, split, spec.seed),
        world=world,
    )


def _model_name(spec: RunSpec, source: Source) -> str:
    return default_model(source.bundle) if spec.model == "auto" else spec.model


class Observer(Protocol):
    """Something that is shown the network after each epoch and at the end.

    A run names its observers in its spec (`observe`), so that the training loop collects what a
    figure needs and no figure needs a training of its own. Observing leaves no trace: the run ends
    bit for bit as an unobserved one does.
    """

    def after_epoch(self, model: nn.Module) -> Row:
        """Numbers that are added to the epoch's metrics."""
        ...

    def at_end(self, model: nn.Module, run: Run) -> None:
        """Record something about the final network."""
        ...


OBSERVERS: dict[str, Callable[[Split, int], Observer]] = {}
"""How to make an observer of a run's data and seed, by the name that a spec's `observe` may hold.

Whoever defines observers enters them here, in every process that trains.
"""


def make_observers(names: Iterable[str], split: Split, seed: int) -> list[Observer]:
    """The observers that a spec names.

    An observer that needs what the split does not know is refused here, before training.

    Args:
        names: From `OBSERVERS`.
        split: The run's data.
        seed: Decides which samples are observed.
    """
    for name in names:
        if name not in OBSERVERS:
            choices = ", ".join(OBSERVERS) or "none here"
            raise UsageError(f"observe: unknown {name!r}; choose from {choices}")
    return [OBSERVERS[name](split, seed) for name in names]


@dataclass
class Recorded:
    """One network, trained by one method on one split, recorded in one run."""

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
    """The processes that train together; the first one keeps the records."""

    def __post_init__(self) -> None:
        self.model = self.new_model()
        objective = Objective(
            self.world.host(self.model),
            self.method,
            self._task(),
            reduction=self.recipe.reduction,
            trusted_batch_size=self.recipe.trusted_batch_size,
            trusted_draw=self.recipe.trusted_draw,
            seed=self.seed,
            world=self.world,
        )
        train = self.split.train
        self.training = Training(
            self.model, objective, train, self.recipe, self.seed, world=self.world
        )
        self.seconds = 0.0
        self.scores: Scores | None = None
        """Of the network that would be kept now."""
        self.selection = None
        if self.split.selection is not None and self.recipe.patience is not None:
            self.selection = Selection(self.split.selection, self.recipe.patience)

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
        writer = None
        if self.world.rank == 0:
            self.run.write_samples(**_known(self.split))
            writer = Writer(self.run.folder, self.recipe.epochs, len(self.split.train))
        with torch.random.fork_rng(devices=_cuda(self.device)):
            self._resume(writer)
            self.training.objective.prepare()
            while self.training.epoch < self.recipe.epochs:
                if self.selection is not None and self.world.agreed(self.selection.over):
                    break
                self._train_epoch(writer)
            if self.selection is not None:
                self.model.load_state_dict(self.selection.kept)
            if writer is not None:
                for observer in self.observers:
                    observer.at_end(self.model, self.run)
        if writer is not None:
            # No scores are at hand where the last epoch was trained before a kill.
            scores = self.scores or evaluate(self.model, self.split.test)
            self.run.write_arrays("confusion", counts=scores.confusion)
            self._write_model()
            writer.close()
            self.run.finish()

    def _train_epoch(self, writer: Writer | None) -> None:
        """Train and score the next epoch, add it to the records, and make it a place to resume."""
        started = time.perf_counter()
        try:
            epoch = self.training.train_epoch(self.training.epoch + 1)
        except RunError as error:
            last = self.training.epoch
            kept = f"; the checkpoint of epoch {last} is kept" if last else ""
            raise type(error)(f"{self.run.folder}: {error}{kept}") from error
        watched = self.selection.after_epoch(self.model) if self.selection else {}
        if writer is None:
            return
        scores = evaluate(self.model, self.split.test)
        if self.selection is None or self.selection.improved:
            self.scores = scores
        row = epoch.row | scores.as_row() | watched
        self.seconds += time.perf_counter() - started
        for observer in self.observers:  # not timed: no cost of the method
            row |= observer.after_epoch(self.model)
        row = {"epoch": epoch.number, **row, "seconds": round(self.seconds, 3)}
        weighed = self.method.trains_on != "trusted"
        writer.append(row, *((epoch.weights.numpy(), epoch.losses.numpy()) if weighed else ()))
        writer.checkpoint(self._state())

    def _task(self) -> Task:
        """The data as the method sees them before the first step."""
        return Task(
            self.split.trusted,
            train=self.split.train,
            trusted_index=self.split.trusted_index,
            trusted_given=self.split.trusted_given,
            true_weights=self.split.true_weights,
            horizon=horizon(self.recipe, len(self.split.train)),
            pretrain=self._pretrain,
        )

    def _pretrain(self, epochs: int) -> nn.Module:
        """A network trained without weights for `epochs` epochs, in a resumable run of its own.

        It starts from the same initial parameters, with other mini-batches.
        """
        run = Run(self.run.folder / PRETRAINING)
        if self.world.rank == 0:
            run = Run.create(run.folder, self.run.spec_json)
        before = replace(
            self,
            method=make("uniform"),
            recipe=replace(self.recipe, epochs=epochs, patience=None),
            run=run,
            seed=derive(self.seed, "pretraining"),
            observers=(),
        )
        before.finish()
        if self.world.rank == 0:
            parameters = before.run.verified("model.safetensors")
            load_model(before.model, str(parameters), device=str(self.device))
        before.model.load_state_dict(self.world.agreed(before.model.state_dict()))
        return before.model

    def _state(self) -> dict[str, Any]:
        state = {**self.training.state_dict(), "seconds": self.seconds}
        if self.selection is not None:
            state["selection"] = self.selection.state_dict()
        return state

    def _resume(self, writer: Writer | None) -> None:
        """Go on from the newest sound checkpoint, which the first process reads for all."""
        found: dict[str, Any] | None = None

        def take(state: dict[str, Any]) -> None:
            nonlocal found
            self._load(state)
            found = state

        if writer is not None:
            writer.resume(self.device, take)
        found = self.world.agreed(found)
        if writer is None and found is not None:
            self._load(found)

    def _load(self, state: Mapping[str, Any]) -> None:
        self.training.load_state_dict(state)
        if self.selection is not None:
            self.selection.load_state_dict(state["selection"])
        self.seconds = state["seconds"]

    def _write_model(self) -> None:
        with replacing(self.run.model) as temporary:
            try:
                save_model(self.model, str(temporary))
            except SafetensorError as error:  # its way to report a full disk
                raise RunError(f"{self.run.model}: cannot be written: {one_line(error)}") from None


def _known(split: Split) -> dict[str, NDArray[Any]]:
    """What is known of the training samples, by name."""
    known = {
        "targets": split.train.targets,
        "flipped": split.flipped,
        "true_labels": split.true_labels,
        "true_weights": split.true_weights,
    }
    return {name: value.numpy() for name, value in known.items() if value is not None}


def _cuda(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
