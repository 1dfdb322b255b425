"""What a run is asked (`RunSpec`, `Recipe`) and what it leaves on disk (`Run`); free of torch."""

from diw.records.experiment import EXPERIMENT, RUNS, Published
from diw.records.run import (
    PRETRAINING,
    Row,
    Run,
    find_run,
    find_runs,
    replacing,
    write_json,
    write_text,
)
from diw.records.spec import FORMAT, Recipe, RunSpec, spec_hash

__all__ = [
    "EXPERIMENT",
    "FORMAT",
    "PRETRAINING",
    "RUNS",
    "Published",
    "Recipe",
    "Row",
    "Run",
    "RunSpec",
    "find_run",
    "find_runs",
    "replacing",
    "spec_hash",
    "write_json",
    "write_text",
]
