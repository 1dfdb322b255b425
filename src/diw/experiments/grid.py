"""Running many specs: in this process, in several, or on a cluster.

A run is the unit of work: idempotent, locked while it trains, resumed from its
last epoch. A worker that dies loses only the epoch it was in; whoever takes the
run up next goes on from there.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from diw.errors import RunError
from diw.experiments.execute import Work, execute, tidy
from diw.runs import RunSpec, is_held


def run_all(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    timeout: float | None = None,
) -> None:
    """Bring every run to its end; the first one that fails stops the rest.

    Args:
        specs: What to run; finished runs cost nothing.
        folder: Where the runs' folders are; all workers of a cluster must see it.
        jobs: Runs at once on this machine, each in a process of its own; 1 runs in this process.
        scheduler: To run on a dask cluster instead, the address of its scheduler, such as
            `tcp://10.0.0.1:8786`.
        timeout: Seconds to wait for another command that works on a run, or for a worker of the
            cluster; None waits for ever.
    """
    _run(specs, folder, partial(execute, timeout=timeout), jobs, scheduler, timeout)


def try_all(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    timeout: float | None = None,
    setup: Callable[[], None] | None = None,
) -> dict[str, str]:
    """As `run_all`, but a run that fails does not stop the others.

    `setup` is called in every process before it trains, for what runs need besides `diw`.

    Returns:
        Why each failed run failed, by the name of its folder.
    """
    work = partial(_attempt, setup=setup, timeout=timeout)
    failures = _run(specs, folder, work, jobs, scheduler, timeout)
    return {name: reason for name, reason in failures if reason}


def free_first(specs: Sequence[RunSpec], folder: Path) -> Iterator[RunSpec]:
    """The specs in order, but last those that another command trains when their turn comes.

    So that several commands share the work on one folder instead of waiting
    for each other. Specs are chosen one at a time, as workers become free.
    """
    waiting = list(specs)
    while waiting:
        free = (spec for spec in waiting if not is_held(spec.run(folder).folder))
        spec = next(free, waiting[0])
        waiting.remove(spec)
        yield spec


def _run(
    specs: Sequence[RunSpec],
    folder: Path,
    work: Work,
    jobs: int,
    scheduler: str | None,
    timeout: float | None,
) -> list[Any]:
    unique = {spec.run(folder).folder.name: spec for spec in specs}
    pending = [spec for spec in unique.values() if not spec.run(folder).finished]
    for spec in unique.values():
        tidy(spec.run(folder))
    if not pending:
        return []
    if scheduler is not None:
        from diw.experiments.cluster import run_on_cluster

        return run_on_cluster(pending, folder.absolute(), work, scheduler, timeout)
    jobs = min(jobs, len(pending))
    if jobs == 1:
        return [work(spec, folder) for spec in free_first(pending, folder)]
    return _run_in_processes(pending, folder, work, jobs)


def _attempt(
    spec: RunSpec, folder: Path, setup: Callable[[], None] | None, timeout: float | None
) -> tuple[str, str]:
    name = spec.run(folder).folder.name
    if setup is not None:
        setup()
    try:
        execute(spec, folder, timeout)
    except Exception as error:  # whatever it is, the other runs go on and this one is named
        return name, f"{spec.method} seed {spec.seed}: {type(error).__name__}: {error}"
    return name, ""


def _run_in_processes(specs: Sequence[RunSpec], folder: Path, work: Work, jobs: int) -> list[Any]:
    import joblib

    threads = max(spec.threads for spec in specs)
    # Batches of one: runs take minutes, and a worker must not hold two. The thread limit
    # reaches every numerical library of a worker, so that jobs do not compete for cores.
    with joblib.parallel_config(backend="loky", inner_max_num_threads=threads):
        parallel = joblib.Parallel(
            n_jobs=jobs,
            batch_size=1,  # pyright: ignore[reportArgumentType] (typed by its default "auto")
            pre_dispatch=str(jobs),
        )
        child = joblib.delayed(_in_child)
        queue = free_first(specs, folder)
        tasks = (child(work, spec, folder, os.getpid()) for spec in queue)
        try:
            return list(parallel(tasks))
        except BrokenProcessPool:
            raise RunError(
                "a process that trained a run was killed, perhaps for want of memory; the same "
                "command goes on, with fewer --jobs if need be"
            ) from None


def _in_child(work: Work, spec: RunSpec, folder: Path, parent: int) -> Any:
    """Run one spec in a worker: the parent handles Ctrl-C, and no worker outlives its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    return work(spec, folder)


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
