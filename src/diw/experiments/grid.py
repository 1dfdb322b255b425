"""Running many specs: through joblib, so that one machine and a cluster share the code.

A run is the unit of work: idempotent, locked while it trains, resumed from its
last epoch. A worker that dies loses nothing but the epoch it was in; whoever
takes the run up next goes on from there.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from diw.errors import UsageError
from diw.records import Run, RunSpec

Engine = Literal["local", "dask"]


def run_all(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    jobs: int = 1,
    engine: Engine = "local",
    scheduler: str | None = None,
) -> list[Run]:
    """Bring every run to its end and return them in the order of `specs`.

    Args:
        specs: What to run; finished runs cost nothing.
        folder: Where the runs' folders are; all workers of a cluster must see it.
        jobs: How many at once on this machine, each in a process of its own; 1 runs in this one.
        engine: "local", or "dask" for a cluster with the same code.
        scheduler: The address of the cluster's scheduler.
    """
    _run(specs, folder, _work, jobs=jobs, engine=engine, scheduler=scheduler)
    return [spec.run(folder) for spec in specs]


def try_all(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    jobs: int = 1,
    engine: Engine = "local",
    scheduler: str | None = None,
) -> dict[str, str]:
    """As `run_all`, but a run that fails does not stop the others.

    Returns:
        Why each failed run failed, by the name of its folder.
    """
    failures = _run(specs, folder, _attempt, jobs=jobs, engine=engine, scheduler=scheduler)
    return {name: reason for name, reason in failures if reason}


def _run(
    specs: Sequence[RunSpec],
    folder: Path,
    work: Callable[[RunSpec, Path], Any],
    *,
    jobs: int,
    engine: Engine,
    scheduler: str | None,
) -> list[Any]:
    unique = {spec.run(folder).folder.name: spec for spec in specs}
    pending = [spec for spec in unique.values() if not spec.run(folder).finished]
    if not pending:
        return []
    if engine == "dask":
        from diw.experiments.cluster import run_on_cluster

        if scheduler is None:
            raise UsageError("scheduler: give the address of a dask scheduler, tcp://HOST:PORT")
        return run_on_cluster(pending, folder.absolute(), work, scheduler)
    jobs = min(jobs, len(pending))
    if jobs == 1:
        return [work(spec, folder) for spec in _free_first(pending, folder)]
    return _run_parallel(pending, folder, work, jobs)


def _run_parallel(
    specs: Sequence[RunSpec], folder: Path, work: Callable[[RunSpec, Path], Any], jobs: int
) -> list[Any]:
    import joblib

    threads = max(spec.threads for spec in specs)
    # Batches of one: runs take minutes, and a worker must not hold two. The thread limit
    # reaches every numerical library of a worker, so that jobs do not fight over cores.
    with joblib.parallel_config(backend="loky", inner_max_num_threads=threads):
        parallel = joblib.Parallel(
            n_jobs=jobs,
            batch_size=1,  # pyright: ignore[reportArgumentType] (typed by its default "auto")
            pre_dispatch=str(jobs),
        )
        child = joblib.delayed(_in_child)
        queue = _free_first(specs, folder)
        return list(parallel(child(work, spec, folder, os.getpid()) for spec in queue))


def _free_first(specs: Sequence[RunSpec], folder: Path) -> Iterator[RunSpec]:
    """The specs in order, but those last that another command trains when their turn comes.

    So that several commands share the work on one folder instead of waiting
    for each other; asked for one at a time, as workers become free.
    """
    from diw.experiments.execute import is_taken

    waiting = list(specs)
    while waiting:
        free = (spec for spec in waiting if not is_taken(spec.run(folder)))
        spec = next(free, waiting[0])
        waiting.remove(spec)
        yield spec


def _work(spec: RunSpec, folder: Path) -> None:
    from diw.experiments.execute import execute

    execute(spec, folder)


def _attempt(spec: RunSpec, folder: Path) -> tuple[str, str]:
    name = spec.run(folder).folder.name
    try:
        _work(spec, folder)
    except Exception as error:  # whatever it is, the other runs go on and this one is named
        return name, f"{spec.method} seed {spec.seed}: {type(error).__name__}: {error}"
    return name, ""


def _in_child(
    work: Callable[[RunSpec, Path], Any], spec: RunSpec, folder: Path, parent: int
) -> Any:
    """One spec in a worker: Ctrl-C is the parent's to handle, and no worker outlives its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    return work(spec, folder)


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
