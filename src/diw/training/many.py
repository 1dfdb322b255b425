"""Many specs: how long they take, and running them here, in processes, or on a dask cluster.

A run is the unit of work: idempotent, locked while it trains, resumed from its
last epoch. A worker that dies loses only the epoch it was in; whoever takes the
run up next goes on from there.
"""

import asyncio
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import torch

from diw.errors import RunError, UsageError
from diw.methods import describe, find
from diw.runs import Run, RunSpec, is_held, tidy
from diw.runs.sources import Source
from diw.training.recorded import Recorded, Work, execute, make_recorded, with_method
from diw.training.scores import evaluate

PATIENCE = 30
"""Seconds to wait for the scheduler and the first worker."""

SILENT = 5.0
"""Seconds without any worker after which that is said."""

LOOK = 0.2
"""Seconds between two looks at the cluster."""

SCORED = 1000
"""Test samples that are scored to see how long that takes."""


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


def run_on_cluster(
    specs: Sequence[RunSpec], folder: Path, work: Work, scheduler: str, timeout: float | None
) -> list[Any]:
    """Run the specs on the workers of a dask scheduler; the results in their order.

    The scheduler gives the runs of a worker that dies to another one, which
    goes on from the last checkpoint.

    Args:
        specs: What to run.
        folder: An absolute path on a file system that all workers share and that supports locks.
        work: What is done for each spec; its first error stops the rest.
        scheduler: The scheduler's address.
        timeout: Seconds without any worker after which to give up; None waits for ever.
    """
    with _connected(scheduler, "engine") as client:
        _check_threads(client, scheduler)
        futures = [client.submit(work, spec, folder, pure=False) for spec in specs]
        _wait(client, futures, scheduler, timeout)
        return [future.result() for future in futures]


@contextmanager
def spread_on_cluster(
    scheduler: str, timeout: float | None = None
) -> Generator[Callable[..., list[Any]]]:
    """A function that applies another one to parts of data, on the workers of a dask scheduler.

    Yields a function of (function, parts, *arguments), whose results are in the order of the
    parts. Parts of a worker that dies are done again by another one.

    Args:
        scheduler: The scheduler's address.
        timeout: Seconds without any worker after which to give up; None waits for ever.
    """
    with _connected(scheduler, "scheduler") as client:

        def spread(
            function: Callable[..., Any], parts: Sequence[Any], *arguments: Any
        ) -> list[Any]:
            futures = [client.submit(function, part, *arguments, pure=False) for part in parts]
            _wait(client, futures, scheduler, timeout)
            return client.gather(futures)

        yield spread


@contextmanager
def _connected(scheduler: str, argument: str) -> Generator[Any]:
    """A client of a scheduler that has workers."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            f"{argument}: dask is not installed; install it with: pip install 'diw[cluster]'"
        ) from None
    try:
        with ThreadPoolExecutor(1) as beside:  # a notebook has a loop of its own
            beside.submit(asyncio.run, _greet(scheduler)).result()
        client = Client(scheduler, timeout=f"{PATIENCE}s", set_as_default=False)
    except (OSError, ValueError, MemoryError) as error:  # another service's words, taken for sizes
        raise RunError(f"{scheduler}: cannot reach a dask scheduler there: {error}") from None
    for name in ("distributed.client", "distributed.core", "distributed.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said below, in a line
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise RunError(
                f"{scheduler}: no worker has joined; start some with: "
                f"dask worker {scheduler} --nthreads 1 --nworkers auto"
            ) from None
        yield client


async def _greet(scheduler: str) -> None:
    """Exchange greetings with a scheduler; a client that fails at it may block the next one."""
    from distributed.comm.core import connect

    await (await connect(scheduler, timeout=PATIENCE)).close()


def _check_threads(client: Any, scheduler: str) -> None:
    """Refuse workers that train two networks in one process.

    Dropout and the like draw from torch's global generator, which two trainings would share.
    """
    threads = client.nthreads()
    if any(count != 1 for count in threads.values()):
        raise UsageError(
            f"scheduler: a worker of {scheduler} has {max(threads.values())} threads; start the "
            "workers with --nthreads 1, and --nworkers for more than one per machine"
        )


def _wait(client: Any, futures: Sequence[Any], scheduler: str, timeout: float | None) -> None:
    """Return when all have finished; an error of any, or the end of the cluster, is raised."""
    from distributed import KilledWorker

    alone_since, said = None, False
    while True:
        states = [future.status for future in futures]
        if "error" in states:
            try:
                futures[states.index("error")].result()
            except KilledWorker as error:
                raise RunError(f"{scheduler}: workers died again and again: {error}") from None
        if client.status != "running" or "cancelled" in states or "lost" in states:
            raise RunError(f"{scheduler}: the dask scheduler is gone; the same command goes on")
        if all(state == "finished" for state in states):
            return
        try:
            alone = not client.nthreads()
        except (OSError, TimeoutError):
            continue  # the client notices, and its status says so
        now = time.monotonic()
        alone_since = (alone_since or now) if alone else None
        waited = now - alone_since if alone_since is not None else 0.0
        if timeout is not None and waited > timeout:
            raise RunError(f"{scheduler}: no worker is left; gave up after {timeout:g} seconds")
        if waited > SILENT and not said:
            print(
                f"diw: {scheduler}: no worker is left; waiting for one", file=sys.stderr, flush=True
            )
        said = waited > SILENT
        time.sleep(LOOK)


class Stopwatch:
    """Estimates the time of runs, measuring each method once per data set, network and batch."""

    def __init__(self) -> None:
        self._steps: dict[str, float] = {}
        self._evaluations: dict[str, float] = {}

    def seconds(self, specs: Iterable[RunSpec]) -> float:
        """The time of some runs one after the other, on one core each.

        Epochs and pretraining are counted; the single match of a static method is not. All are
        measured on the data of the first one's seed, which need not be drawn again then.
        """
        some = list(specs)
        return sum(self._run(replace(spec, seed=some[0].seed, observe=())) for spec in some)

    def _run(self, spec: RunSpec) -> float:
        split, recipe = Source.of(spec).split, spec.recipe
        steps = ceil(len(split.train) / recipe.batch_size) * (recipe.passes or 1)
        scoring = len(split.test) * self._evaluation(spec)
        pretraining = int(spec.method_fields.get("pretraining", 0))
        before = pretraining * (steps * self._step(spec, "uniform") + scoring)
        if spec.method == "clean" and recipe.passes is None:
            steps = ceil(len(split.trusted) / recipe.trusted_batch_size)
        method = find(spec.method).costs_like or spec.method
        return before + recipe.epochs * (steps * self._step(spec, method) + scoring)

    def _step(self, spec: RunSpec, method: str) -> float:
        """Seconds per training step."""
        sizes = (spec.recipe.batch_size, spec.recipe.trusted_batch_size)
        key = repr((spec.data, spec.model, sizes, method))
        if key not in self._steps:
            has = {field.name for field in describe(find(method))}
            own = {name: value for name, value in spec.method_fields.items() if name in has}
            if "pretraining" in has:  # its epochs are counted apart, and one is enough to go on
                own["pretraining"] = 1
            with _thrown_away(with_method(spec, method, own)) as recorded:
                self._steps[key] = recorded.training.trial_seconds()
        return self._steps[key]

    def _evaluation(self, spec: RunSpec) -> float:
        """Seconds per scored sample."""
        key = repr((spec.data, spec.model))
        if key not in self._evaluations:
            test = Source.of(spec).split.test
            part = test.subset(torch.arange(min(SCORED, len(test))))
            with _thrown_away(with_method(spec, "uniform")) as recorded:
                started = time.perf_counter()
                evaluate(recorded.model, part)
                self._evaluations[key] = (time.perf_counter() - started) / len(part)
        return self._evaluations[key]


@contextmanager
def _thrown_away(spec: RunSpec) -> Generator[Recorded]:
    """The training of a spec, in a folder that does not stay."""
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng(devices=[]):
        yield make_recorded(spec, Run.create(Path(folder), spec.as_json()))
