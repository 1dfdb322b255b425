"""Running one spec: an idempotent unit of work that one process at a time takes up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from diw.errors import UsageError
from diw.experiments.exporting import write_rows
from diw.experiments.sources import load_bundle, load_split
from diw.files import write_json
from diw.methods import make
from diw.models import default_model, make_model
from diw.predict import write_encoding
from diw.runs import LOCK, Run, RunSpec, holding, is_held, spec_hash
from diw.step.world import LOCAL, World
from diw.training import Training, make_observers

DERIVED = ("passes", "patience", "ramp", "reduction", "threads")
"""What follows from other fields, and is no option of any command."""

Work = Callable[[RunSpec, Path], Any]
"""What is done for a spec and the folder of all runs, such as `execute`; other processes can
import it."""


def execute(spec: RunSpec, folder: Path, timeout: float | None = None) -> Run:
    """Bring the run of `spec` below `folder` to its end, from wherever it stands.

    A finished run is left alone; an interrupted one goes on.

    Args:
        spec: What to run.
        folder: Where the runs' folders are.
        timeout: Seconds to wait for another process that works on this run; None waits for ever.
    """
    run = spec.run(folder)
    if run.finished:
        return run
    with holding(run.folder, timeout):
        claim(spec, run)
        bring_to_end(spec, run)
    return run


def bring_to_end(spec: RunSpec, run: Run, world: World = LOCAL) -> None:
    """Train what is left of the run of `spec`; this process holds its lock.

    Args:
        spec: What to run.
        run: Its folder.
        world: The processes that train it together: the first one holds the lock, and writes.
    """
    if world.agreed(run.finished):
        return
    if world.rank == 0:
        Run.create(run.folder, spec.as_json())
    training = make_training(spec, run, world)
    if world.rank == 0:
        _describe(spec, run)
    training.finish()


def claim(spec: RunSpec, run: Run, *, fresh: bool = False) -> None:
    """Make sure that the folder of `run` is that of `spec` or free, under the run's lock.

    With `fresh`, the run that it holds is discarded. Another run, or files that no run wrote,
    are refused.
    """
    check_claim(spec, run, fresh=fresh)
    if fresh:
        run.forget()


def check_claim(spec: RunSpec, run: Run, *, fresh: bool = False) -> None:
    """Refuse a folder that `claim` would refuse, without touching it."""
    if not (run.folder / "spec.json").exists():
        if any(not entry.name.startswith(".") for entry in run.folder.glob("*")):
            raise UsageError(f"out: {run.folder} holds other files; choose a new or empty folder")
        return
    held = Run(run.folder)
    if fresh and (run.folder / LOCK).exists():
        return  # a run, whatever has become of its spec
    before = held.spec.as_json()  # what is not the spec of a run is refused here
    if not fresh and spec_hash(before) != spec_hash(spec.as_json()):
        differences = _differences(before, spec.as_json())
        raise UsageError(
            f"out: {run.folder} holds another run ({differences}); "
            "choose another folder, or replace it with --fresh"
        )


def discard(run: Run, timeout: float | None = None) -> None:
    """Remove what a run wrote, when nobody works on it any more."""
    if run.folder.exists():
        with holding(run.folder, timeout):
            run.forget()


def tidy(run: Run) -> None:
    """Remove what a kill at the very end of a finished run left, unless someone works on it."""
    left = any(path.exists() for path in run.checkpoint_paths)
    if left and run.finished and not is_held(run.folder):
        with holding(run.folder):
            if run.finished:
                run.tidy()


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """`epochs 60, now 5; …`, the first few.

    Files that changed come first: the recipe may follow from them.
    """
    old, new = (json.loads(json.dumps(spec.get("files", {}))) for spec in (before, now))
    flat_before, flat_now = _flat(before), _flat(now)
    names = [n for n in {**flat_before, **flat_now} if flat_before.get(n) != flat_now.get(n)]
    if not names or (old.keys() == new.keys() and old != new):
        return "of the same files before they changed"
    if "method" in names:
        names = ["method"]
    names = [name for name in names if name not in DERIVED] or names
    said = [f"{name} {flat_before.get(name)}, now {flat_now.get(name)}" for name in names[:3]]
    return "; ".join(said) + (" …" if len(names) > 3 else "")


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec's plain values as JSON keeps them, the method's fields beside the others."""
    plain = json.loads(json.dumps(spec))
    fields = plain.pop("method_fields", {})
    plain.pop("files", None)
    return {**plain, **fields}


def make_training(spec: RunSpec, run: Run, world: World = LOCAL) -> Training:
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
        world=world,
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
    write_rows(run, spec)


def _model_name(spec: RunSpec) -> str:
    return default_model(load_bundle(spec)) if spec.model == "auto" else spec.model
