"""How long runs will take: from a few real training steps on this machine."""

import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from pathlib import Path

import torch

from diw.data.split import Split
from diw.experiments.plan import fields_of
from diw.experiments.sources import load_split, with_method
from diw.models import make_model
from diw.records import Run, RunSpec
from diw.seeding import torch_generator
from diw.step.batch import Batch
from diw.training import EVALUATION_BATCH, Training, evaluate
from diw.weighting import make

STEPS = 12
SECONDS = 2.0
"""Steps are measured until there are this many of them or this much time has passed."""

_STAND_INS = {
    **dict.fromkeys(("clean", "random", "truth", "iw", "siw-f", "siw-l"), "uniform"),
    **dict.fromkeys(("diw1-f", "diw3-f"), "diw2-f"),
    **dict.fromkeys(("diw1-l", "diw3-l"), "diw"),
}
"""Methods whose steps cost about what another one's do, which needs no pretraining."""


class Stopwatch:
    """Estimates by method and setting, each measured once."""

    def __init__(self) -> None:
        self._steps: dict[str, float] = {}
        self._evaluations: dict[str, float] = {}
        self._splits: dict[str, Split] = {}

    def seconds(self, specs: Iterable[RunSpec]) -> float:
        """The time of some runs one after the other, on one core each.

        Epochs and pretraining are counted; the single match of a static method is not.
        """
        return sum(self._run(spec) for spec in specs)

    def _run(self, spec: RunSpec) -> float:
        spec = replace(spec, seed=0, observe=())
        split = self._split(spec)
        recipe = spec.recipe
        steps = ceil(len(split.train) / recipe.batch_size)
        tests = len(split.test) / EVALUATION_BATCH * self._evaluation(spec, split)
        pretraining = int(spec.method_fields.get("pretraining", 0))
        before = pretraining * (steps * self._step(spec, "uniform", split) + tests)
        if spec.method == "clean":
            steps = ceil(len(split.trusted) / recipe.trusted_batch_size)
        method = _STAND_INS.get(spec.method, spec.method)
        return before + recipe.epochs * (steps * self._step(spec, method, split) + tests)

    def _split(self, spec: RunSpec) -> Split:
        key = repr((spec.data, spec.shift, spec.trusted, spec.train_samples, spec.test_samples))
        if key not in self._splits:
            self._splits[key] = load_split(spec)
        return self._splits[key]

    def _step(self, spec: RunSpec, method: str, split: Split) -> float:
        sizes = (spec.recipe.batch_size, spec.recipe.trusted_batch_size)
        key = repr((spec.data, spec.model, sizes, method))
        if key not in self._steps:
            has = fields_of(method)
            own = {name: value for name, value in spec.method_fields.items() if name in has}
            self._steps[key] = _measure(with_method(spec, method, own), split)
        return self._steps[key]

    def _evaluation(self, spec: RunSpec, split: Split) -> float:
        """Of one batch of test samples."""
        key = repr((spec.data, spec.model))
        if key not in self._evaluations:
            part = split.test.subset(torch.arange(min(EVALUATION_BATCH, len(split.test))))
            model = _model(spec, split)
            started = time.perf_counter()
            evaluate(model, part, torch.device(spec.device))
            elapsed = time.perf_counter() - started
            self._evaluations[key] = elapsed * EVALUATION_BATCH / len(part)
        return self._evaluations[key]


def _measure(spec: RunSpec, split: Split) -> float:
    """Seconds of one weighted training step, after two that warm up."""
    torch.set_num_threads(spec.threads)
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        training = Training(
            split=split,
            make_model=lambda: _model(spec, split),
            method=make(spec.method, spec.method_fields),
            recipe=spec.recipe,
            run=Run.create(Path(folder), {}),
            seed=0,
            device=torch.device(spec.device),
        )
        training.objective.prepare()
        training.objective.start_epoch(2)  # the first epoch of DIW has no weights to find
        training.model.train()
        generator = torch_generator(0, "estimate")
        times: list[float] = []
        while len(times) < STEPS + 2 and sum(times[2:]) < SECONDS:
            size = min(spec.recipe.batch_size, len(split.train))
            index = torch.randperm(len(split.train), generator=generator)[:size]
            started = time.perf_counter()
            _step(training, index)
            times.append(time.perf_counter() - started)
    return sum(times[2:]) / max(1, len(times) - 2)


def _step(training: Training, index: torch.Tensor) -> None:
    inputs, targets = training.split.train.take(index)
    batch = Batch(inputs.to(training.device), targets.to(training.device), index)
    training.optimizer.zero_grad(set_to_none=True)
    training.objective(batch).loss.backward()
    training.optimizer.step()
    training.objective.after_step()


def _model(spec: RunSpec, split: Split) -> torch.nn.Module:
    shape, classes = split.train.shape, split.train.num_classes
    return make_model(spec.model, shape=shape, num_classes=classes, seed=0)
