"""Time and peak memory of a Python program in a process of its own.

    python -m benchmarks.alone ARGUMENTS...

runs `python ARGUMENTS...` and adds one line of JSON to its output. This small
process in between is needed because the system counts a new process's peak
memory from that of the process that starts it.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Alone:
    """Time, memory and output of a process that has ended."""

    wall: float
    """Seconds of wall time."""
    processor: float
    """Seconds of processor time, of all threads."""
    peak: float
    """Peak memory in GiB."""
    output: str


def run_alone(arguments: Sequence[str], *, threads: int = 1) -> Alone:
    """Run `python ARGUMENTS` with a number of threads."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.alone", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | dict.fromkeys(THREADS, str(threads)),
        check=True,
    )
    output, _, figures = done.stdout.rstrip("\n").rpartition("\n")
    return Alone(**json.loads(figures), output=output)


def _launch(arguments: Sequence[str]) -> None:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=False)
    wall = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 2**30 if sys.platform == "darwin" else 2**20
    figures = {"wall": wall, "processor": usage.ru_utime + usage.ru_stime}
    print(json.dumps(figures | {"peak": usage.ru_maxrss / unit}), flush=True)
    sys.exit(done.returncode)


if __name__ == "__main__":
    _launch(sys.argv[1:])
