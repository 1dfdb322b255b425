"""One row a run: for those who want to see every seed."""

from diw.reports.comparison import Comparison
from diw.reports.tables import Cell, Column, Table, number_cell, text_cell

COLUMNS = (
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


def runs_table(comparison: Comparison) -> Table:
    """Every run of a comparison with its own numbers and its folder."""
    rows: list[tuple[Cell, ...]] = []
    for label, trials in comparison.methods.items():
        for trial in trials:
            summary = trial.summary
            rows.append(
                (
                    text_cell(label),
                    Cell(str(summary.seed), summary.seed),
                    number_cell(summary.last_accuracy, scale=100),
                    number_cell(summary.last10_accuracy, scale=100),
                    number_cell(summary.best_accuracy, scale=100),
                    number_cell(summary.weight_auroc, digits=3),
                    number_cell(summary.ess, scale=100, digits=1),
                    number_cell(summary.seconds, digits=0),
                    Cell(trial.run.folder.name, summary.run),
                )
            )
    return Table(COLUMNS, tuple(rows))
