"""A real dask cluster on this machine, for tests."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


class Cluster:
    """A dask scheduler and its workers on this machine, each a process that nothing restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes: list[subprocess.Popen] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self._address(seconds=60)

    def _address(self, seconds: float) -> str:
        """Where the scheduler is, once it has written all of its file."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return json.loads(self.file.read_text())["address"]
            except (FileNotFoundError, json.JSONDecodeError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def add_worker(self, threads: int = 1) -> subprocess.Popen:
        options = ("--nthreads", str(threads), "--no-nanny", "--no-dashboard")
        return self._start("worker", *options, "--local-directory", str(self.folder))

    def _start(self, kind: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()
