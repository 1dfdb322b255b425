"""Running one spec: an idempotent unit that any process may take up, and only one at a time."""

from pathlib import Path

import torch
from filelock import FileLock, Timeout

from diw.data import Bundle
from diw.data.split import Split
from diw.experiments.sources import load_bundle, load_split
from diw.models import default_model, make_model
from diw.predicting import write_encoding
from diw.records import Run, RunSpec, write_json
from diw.training import Training, make_observers
from diw.weighting import make

LOCK = ".lock"
"""Held, inside a run's folder, by the process that trains it."""


def execute(spec: RunSpec, folder: Path) -> Run:
    """Bring the run of `spec` below `folder` to its end, from wherever it stands."""
    return execute_run(spec, spec.run(folder))


def execute_run(spec: RunSpec, run: Run) -> Run:
    """Bring `run`, which is to be the run of `spec`, to its end, from wherever it stands.

    A finished run is left alone; an interrupted one goes on. The lock belongs
    to the operating system, so it is free again when its holder dies.
    """
    if run.finished:
        return run
    run.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(run.folder / LOCK):
        if not run.finished:
            train(spec, Run.create(run.folder, spec.as_json()))
    return run


def is_taken(run: Run) -> bool:
    """Whether some process trains `run` at this moment."""
    if not (run.folder / LOCK).exists():
        return False
    try:
        with FileLock(run.folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def train(spec: RunSpec, run: Run) -> None:
    """Train what `spec` describes into the records of `run`."""
    torch.set_num_threads(spec.threads)
    bundle = load_bundle(spec)
    split = load_split(spec, bundle)
    name = default_model(bundle) if spec.model == "auto" else spec.model

    def new_model() -> torch.nn.Module:
        return make_model(
            name,
            shape=split.train.shape,
            num_classes=split.train.num_classes,
            seed=spec.seed,
        )

    _describe(run, bundle, split, name)
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


def _describe(run: Run, bundle: Bundle, split: Split, model: str) -> None:
    """Keep with the run what its data were and how files for it are to be read."""
    if bundle.encoding is not None:
        write_encoding(run, bundle.encoding, model, split.train.shape)
    facts = {"scored_on": split.scored_on, **split.facts, "notes": list(bundle.notes)}
    write_json(run.folder / "facts.json", facts)
