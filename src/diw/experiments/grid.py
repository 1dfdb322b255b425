"""Running many specs: through joblib, so that one machine and a cluster share the code."""

import os
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from diw.experiments.spec import RunSpec
from diw.records import Run


def run_all(specs: Sequence[RunSpec], folder: Path, *, jobs: int = 1) -> list[Run]:
    """Bring every run to its end and return them in the order of `specs`.

    Args:
        specs: What to run; finished runs cost nothing.
        folder: Where the runs' folders are.
        jobs: How many at once, each in a process of its own; 1 runs in this process.
    """
    from diw.experiments.execute import execute

    pending = [spec for spec in specs if not spec.run(folder).finished]
    if jobs == 1 or len(pending) <= 1:
        for spec in pending:
            execute(spec, folder)
    else:
        _run_parallel(pending, folder, min(jobs, len(pending)))
    return [spec.run(folder) for spec in specs]


def _run_parallel(specs: Iterable[RunSpec], folder: Path, jobs: int) -> None:
    import joblib

    # Batches of one: runs take minutes, and a worker must not hold two.
    parallel = joblib.Parallel(
        n_jobs=jobs,
        backend="loky",
        batch_size=1,  # pyright: ignore[reportArgumentType] (typed by its default "auto")
        pre_dispatch=str(jobs),
    )
    parallel(joblib.delayed(_work)(spec, folder, os.getpid()) for spec in specs)


def _work(spec: RunSpec, folder: Path, parent: int) -> None:
    """One spec in a worker: Ctrl-C is the parent's to handle, and no worker outlives its parent."""
    from diw.experiments.execute import execute

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    execute(spec, folder)


def _die_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
