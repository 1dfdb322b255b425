"""What a run is asked (`RunSpec`, `Recipe`) and what it leaves on disk (`Run`); free of torch."""

from diw.runs.journal import Row, Writer
from diw.runs.lock import LOCK, check_claim, claim, discard, holding, is_held, tidy
from diw.runs.run import PRETRAINING, ROWS, Run, find_run, find_runs
from diw.runs.spec import FORMAT, Recipe, RunSpec, spec_hash

__all__ = [
    "FORMAT",
    "LOCK",
    "PRETRAINING",
    "ROWS",
    "Recipe",
    "Row",
    "Run",
    "RunSpec",
    "Writer",
    "check_claim",
    "claim",
    "discard",
    "find_run",
    "find_runs",
    "holding",
    "is_held",
    "spec_hash",
    "tidy",
]
