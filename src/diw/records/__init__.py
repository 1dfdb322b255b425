"""What a run is asked (`RunSpec`, `Recipe`) and what it leaves on disk (`Run`); free of torch."""

from diw.records.experiment import EXPERIMENT, RUNS, Published
from diw.records.files import replacing, unseal, write_json, write_sealed, write_text
from diw.records.journal import Journal, Row
from diw.records.lock import LOCK, holding, is_held
from diw.records.run import PRETRAINING, ROWS, Run, find_run, find_runs
from diw.records.spec import FORMAT, Recipe, RunSpec, spec_hash

__all__ = [
    "EXPERIMENT",
    "FORMAT",
    "LOCK",
    "PRETRAINING",
    "ROWS",
    "RUNS",
    "Journal",
    "Published",
    "Recipe",
    "Row",
    "Run",
    "RunSpec",
    "find_run",
    "find_runs",
    "holding",
    "is_held",
    "replacing",
    "spec_hash",
    "unseal",
    "write_json",
    "write_sealed",
    "write_text",
]
