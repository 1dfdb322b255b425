"""Runs put side by side: which share a setting, and what to call each method in it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diw.errors import UsageError
from diw.records import Run, RunSpec, spec_hash
from diw.reports.summary import Summary, summarise


@dataclass(frozen=True)
class Trial:
    """One run and its numbers."""

    run: Run
    summary: Summary


@dataclass(frozen=True)
class Comparison:
    """Methods in one setting."""

    spec: RunSpec
    """That of some run: the setting's fields are those of all runs."""
    shared: dict[str, Any]
    """The entries of the specs that all runs have in common, as JSON values."""
    methods: dict[str, list[Trial]]
    """By label, from the lowest mean last accuracy to the highest; each by seed."""

    @property
    def trials(self) -> list[Trial]:
        """Every trial, in the order of the methods."""
        return [trial for trials in self.methods.values() for trial in trials]

    @property
    def seeds(self) -> list[int]:
        """Every seed that some method ran."""
        return sorted({trial.summary.seed for trial in self.trials})


def compare_runs(runs: Iterable[Run]) -> list[Comparison]:
    """Sort finished runs into comparisons; unfinished ones are left out.

    A run that occurs twice (a copied folder) counts once.
    """
    unique = {spec_hash(run.spec.as_json()): run for run in runs if run.finished}
    if not unique:
        raise UsageError("runs: none is finished; run `diw compare` or `diw train` to the end")
    settings: dict[str, list[Trial]] = {}
    for run in unique.values():
        settings.setdefault(_setting(run.spec), []).append(Trial(run, summarise(run)))
    return [_comparison(settings[key]) for key in sorted(settings)]


def shared_entries(specs: Sequence[RunSpec]) -> dict[str, Any]:
    """The entries that all specs have in common, as JSON values."""
    first, *others = [spec.as_json() for spec in specs]
    return {k: v for k, v in first.items() if all(other[k] == v for other in others)}


def _setting(spec: RunSpec) -> str:
    """Specs that differ here answer different questions and never share a table.

    What else differs (the fields of a method, a learning rate of its own) belongs to the method.
    """
    data = [spec.data, spec.files, spec.test, spec.label, spec.train_samples, spec.test_samples]
    shift = [spec.shift, spec.trusted, spec.trusted_in_train]
    return json.dumps([*data, *shift, spec.model, spec.recipe.epochs, spec.recipe.batch_size])


def _comparison(trials: list[Trial]) -> Comparison:
    variants: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.summary.seed):
        variant = spec_hash(replace(trial.run.spec, seed=0).as_json())
        variants.setdefault(variant, []).append(trial)
    labels = _labels([group[0].run.spec for group in variants.values()])
    named = dict(zip(labels, variants.values(), strict=True))
    order = sorted(named, key=lambda label: (_mean_last(named[label]), label))
    specs = [trial.run.spec for trial in trials]
    methods = {label: named[label] for label in order}
    return Comparison(specs[0], shared_entries(specs), methods)


def _mean_last(trials: Sequence[Trial]) -> float:
    return float(np.mean([trial.summary.last_accuracy for trial in trials]))


def _labels(specs: Sequence[RunSpec]) -> list[str]:
    """The method of each variant, with what sets it apart where a method occurs more than once."""
    flat = [_flat(spec) for spec in specs]
    labels: list[str] = []
    for own in flat:
        rivals = [other for other in flat if other["method"] == own["method"]]
        keys = sorted({key for other in rivals for key in other} - {"method"})
        telling = [k for k in keys if any(other.get(k) != own.get(k) for other in rivals)]
        fields = ", ".join(f"{key}={own.get(key)}" for key in telling)
        labels.append(f"{own['method']} ({fields})" if fields else str(own["method"]))
    return labels


def _flat(spec: RunSpec) -> dict[str, Any]:
    """The spec without its seed, the method's fields beside the rest."""
    rest = spec.as_json()
    fields, _ = rest.pop("method_fields"), rest.pop("seed")
    # DIW has a momentum, and so has SGD: under one name two variants could share a label.
    return {f"recipe.{key}" if key in fields else key: rest[key] for key in rest} | fields
