"""Running specs on the workers of a dask cluster."""

import logging
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diw.errors import RunError, UsageError
from diw.experiments.execute import Work
from diw.runs import RunSpec

PATIENCE = 30
"""Seconds to wait for the scheduler and the first worker."""

SILENT = 5.0
"""Seconds without any worker after which that is said."""

LOOK = 0.2
"""Seconds between two looks at the cluster."""


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
        client = Client(scheduler, timeout=f"{PATIENCE}s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
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
