"""What a run is asked (`RunSpec`, `Recipe`) and what it leaves on disk (`Run`); free of torch."""

from diw.records.run import (
    PRETRAINING,
    Row,
    Run,
    find_run,
    find_runs,
    replacing,
    write_json,
)
from diw.records.spec import FORMAT, Recipe, RunSpec, spec_hash

__all__ = [
    "FORMAT",
    "PRETRAINING",
    "Recipe",
    "Row",
    "Run",
    "RunSpec",
    "find_run",
    "find_runs",
    "replacing",
    "spec_hash",
    "write_json",
]
