"""How long runs will take: from a few real training steps on this machine."""

import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from math import ceil
from pathlib import Path

import torch

from diw.experiments.execute import make_training
from diw.experiments.sources import load_split, with_method
from diw.methods import describe, find
from diw.runs import Run, RunSpec
from diw.training import Training, evaluate

WARM_UP = 2
STEPS = 12
SECONDS = 2.0
"""After the warm-up, steps are measured until there are `STEPS` or `SECONDS` have passed."""
SCORED = 1000
"""Test samples that are scored to see how long that takes."""


class Stopwatch:
    """Estimates the time of runs, measuring each method once per data set, network and batch."""

    def __init__(self) -> None:
        self._steps: dict[str, float] = {}
        self._evaluations: dict[str, float] = {}

    def seconds(self, specs: Iterable[RunSpec]) -> float:
        """The time of some runs one after the other, on one core each.

        Epochs and pretraining are counted; the single match of a static method is not. All are
        measured on the data of the first one's seed, which need not be drawn again then.
        """
        some = list(specs)
        return sum(self._run(replace(spec, seed=some[0].seed, observe=())) for spec in some)

    def _run(self, spec: RunSpec) -> float:
        split, recipe = load_split(spec), spec.recipe
        steps = ceil(len(split.train) / recipe.batch_size) * (recipe.passes or 1)
        scoring = len(split.test) * self._evaluation(spec)
        pretraining = int(spec.method_fields.get("pretraining", 0))
        before = pretraining * (steps * self._step(spec, "uniform") + scoring)
        if spec.method == "clean" and recipe.passes is None:
            steps = ceil(len(split.trusted) / recipe.trusted_batch_size)
        method = find(spec.method).costs_like or spec.method
        return before + recipe.epochs * (steps * self._step(spec, method) + scoring)

    def _step(self, spec: RunSpec, method: str) -> float:
        """Seconds per training step."""
        sizes = (spec.recipe.batch_size, spec.recipe.trusted_batch_size)
        key = repr((spec.data, spec.model, sizes, method))
        if key not in self._steps:
            has = {field.name for field in describe(find(method))}
            own = {name: value for name, value in spec.method_fields.items() if name in has}
            with _training(with_method(spec, method, own)) as training:
                self._steps[key] = _step_seconds(training)
        return self._steps[key]

    def _evaluation(self, spec: RunSpec) -> float:
        """Seconds per scored sample."""
        key = repr((spec.data, spec.model))
        if key not in self._evaluations:
            test = load_split(spec).test
            part = test.subset(torch.arange(min(SCORED, len(test))))
            with _training(with_method(spec, "uniform")) as training:
                started = time.perf_counter()
                evaluate(training.model, part)
                self._evaluations[key] = (time.perf_counter() - started) / len(part)
        return self._evaluations[key]


@contextmanager
def _training(spec: RunSpec) -> Generator[Training]:
    """The training of a spec, in a folder that does not stay."""
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        yield make_training(spec, Run.create(Path(folder), {}))


def _step_seconds(training: Training) -> float:
    """Seconds per weighted training step, after some that warm up."""
    training.objective.prepare()
    training.objective.start_epoch(2)  # the first epoch of DIW has no weights to find
    training.model.train()
    batches = (batch for epoch in count(2) for batch in training.batches(epoch))
    times: list[float] = []
    while len(times) < WARM_UP + STEPS and sum(times[WARM_UP:]) < SECONDS:
        started = time.perf_counter()
        training.step(next(batches))
        times.append(time.perf_counter() - started)
    return sum(times[WARM_UP:]) / max(1, len(times) - WARM_UP)
