"""Running one spec: an idempotent unit that any process may take up, and only one at a time."""

from pathlib import Path

import torch
from filelock import FileLock

from diw.experiments.sources import load_split
from diw.experiments.spec import RunSpec
from diw.models import make_model
from diw.observers import make_observers
from diw.records import Run
from diw.training import Training
from diw.weighting import make


def execute(spec: RunSpec, folder: Path) -> Run:
    """Bring the run of `spec` below `folder` to its end, from wherever it stands.

    A finished run is left alone; an interrupted one goes on. The lock belongs
    to the operating system, so it is free again when its holder dies.
    """
    run = spec.run(folder)
    if run.finished:
        return run
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{run.folder.name}.lock"):
        if not run.finished:
            train(spec, Run.create(run.folder, spec.as_json()))
    return run


def train(spec: RunSpec, run: Run) -> None:
    """Train what `spec` describes into the records of `run`."""
    torch.set_num_threads(spec.threads)
    split = load_split(spec)

    def new_model() -> torch.nn.Module:
        return make_model(
            spec.model,
            shape=split.train.shape,
            num_classes=split.train.num_classes,
            seed=spec.seed,
        )

    Training(
        split=split,
        make_model=new_model,
        method=make(spec.method, spec.method_fields),
        recipe=spec.recipe,
        run=run,
        seed=spec.seed,
        device=torch.device(spec.device),
        observers=make_observers(spec.observe, split, spec.seed),
    ).finish()
