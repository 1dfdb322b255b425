"""Runs put side by side: which share a setting, their table, and what they found."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diw.errors import UsageError
from diw.records import Run, RunSpec, spec_hash
from diw.reports.statistics import MARK_FROM, Standing, mean_and_std, standings
from diw.reports.summary import Summary, summarise
from diw.reports.table import Cell, Column, Table, number_cell, text_cell
from diw.reports.words import count, describe

BASELINE = "uniform"
"""What the best method is compared with in the finding, where it is there."""

BEST_NOTE = "† The highest of any epoch. It peeks at the test set: an upper limit, not a result."


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

    def accuracies(self) -> dict[str, dict[int, float]]:
        """Last accuracies of each method by seed."""
        return {
            label: {trial.summary.seed: trial.summary.last_accuracy for trial in trials}
            for label, trials in self.methods.items()
        }


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


def compare_table(comparison: Comparison) -> Table:
    """Accuracy, cost and weights of each method, mean ± standard deviation over seeds."""
    summaries = [trial.summary for trial in comparison.trials]
    places = standings(comparison.accuracies())
    columns: list[tuple[Column, Callable[[str], Cell]]] = []

    def add(key: str, title: str, cell: Callable[[str], Cell], **options: Any) -> None:
        columns.append((Column(key, title, **options), cell))

    def add_mean(key: str, title: str, **options: Any) -> None:
        add(key, title, lambda label: _over_seeds(comparison.methods[label], key, **options))

    add("method", "method", text_cell, align="left")
    if len({place.trials for place in places.values()}) > 1:
        add("seeds", "seeds", lambda label: Cell(str(places[label].trials), places[label].trials))
    add("last_accuracy", "last accuracy %", lambda label: _accuracy(places[label]))
    if any(place.mark for place in places.values()):
        add("verdict", "t-test", lambda label: text_cell(places[label].mark or ""), align="left")
    if not all(summary.balanced_classes for summary in summaries):
        add_mean("last_balanced_accuracy", "balanced %", scale=100)
    add_mean("best_accuracy", "best % †", scale=100)
    add_mean("seconds", "seconds", digits=0, show_spread=False)
    add_mean("ess", "ESS %", scale=100, digits=1, show_spread=False)
    if _shows_distances(summaries):
        add_mean("weight_mae", "weight MAE", digits=3)
        add_mean("weight_rmse", "weight RMSE", digits=3)
    else:
        add_mean("weight_auroc", "weight AUROC", digits=3, show_spread=False)
    return Table(
        tuple(column for column, _ in columns),
        tuple(tuple(cell(label) for _, cell in columns) for label in comparison.methods),
        describe(comparison.spec).title,
        tuple(_notes(summaries, places)),
    )


def runs_table(comparison: Comparison) -> Table:
    """Every run of a comparison with its own numbers and its folder."""
    columns = (
        Column("method", "method", "left"),
        Column("seed", "seed"),
        Column("last_accuracy", "last %"),
        Column("last10_accuracy", "last ten %"),
        Column("best_accuracy", "best % †"),
        Column("weight_auroc", "weight AUROC"),
        Column("ess", "ESS %"),
        Column("seconds", "seconds"),
        Column("run", "run", "left"),
    )
    rows = tuple(
        (
            text_cell(label),
            Cell(str(trial.summary.seed), trial.summary.seed),
            number_cell(trial.summary.last_accuracy, scale=100),
            number_cell(trial.summary.last10_accuracy, scale=100),
            number_cell(trial.summary.best_accuracy, scale=100),
            number_cell(trial.summary.weight_auroc, digits=3),
            number_cell(trial.summary.ess, scale=100, digits=1),
            number_cell(trial.summary.seconds, digits=0),
            Cell(trial.run.folder.name, trial.summary.run),
        )
        for label, trials in comparison.methods.items()
        for trial in trials
    )
    return Table(columns, rows)


def finding(comparison: Comparison) -> str:
    """One computed sentence, in favour or against: the best method and unweighted training."""
    accuracies = comparison.accuracies()
    means = {label: float(np.mean(list(values.values()))) for label, values in accuracies.items()}
    best = max(means, key=lambda label: means[label])
    if len(means) == 1:
        return f"{best} ends at {_percent(means[best])} test accuracy."
    baseline = BASELINE if BASELINE in means else min(means, key=lambda label: means[label])
    trust = f"Mean of {count(len(comparison.seeds), 'seed')}"
    if best == baseline:
        ends = f"No method ends above {baseline}, at {_percent(means[baseline])} test accuracy."
        return f"{ends} {trust}."
    p_value = standings({label: accuracies[label] for label in (best, baseline)})[baseline].p_value
    if p_value is not None:
        trust += f"; paired t-test {'p < 0.001' if p_value < 0.001 else f'p = {p_value:.3f}'}"
    points = 100 * (means[best] - means[baseline])
    return (
        f"{best} ends at {_percent(means[best])} test accuracy, {points:.1f} points above "
        f"{baseline} ({_percent(means[baseline])}). {trust}."
    )


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def _accuracy(place: Standing) -> Cell:
    strong = place.mark in ("best", "comparable")
    return number_cell(place.mean, place.std, scale=100, strong=strong)


def _over_seeds(trials: Sequence[Trial], key: str, **options: Any) -> Cell:
    known = [value for t in trials if (value := getattr(t.summary, key)) is not None]
    return number_cell(*mean_and_std(known), **options) if known else number_cell(None)


def _shows_distances(summaries: Sequence[Summary]) -> bool:
    """Whether true weights are known that AUROC says nothing of: no label was flipped."""
    return any(summary.weight_mae is not None for summary in summaries) and all(
        summary.weight_auroc is None for summary in summaries
    )


def _notes(summaries: Sequence[Summary], places: dict[str, Standing]) -> list[str]:
    trials = max(place.trials for place in places.values())
    first: list[str] = []
    if trials > 1:
        first.append(f"Mean ± standard deviation over {count(trials, 'seed')}.")
    if any(place.mark for place in places.values()):
        first.append("Bold or *: best, or not distinguishable from it by a paired t-test at 5%.")
    elif len(places) > 1:
        first.append(f"No test is claimed below {MARK_FROM} seeds.")
    notes = [" ".join(first)] if first else []
    notes += [
        f"Accuracies are those of the {part} samples, not of a test set."
        for part in sorted({summary.scored_on for summary in summaries} - {"test"})
    ]
    notes.append(BEST_NOTE)
    if not all(summary.balanced_classes for summary in summaries):
        notes.append("Balanced: mean of the accuracies per class in the last epoch.")
    meaning = (
        "MAE, RMSE: mean absolute and root-mean-square distance from the true weights."
        if _shows_distances(summaries)
        else "AUROC: how well they separate intact from flipped labels (0.5: not at all)."
    )
    notes.append(f"ESS: effective sample size of the weights. {meaning}")
    return notes
