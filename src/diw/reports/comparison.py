"""Runs put side by side: which share a setting, and what to call each method in it."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diw.errors import UsageError
from diw.records import Run, spec_hash
from diw.reports.summary import Summary, summarise

SETTING = (
    "data",
    "data_files",
    "train_samples",
    "test_samples",
    "shift",
    "trusted",
    "trusted_in_train",
    "model",
    "epochs",
    "batch_size",
)
"""Runs that differ in one of these answer different questions and never share a table.

What else differs (a method's fields, a learning rate of its own) belongs to the method.
"""


@dataclass(frozen=True)
class Trial:
    """One run and its numbers."""

    run: Run
    summary: Summary


@dataclass(frozen=True)
class Comparison:
    """Methods on one setting."""

    spec: dict[str, Any]
    """What all its runs share."""
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
    unique = {spec_hash(run.spec): run for run in runs if run.finished}
    if not unique:
        raise UsageError("runs: none is finished; run `diw compare` or `diw train` to the end")
    settings: dict[str, list[Trial]] = {}
    for run in unique.values():
        key = json.dumps([run.spec.get(name) for name in SETTING])
        settings.setdefault(key, []).append(Trial(run, summarise(run)))
    return [_comparison(settings[key]) for key in sorted(settings)]


def shared(specs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The entries that all specs have in common."""
    first = specs[0]
    return {
        key: value
        for key, value in first.items()
        if all(key in spec and spec[key] == value for spec in specs)
    }


def _comparison(trials: list[Trial]) -> Comparison:
    variants: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.summary.seed):
        variants.setdefault(_variant(trial.run.spec), []).append(trial)
    labels = _labels([group[0].run.spec for group in variants.values()])
    named = dict(zip(labels, variants.values(), strict=True))
    order = sorted(named, key=lambda label: (_mean_last(named[label]), label))
    common = shared([trial.run.spec for trial in trials])
    return Comparison(common, {label: named[label] for label in order})


def _variant(spec: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in spec.items() if k != "seed"}, sort_keys=True)


def _mean_last(trials: Sequence[Trial]) -> float:
    return float(np.mean([trial.summary.last_accuracy for trial in trials]))


def _labels(specs: Sequence[dict[str, Any]]) -> list[str]:
    """Each variant's method, with what sets it apart where a method occurs more than once."""
    flat = [_flat(spec) for spec in specs]
    labels: list[str] = []
    for own in flat:
        rivals = [other for other in flat if other["method"] == own["method"]]
        keys = sorted({key for other in rivals for key in other} - {"method"})
        telling = [k for k in keys if any(other.get(k) != own.get(k) for other in rivals)]
        fields = ", ".join(f"{key}={own.get(key)}" for key in telling)
        labels.append(f"{own['method']} ({fields})" if fields else str(own["method"]))
    return labels


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without its seed, a method's own fields beside the rest."""
    rest = {key: value for key, value in spec.items() if key not in ("seed", "method_fields")}
    return {**rest, **(spec.get("method_fields") or {})}
