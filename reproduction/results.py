"""What an experiment's runs have given so far: read from its records, nothing else.

`experiment.json` says what was asked: every cell of the table, the runs of its
trials and the published numbers. Runs that are not finished do not count.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diw.errors import UsageError
from diw.pages import data_title
from diw.reports import Standing, Summary, short_shift, standings, summarise
from diw.runs import Run
from diw.shifts import Prior, parse_shift
from reproduction.catalogue import EXPERIMENT, RUNS, Published

FEWEST = 2
"""Trials below which no test is claimed."""

Metric = Literal["accuracy", "last10", "best", "balanced", "calibration", "mae", "rmse"]

_ATTRIBUTES: dict[Metric, tuple[str, float]] = {
    "accuracy": ("last_accuracy", 100.0),
    "last10": ("last10_accuracy", 100.0),
    "best": ("best_accuracy", 100.0),
    "balanced": ("last10_balanced_accuracy", 100.0),
    "calibration": ("last10_calibration_error", 100.0),
    "mae": ("weight_mae", 1.0),
    "rmse": ("weight_rmse", 1.0),
}


def lower_is_better(metric: Metric) -> bool:
    """Whether a metric is an error."""
    return metric in ("calibration", "mae", "rmse")


@dataclass(frozen=True, order=True)
class Setting:
    """One row of a table."""

    data: str
    shift: str
    variant: str

    @property
    def data_title(self) -> str:
        """The data set as readers know it."""
        return data_title(self.data)

    @property
    def label(self) -> str:
        """The shift in a few letters, and the variant if there is one."""
        return ", ".join(part for part in (short_shift(self.shift), self.variant) if part)


@dataclass(frozen=True)
class FilledCell:
    """One cell: what was planned and what has come of it."""

    setting: Setting
    method: str
    state: str
    """"planned", "no data" or "absent"."""
    reason: str
    synthetic: bool
    trials: tuple[Summary, ...]
    published: Mapping[str, Published]

    def values(self, metric: Metric) -> dict[int, float]:
        """The metric by seed, accuracies in per cent; empty where it is not known."""
        name, scale = _ATTRIBUTES[metric]
        known = {trial.seed: getattr(trial, name) for trial in self.trials}
        return {seed: scale * value for seed, value in known.items() if value is not None}

    def mean(self, metric: Metric = "accuracy") -> float | None:
        """Mean of the metric over seeds; None where it is not known."""
        values = list(self.values(metric).values())
        return float(np.mean(values)) if values else None

    def published_mean(self, metric: Metric = "accuracy") -> float | None:
        """The paper's mean; None where it has none."""
        number = self.published.get(metric)
        return None if number is None else number.mean


@dataclass(frozen=True)
class Sheet:
    """One experiment's results."""

    folder: Path
    name: str
    """The experiment's name, which names its files."""
    scale: str
    """`smoke`, `cpu` or `paper`."""
    outputs: tuple[str, ...]
    """Which tables and figures it has."""
    facts: Mapping[str, Any]
    """The content of `experiment.json`."""
    results: tuple[FilledCell, ...]

    @cached_property
    def settings(self) -> list[Setting]:
        """The rows, in the order planned."""
        return list(dict.fromkeys(result.setting for result in self.results))

    @cached_property
    def methods(self) -> list[str]:
        """The columns, in the order planned."""
        return list(dict.fromkeys(result.method for result in self.results))

    @cached_property
    def at(self) -> dict[tuple[Setting, str], FilledCell]:
        """Each cell by its setting and method."""
        return {(result.setting, result.method): result for result in self.results}

    def data_title(self, setting: Setting) -> str:
        """The data set of a setting; generated images are named as such."""
        synthetic = any(self.at[setting, method].synthetic for method in self.methods)
        return f"{setting.data_title} (synthetic)" if synthetic else setting.data_title

    @property
    def resolution(self) -> float:
        """The smallest difference of accuracies that means anything, in points.

        Twice the deviation between runs that differ in rounding alone; 0 where that is unknown.
        """
        return 2 * (self.facts.get("rounding") or 0.0)

    def standings(self, setting: Setting, metric: Metric) -> dict[str, Standing]:
        """The methods of one setting that have trials, the best and comparable ones marked."""
        values = {method: self.at[setting, method].values(metric) for method in self.methods}
        return standings(
            {method: trials for method, trials in values.items() if trials},
            min_trials=FEWEST,
            higher_is_better=not lower_is_better(metric),
            resolution=0.0 if lower_is_better(metric) else self.resolution,
        )


def read_sheet(folder: Path, summaries: dict[Path, Summary] | None = None) -> Sheet:
    """Read an experiment's folder and the runs beside it.

    `summaries` of finished runs that were read before, by folder, are taken and added to.
    """
    path = folder / EXPERIMENT
    if not path.is_file():
        raise UsageError(f"{folder}: holds no {EXPERIMENT}; make it with: python -m reproduction")
    facts = json.loads(path.read_text())
    known = {} if summaries is None else summaries
    runs = folder.parent / RUNS
    results = tuple(_result(cell, runs, known) for cell in facts["cells"])
    outputs = tuple(facts["outputs"])
    return Sheet(folder, facts["name"], facts["scale"], outputs, facts, results)


def _result(cell: Mapping[str, Any], runs: Path, known: dict[Path, Summary]) -> FilledCell:
    finished = [run for name in cell["runs"].values() if (run := Run(runs / name)).finished]
    for run in finished:
        if run.folder not in known:
            known[run.folder] = summarise(run)
    published = {metric: Published(**number) for metric, number in cell["published"].items()}
    return FilledCell(
        setting=Setting(cell["data"], cell["shift"], cell["variant"]),
        method=cell["method"],
        state=cell["state"],
        reason=cell["reason"],
        synthetic=cell["synthetic"],
        trials=tuple(known[run.folder] for run in finished),
        published=published,
    )


def concentration(run: Run) -> float | None:
    """How concentrated the classes are in the last layer: Σ between / Σ total variance, in [0, 1].

    1 where every class is a single point, 0 where all classes have one centre.
    None where the run did not observe its hidden outputs.
    """
    kept = run.arrays("hidden")
    if not kept:
        return None
    features = kept["features"].astype(np.float64)
    labels = kept["true_labels"]
    centred = features - features.mean(axis=0)
    total = float((centred**2).sum())
    between = sum(
        float((labels == label).sum() * (centred[labels == label].mean(axis=0) ** 2).sum())
        for label in np.unique(labels)
    )
    return between / total if total > 0 else 0.0


def denoising(run: Run) -> tuple[float, float, float] | None:
    """Final training accuracy on mislabelled data by given and by true label, and on intact data.

    None where the run did not observe them.
    """
    keys = ("mislabelled_accuracy_given", "mislabelled_accuracy_true", "intact_accuracy")
    last = run.metrics()[-1]
    if any(last.get(key) is None for key in keys):
        return None
    given, true, intact = (float(last[key]) for key in keys)
    return given, true, intact


def ones_distance(shift: str, metric: str) -> float:
    """The distance from weights of one to the true weights of the class-prior shift (μ, ρ).

    Fang et al. 2020, supplement A.3: w* is 1−μ+μ/ρ for a majority and μ+ρ−μρ for a minority
    class, of which a share μ/(μ+(1−μ)ρ) of the samples are. `metric`: `mae` or `rmse`.
    """
    (prior,) = parse_shift(shift).stages
    if not isinstance(prior, Prior):
        raise UsageError(f"shift: {shift} is not a class-prior shift, prior:MINORITY,RATIO")
    minority, ratio = prior.minority, prior.ratio
    share = minority / (minority + (1 - minority) * ratio)
    misses = np.array([minority - minority / ratio, (1 - minority) * (ratio - 1)])
    shares = np.array([1 - share, share])
    if metric == "mae":
        return float(shares @ misses)
    return float(np.sqrt(shares @ misses**2))
