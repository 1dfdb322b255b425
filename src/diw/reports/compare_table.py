"""The table of `diw compare`: one row a method."""

from collections.abc import Sequence
from dataclasses import dataclass

from diw.reports.comparison import Comparison, Trial
from diw.reports.statistics import MARK_FROM, Standing, mean_and_std, standings
from diw.reports.tables import Cell, Column, Table, number_cell, text_cell
from diw.reports.words import count, describe

BEST_NOTE = "† The highest of any epoch. It peeks at the test set: an upper limit, not a result."


def compare_table(comparison: Comparison, *, min_trials: int = MARK_FROM) -> Table:
    """Accuracy, cost and weights of each method, mean ± standard deviation over seeds.

    Args:
        comparison: Methods on one setting.
        min_trials: The fewest shared seeds for a claim of best or comparable.
    """
    places = standings(
        {
            label: {trial.summary.seed: trial.summary.last_accuracy for trial in trials}
            for label, trials in comparison.methods.items()
        },
        min_trials=min_trials,
    )
    shape = _Shape.of(comparison, places)
    rows = [
        tuple(_row(label, trials, places[label], shape))
        for label, trials in comparison.methods.items()
    ]
    return Table(
        tuple(_columns(shape)),
        tuple(rows),
        describe(comparison.spec).title,
        tuple(_notes(comparison, places, min_trials, shape)),
    )


@dataclass(frozen=True)
class _Shape:
    """Which of the optional columns the table has."""

    seeds: bool
    balanced: bool
    verdict: bool
    distances: bool
    """Whether true weights are known that AUROC does not speak of: no labels were moved."""

    @classmethod
    def of(cls, comparison: Comparison, places: dict[str, Standing]) -> "_Shape":
        return cls(
            seeds=len({place.trials for place in places.values()}) > 1,
            balanced=not all(trial.summary.balanced_classes for trial in comparison.trials),
            verdict=any(place.verdict for place in places.values()),
            distances=any(trial.summary.weight_mae is not None for trial in comparison.trials)
            and all(trial.summary.weight_auroc is None for trial in comparison.trials),
        )


def _columns(shape: _Shape) -> list[Column]:
    columns = [Column("method", "method", "left")]
    columns += [Column("seeds", "seeds")] if shape.seeds else []
    columns += [Column("last_accuracy", "last accuracy %")]
    columns += [Column("verdict", "t-test", "left")] if shape.verdict else []
    if shape.balanced:
        columns += [Column("last_balanced_accuracy", "balanced %")]
    columns += [
        Column("best_accuracy", "best % †"),
        Column("seconds", "seconds"),
        Column("ess", "ESS %"),
    ]
    if shape.distances:
        columns += [Column("weight_mae", "weight MAE"), Column("weight_rmse", "weight RMSE")]
    else:
        columns += [Column("weight_auroc", "weight AUROC")]
    return columns


def _row(label: str, trials: Sequence[Trial], place: Standing, shape: _Shape) -> list[Cell]:
    strong = place.verdict in ("best", "comparable")
    cells = [text_cell(label)]
    cells += [Cell(str(place.trials), place.trials)] if shape.seeds else []
    cells += [number_cell(place.mean, place.std, scale=100, strong=strong)]
    cells += [text_cell(place.verdict or "")] if shape.verdict else []
    if shape.balanced:
        cells += [_over_seeds(trials, "last_balanced_accuracy", scale=100)]
    cells += [
        _over_seeds(trials, "best_accuracy", scale=100),
        _over_seeds(trials, "seconds", digits=0, show_spread=False),
        _over_seeds(trials, "ess", scale=100, digits=1, show_spread=False),
    ]
    if shape.distances:
        cells += [_over_seeds(trials, key, digits=3) for key in ("weight_mae", "weight_rmse")]
    else:
        cells += [_over_seeds(trials, "weight_auroc", digits=3, show_spread=False)]
    return cells


def _over_seeds(
    trials: Sequence[Trial],
    key: str,
    *,
    scale: float = 1.0,
    digits: int = 2,
    show_spread: bool = True,
) -> Cell:
    known = [value for t in trials if (value := getattr(t.summary, key)) is not None]
    if not known:
        return number_cell(None)
    mean, std = mean_and_std(known)
    return number_cell(mean, std, scale=scale, digits=digits, show_spread=show_spread)


def _notes(
    comparison: Comparison, places: dict[str, Standing], min_trials: int, shape: _Shape
) -> list[str]:
    trials = max(place.trials for place in places.values())
    spread = f"Mean ± standard deviation over {count(trials, 'seed')}." if trials > 1 else ""
    if any(place.verdict for place in places.values()):
        test = "Bold or *: best, or not told apart from it by a paired t-test at 5%."
    elif len(places) > 1:
        test = f"No test is claimed below {min_trials} seeds."
    else:
        test = ""
    notes = [" ".join(part for part in (spread, test) if part)] if spread or test else []
    notes += [
        f"Accuracies are of the {part} samples, not of a test set."
        for part in sorted({trial.summary.scored_on for trial in comparison.trials} - {"test"})
    ]
    notes.append(BEST_NOTE)
    if not all(trial.summary.balanced_classes for trial in comparison.trials):
        notes.append("Balanced: the mean of the classes' accuracies in the last epoch.")
    telling = (
        "MAE, RMSE: mean absolute and root-mean-square distance from the true weights."
        if shape.distances
        else "AUROC: how well they tell intact from flipped labels (0.5: not at all)."
    )
    notes.append(f"ESS: effective sample size of the weights. {telling}")
    return notes
