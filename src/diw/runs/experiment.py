"""What `diw reproduce` leaves beside its runs: where experiments are, and published numbers."""

from dataclasses import dataclass

EXPERIMENT = "experiment.json"
"""Written into the folder of an experiment: every cell of its table, its runs, what is claimed."""

RUNS = "runs"
"""The folder of runs, beside those of the experiments."""


@dataclass(frozen=True)
class Published:
    """One published number."""

    mean: float
    std: float
    best: bool
    """Printed in bold: the best, or not significantly different from it."""
