"""Running specs on a dask cluster: the same joblib call with another backend."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from diw.errors import RunError, UsageError
from diw.records import RunSpec

PATIENCE = 30
"""Seconds to wait for the scheduler and its first worker."""


def run_on_cluster(
    specs: Sequence[RunSpec], folder: Path, work: Callable[[RunSpec, Path], Any], scheduler: str
) -> list[Any]:
    """Do `work(spec, folder)` for every spec on the workers of a dask scheduler.

    The scheduler gives the runs of a worker that dies to another one, which
    goes on from the last checkpoint. `folder` must be on a file system that all
    workers share and that honours locks.

    Args:
        specs: What to run.
        folder: Where the runs' folders are, an absolute path.
        work: Importable by the workers.
        scheduler: Its address, such as `tcp://10.0.0.1:8786`.
    """
    try:
        import joblib
        from distributed import Client
    except ImportError:
        raise UsageError(
            "engine: dask is not installed; install it with: pip install 'diw[cluster]'"
        ) from None
    try:
        client = Client(scheduler, timeout=f"{PATIENCE}s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise RunError(f"{scheduler}: cannot reach a dask scheduler there: {error}") from None
    with client:
        _check_workers(client, scheduler)
        with joblib.parallel_config(backend=_backend(client)):
            parallel = joblib.Parallel(
                n_jobs=-1,
                batch_size=1,  # pyright: ignore[reportArgumentType] (typed by its default "auto")
                pre_dispatch="all",
            )
            return list(parallel(joblib.delayed(work)(spec, folder) for spec in specs))


def _backend(client: Any) -> Any:
    """Joblib's dask backend, for clusters of one worker too.

    Joblib itself does the work in the calling process where it sees one worker alone: when the
    others have not joined yet, that would be all of it.
    """
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, super().effective_n_jobs(n_jobs))

    return Backend(client=client)


def _check_workers(client: Any, scheduler: str) -> None:
    """Refuse workers that train two networks in one process.

    Dropout and the like draw from torch's global generator, which two trainings would share.
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise RunError(
            f"{scheduler}: no worker has joined; start some with: "
            f"dask worker {scheduler} --nthreads 1 --nworkers auto"
        ) from None
    threads = client.nthreads()
    if any(count != 1 for count in threads.values()):
        raise UsageError(
            f"scheduler: a worker of {scheduler} has {max(threads.values())} threads; start the "
            "workers with --nthreads 1, and --nworkers for more than one on a machine"
        )
