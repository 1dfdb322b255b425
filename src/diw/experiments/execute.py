"""Running one spec: an idempotent unit of work that one process at a time takes up."""

from pathlib import Path

import torch
from filelock import FileLock, Timeout

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
    """Bring `run`, the run of `spec`, to its end, from wherever it stands.

    A finished run is left alone; an interrupted one goes on. The operating system
    holds the lock, so it is free again when its holder dies.
    """
    if run.finished:
        return run
    run.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(run.folder / LOCK):
        if not run.finished:
            training = make_training(spec, Run.create(run.folder, spec.as_json()))
            _describe(spec, run)
            training.finish()
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


def make_training(spec: RunSpec, run: Run) -> Training:
    """The training that `spec` describes, recorded in `run`; sets this process's threads."""
    torch.set_num_threads(spec.threads)
    split = load_split(spec)
    name, shape, classes = _model_name(spec), split.train.shape, split.train.num_classes
    return Training(
        split=split,
        make_model=lambda: make_model(name, shape=shape, num_classes=classes, seed=spec.seed),
        method=make(spec.method, spec.method_fields),
        recipe=spec.recipe,
        run=run,
        seed=spec.seed,
        device=torch.device(spec.device),
        observers=make_observers(spec.observe, split, spec.seed),
    )


def _describe(spec: RunSpec, run: Run) -> None:
    """Record what the run's data are and how files for its network are read."""
    bundle, split = load_bundle(spec), load_split(spec)
    if bundle.encoding is not None:
        write_encoding(run, bundle.encoding, _model_name(spec), split.train.shape)
    facts = {
        "scored_on": split.scored_on,
        **split.facts,
        "notes": [str(note) for note in bundle.notes],
    }
    write_json(run.folder / "facts.json", facts)


def _model_name(spec: RunSpec) -> str:
    return default_model(load_bundle(spec)) if spec.model == "auto" else spec.model
