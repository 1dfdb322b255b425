"""How long runs will take: from a few real training steps on this machine."""

import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path

import torch

from diw.methods import describe, find
from diw.runs import Run, RunSpec
from diw.runs.sources import Source
from diw.training.recorded import Recorded, make_recorded, with_method
from diw.training.scores import evaluate

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
        split, recipe = Source.of(spec).split, spec.recipe
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
            with _thrown_away(with_method(spec, method, own)) as recorded:
                self._steps[key] = recorded.training.trial_seconds()
        return self._steps[key]

    def _evaluation(self, spec: RunSpec) -> float:
        """Seconds per scored sample."""
        key = repr((spec.data, spec.model))
        if key not in self._evaluations:
            test = Source.of(spec).split.test
            part = test.subset(torch.arange(min(SCORED, len(test))))
            with _thrown_away(with_method(spec, "uniform")) as recorded:
                started = time.perf_counter()
                evaluate(recorded.model, part)
                self._evaluations[key] = (time.perf_counter() - started) / len(part)
        return self._evaluations[key]


@contextmanager
def _thrown_away(spec: RunSpec) -> Generator[Recorded]:
    """The training of a spec, in a folder that does not stay."""
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        yield make_recorded(spec, Run(Path(folder)))
