"""Runs put side by side: which share a setting, their table, and what they found."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from diw.config import CONTROLS
from diw.errors import UsageError
from diw.pages import (
    Cell,
    Column,
    Entry,
    Table,
    count,
    count_entry,
    difference_cell,
    make_table,
    number_cell,
    number_entry,
    text_entry,
)
from diw.reports.statistics import MARK_FROM, Mark, Standing, mean_and_std, standings
from diw.reports.summary import Summary, summarise
from diw.reports.words import describe
from diw.runs import Run, RunSpec, spec_hash

BASELINE = "uniform"
"""What the best method is compared with in the finding, where it is there."""

VERDICTS: dict[Mark, str] = {
    "best": "best",
    "comparable": "no clear difference",
    "worse": "worse",
}
"""The marks of the paper's tables in words that do not say more than the test does."""

LAST = Column("last_accuracy", "last accuracy %")

CHOSEN_NOTE = (
    "‡ The epoch whose network is kept: that of the lowest loss on trusted samples held out for it."
)

BEST_NOTE = "† The highest of any epoch. It peeks at the test set: an upper limit, not a result."


@dataclass(frozen=True)
class Comparison:
    """Methods in one setting."""

    spec: RunSpec
    """That of some run: the setting's fields are those of all runs."""
    shared: dict[str, Any]
    """The entries of the specs that all runs have in common, as JSON values."""
    methods: dict[str, list[Summary]]
    """By label, from the highest mean accuracy to the lowest; each by seed."""

    @property
    def trials(self) -> list[Summary]:
        """Every trial, in the order of the methods."""
        return [trial for trials in self.methods.values() for trial in trials]

    @property
    def seeds(self) -> list[int]:
        """Every seed that some method ran."""
        return sorted({trial.seed for trial in self.trials})

    @property
    def audited(self) -> Run | None:
        """The run to audit: of the best method that trains on the labels as they are given."""
        named = ((trials[0].method, trials[0].run) for trials in self.methods.values())
        return next((run for method, run in named if method not in CONTROLS), None)

    def accuracies(self) -> dict[str, dict[int, float]]:
        """Accuracies of each method by seed: of the kept epoch, or the last if none was chosen."""
        return {
            label: {trial.seed: trial.accuracy for trial in trials}
            for label, trials in self.methods.items()
        }


def compare_runs(runs: Iterable[Run]) -> list[Comparison]:
    """Sort finished runs into comparisons; unfinished ones are left out.

    A run that occurs twice (a copied folder) counts once.
    """
    unique = {spec_hash(run.spec.as_json()): run for run in runs if run.finished}
    if not unique:
        raise UsageError("runs: none is finished; run `diw compare` or `diw train` to the end")
    settings: dict[str, list[Summary]] = {}
    for run in unique.values():
        settings.setdefault(setting_key(run.spec), []).append(summarise(run))
    return [_comparison(settings[key]) for key in sorted(settings)]


def shared_entries(specs: Sequence[RunSpec]) -> dict[str, Any]:
    """The entries that all specs have in common, as JSON values."""
    first, *others = [spec.as_json() for spec in specs]
    return {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}


def setting_key(spec: RunSpec) -> str:
    """Specs that differ here answer different questions and never share a table.

    What else differs (the fields of a method, a learning rate of its own) belongs to the method.
    """
    data = [spec.data, spec.files, spec.test, spec.label, spec.train_samples, spec.test_samples]
    shift = [spec.shift, spec.trusted, spec.trusted_in_train, spec.corrections]
    recipe = [spec.recipe.epochs, spec.recipe.batch_size, spec.selection]
    return json.dumps([*data, *shift, spec.model, *recipe])


def _comparison(trials: list[Summary]) -> Comparison:
    variants: dict[str, list[Summary]] = {}
    for trial in sorted(trials, key=lambda trial: trial.seed):
        variant = spec_hash(replace(trial.run.spec, seed=0).as_json())
        variants.setdefault(variant, []).append(trial)
    labels = _labels([group[0].run.spec for group in variants.values()])
    named = dict(zip(labels, variants.values(), strict=True))
    order = sorted(named, key=lambda label: (-_mean_accuracy(named[label]), label))
    specs = [trial.run.spec for trial in trials]
    methods = {label: named[label] for label in order}
    return Comparison(specs[0], shared_entries(specs), methods)


def _mean_accuracy(trials: Sequence[Summary]) -> float:
    return float(np.mean([trial.accuracy for trial in trials]))


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
    summaries = comparison.trials
    places = standings(comparison.accuracies())
    seeds_differ = len({place.trials for place in places.values()}) > 1
    paired = any(place.interval for place in places.values())
    chosen = any(summary.kept_epoch is not None for summary in summaries)
    balanced = all(summary.balanced_classes for summary in summaries)
    accuracy = Column("kept_accuracy", "accuracy %") if chosen else LAST

    def row(label: str) -> list[Entry]:
        def mean(key: str, title: str, **options: Any) -> Entry:
            values = [getattr(trial, key) for trial in comparison.methods[label]]
            known = [value for value in values if value is not None]
            found = mean_and_std(known) if known else (None, None)
            return number_entry(key, title, *found, **options)

        entries = standing_entries(label, places, accuracy, paired=paired)
        if seeds_differ:
            entries.insert(1, count_entry("seeds", "seeds", places[label].trials))
        if not balanced:
            entries.append(mean("balanced_accuracy", "balanced %", scale=100))
        if chosen:
            entries.append(mean("kept_epoch", "epoch ‡", digits=0, show_spread=False))
            entries.append(mean("last_accuracy", "last %", scale=100))
        entries.append(mean("best_accuracy", "best % †", scale=100))
        entries.append(mean("seconds", "seconds", digits=0, show_spread=False))
        entries.append(mean("ess", "ESS %", scale=100, digits=1, show_spread=False))
        if _shows_distances(summaries):
            entries.append(mean("weight_mae", "weight MAE", digits=3))
            entries.append(mean("weight_rmse", "weight RMSE", digits=3))
        else:
            entries.append(mean("weight_auroc", "weight AUROC", digits=3, show_spread=False))
        return entries

    title, _ = describe(comparison.spec)
    return make_table(map(row, comparison.methods), title, _notes(summaries, places))


def standing_entries(
    label: str, places: Mapping[str, Standing], accuracy: Column, *, paired: bool
) -> list[Entry]:
    """A method, its mean accuracy, and how it stands against the best, as far as that is known."""
    place = places[label]
    best = place.mark == "best"
    shown = number_cell(place.mean, place.std, scale=100, strong=best)
    entries = [text_entry("method", "method", label), (accuracy, shown)]
    if paired:
        difference = difference_cell(place.difference, place.interval)
        entries.append((Column("difference", "to the best"), difference))
    if any(other.mark for other in places.values()):
        words = VERDICTS[place.mark] if place.mark else ""
        entries.append(text_entry("verdict", "verdict", words))
    return entries


def runs_table(comparison: Comparison, page: Path | None = None) -> Table:
    """Every run of a comparison with its own numbers and its folder.

    Args:
        comparison: The methods.
        page: The folder of the page, for links to the runs.
    """

    def folder(trial: Summary) -> Cell:
        path = trial.run.folder
        link = None if page is None else quote(os.path.relpath(path, page).replace(os.sep, "/"))
        return Cell(path.name, str(path), link=None if link is None else f"{link}/")

    return make_table(
        [
            text_entry("method", "method", label),
            (Column("seed", "seed"), Cell(str(trial.seed), trial.seed)),
            number_entry("last_accuracy", "last %", trial.last_accuracy, scale=100),
            number_entry("last10_accuracy", "last ten %", trial.last10_accuracy, scale=100),
            number_entry("best_accuracy", "best % †", trial.best_accuracy, scale=100),
            number_entry("weight_auroc", "weight AUROC", trial.weight_auroc, digits=3),
            number_entry("ess", "ESS %", trial.ess, scale=100, digits=1),
            number_entry("seconds", "seconds", trial.seconds, digits=0),
            (Column("run", "run", "left"), folder(trial)),
        ]
        for label, trials in comparison.methods.items()
        for trial in trials
    )


def finding(comparison: Comparison) -> str:
    """One computed sentence, in favour or against: the best method and unweighted training."""
    accuracies = comparison.accuracies()
    means = {label: _mean_accuracy(trials) for label, trials in comparison.methods.items()}
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
    if any(place.interval for place in places.values()):
        first.append("To the best: paired difference in points and its 95% interval.")
    if any(place.mark for place in places.values()):
        first.append("Worse: the interval excludes zero.")
    elif len(places) > 1:
        first.append(f"No verdict below {MARK_FROM} seeds.")
    notes = [" ".join(first)] if first else []
    notes += [
        f"Accuracies are those of the {part} samples, not of a test set."
        for part in sorted({summary.scored_on for summary in summaries} - {"test"})
    ]
    if any(summary.kept_epoch is not None for summary in summaries):
        notes.append(CHOSEN_NOTE)
    notes.append(BEST_NOTE)
    if not all(summary.balanced_classes for summary in summaries):
        notes.append("Balanced: mean of the accuracies per class.")
    meaning = (
        "MAE, RMSE: mean absolute and root-mean-square distance from the true weights."
        if _shows_distances(summaries)
        else "AUROC: how well they separate intact from flipped labels (0.5: not at all)."
    )
    notes.append(f"ESS: effective sample size of the weights. {meaning}")
    return notes
