"""The lock of a run: one process at a time writes to its folder.

The operating system holds the lock, so it is free again when its holder dies. When a run is
discarded, the file of the lock and the folder stay: a command that waits for the lock and one that
comes later must see the same file.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from diw.errors import RunError

LOCK = ".lock"
"""Held, inside a run's folder, by the process that writes to it."""

SILENT = 5.0
"""Seconds of waiting after which it is said what is waited for."""


@contextmanager
def holding(folder: Path, timeout: float | None = None) -> Generator[None]:
    """Hold the lock of the run in `folder`, which is made if need be, within the block.

    Args:
        folder: The run's.
        timeout: Seconds after which to give up with a `RunError`; None waits for ever.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    patience = SILENT if timeout is None else min(SILENT, timeout)
    started = time.monotonic()
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        rest = -1 if timeout is None else timeout - (time.monotonic() - started)
        if timeout is None or rest > 0:
            print(
                f"diw: {folder}: waiting for {_holder(folder)}, which works on this run",
                file=sys.stderr,
                flush=True,
            )
        try:
            lock.acquire(timeout=rest if timeout is None else max(0.0, rest))
        except Timeout:
            raise RunError(
                f"{folder}: {_holder(folder)} works on this run; gave up after {timeout:g} seconds"
            ) from None
    try:
        with suppress(OSError):  # it only makes the words of others better
            (folder / LOCK).write_text(json.dumps([os.getpid(), platform.node()]))
        yield
    finally:
        lock.release()


def is_held(folder: Path) -> bool:
    """Whether some process holds the lock of the run in `folder` at this moment."""
    from filelock import FileLock, Timeout

    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True


def _holder(folder: Path) -> str:
    """The process that holds the lock, in words."""
    try:
        process, host = json.loads((folder / LOCK).read_text())
    except (OSError, ValueError, TypeError):
        return "another process"
    return f"process {process} on {host}"
