"""A real dask scheduler and two worker processes on the loopback interface."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from diw.errors import RunError, UsageError
from diw.experiments.execute import execute
from diw.experiments.grid import run_all, try_all
from diw.experiments.sources import with_method
from diw.records import Recipe, RunSpec

pytest.importorskip("distributed")

SPEC = with_method(
    RunSpec(
        shift="symmetric:0.4",
        trusted=100,
        train_samples=1500,
        test_samples=100,
        model="mlp",
        recipe=Recipe(epochs=16, lr=1e-3),
    ),
    "diw",
)
SPECS = [replace(SPEC, seed=seed) for seed in range(3)]


class Cluster:
    """A scheduler and its workers, each a process of its own without a nanny to revive it."""

    def __init__(self, folder: Path, workers: int, threads: int = 1) -> None:
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        for _ in range(workers):
            options = ("--nthreads", str(threads), "--no-nanny", "--no-dashboard")
            self._start("worker", *options, "--local-directory", str(folder))

    @property
    def workers(self) -> list[subprocess.Popen]:
        return self.processes[1:]

    def _start(self, kind: str, *options: str) -> None:
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        quiet = subprocess.DEVNULL
        self.processes.append(
            subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
        )

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path):
    made: list[Cluster] = []

    def make(workers: int, threads: int = 1) -> Cluster:
        made.append(Cluster(tmp_path, workers, threads))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_worker_killed_mid_run_loses_nothing_and_nothing_is_done_twice(tmp_path, cluster) -> None:
    machines = cluster(2)
    folder = tmp_path / "runs"
    killed: list[int] = []

    def kill_one_at_work() -> None:
        """Once two runs are in progress both workers train, so either will do."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            begun = [spec for spec in SPECS if len(spec.run(folder).metrics()) >= 2]
            if len(begun) >= 2 and not any(spec.run(folder).finished for spec in SPECS):
                victim = machines.workers[0]
                os.kill(victim.pid, signal.SIGKILL)
                killed.append(victim.pid)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one_at_work)
    killer.start()
    failures = try_all(SPECS, folder, engine="dask", scheduler=machines.address)
    killer.join()
    assert failures == {}
    assert killed
    for spec in SPECS:
        run = spec.run(folder)
        assert run.finished
        assert [row["epoch"] for row in run.metrics()] == list(range(1, 17))
        alone = execute(spec, tmp_path / "alone")
        ours, theirs = load_file(run.model), load_file(alone.model)
        assert all((ours[name] == theirs[name]).all() for name in theirs)
        assert run.ledger().tobytes() == alone.ledger().tobytes()
    before = [spec.run(folder).model.stat().st_mtime_ns for spec in SPECS]
    run_all(SPECS, folder, engine="dask", scheduler="tcp://127.0.0.1:1")  # nothing left to ask for
    assert [spec.run(folder).model.stat().st_mtime_ns for spec in SPECS] == before


def test_workers_with_several_threads_are_refused(tmp_path, cluster) -> None:
    machines = cluster(1, threads=2)
    with pytest.raises(UsageError, match="has 2 threads; start the workers with --nthreads 1"):
        run_all(SPECS, tmp_path / "runs", engine="dask", scheduler=machines.address)


def test_a_scheduler_that_is_not_there_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("diw.experiments.grid.PATIENCE", 1)
    with pytest.raises(RunError, match=r"127\.0\.0\.1:1: cannot reach a dask scheduler"):
        run_all(SPECS, tmp_path, engine="dask", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="scheduler: give the address"):
        run_all(SPECS, tmp_path, engine="dask")
