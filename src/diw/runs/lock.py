"""Who writes to a run's folder: one process at a time, and for the run's own spec alone.

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
from errno import ENOSYS
from pathlib import Path
from typing import Any

from diw.errors import RunError, UsageError
from diw.runs.run import Run
from diw.runs.spec import RunSpec, spec_hash

LOCK = ".lock"
"""Held, inside a run's folder, by the process that writes to it."""

SILENT = 5.0
"""Seconds of waiting after which it is said what is waited for."""

DERIVED = ("passes", "patience", "ramp", "reduction", "threads")
"""What follows from other fields, and is no option of any command."""


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
        if (refusal := _refusal(folder)) is not None:
            raise _no_locks(folder, refusal) from None
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
    except OSError as error:
        raise _no_locks(folder, error) from None
    try:
        with suppress(OSError):  # it only makes the words of others better
            (folder / LOCK).write_text(json.dumps([os.getpid(), platform.node()]))
        yield
    finally:
        lock.release()


def _refusal(folder: Path) -> OSError | None:
    """Why the system gives no lock, if that is not because another process holds it."""
    if os.name == "posix":
        import fcntl

        try:
            with (folder / LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError as error:
            return None if error.errno == ENOSYS else error  # then a file of its own is the lock
    return None


def _no_locks(folder: Path, error: OSError) -> RunError:
    return RunError(
        f"{folder / LOCK}: cannot be locked: {error.strerror}; choose a folder on another disk"
    )


def is_held(folder: Path) -> bool:
    """Whether some process holds the lock of the run in `folder` at this moment."""
    from filelock import FileLock, Timeout

    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return _refusal(folder) is None
    except OSError:
        return False


def claim(spec: RunSpec, run: Run, *, fresh: bool = False) -> None:
    """Make sure that the folder of `run` is that of `spec` or free, under the run's lock.

    With `fresh`, the run that it holds is discarded. Another run, or files that no run wrote,
    are refused.
    """
    check_claim(spec, run, fresh=fresh)
    if fresh:
        run.forget()


def check_claim(spec: RunSpec, run: Run, *, fresh: bool = False) -> None:
    """Refuse a folder that `claim` would refuse, without touching it."""
    if not (run.folder / "spec.json").exists():
        if any(not entry.name.startswith(".") for entry in run.folder.glob("*")):
            raise UsageError(f"out: {run.folder} holds other files; choose a new or empty folder")
        return
    if fresh and (run.folder / LOCK).exists():
        return  # a run, whatever has become of its spec
    from diw.runs.sources import as_held

    held = Run(run.folder).spec  # what is not the spec of a run is refused here
    now = as_held(spec, held)
    if not fresh and spec_hash(held.as_json()) != spec_hash(now.as_json()):
        differences = _differences(held.as_json(), now.as_json())
        raise UsageError(
            f"out: {run.folder} holds another run ({differences}); "
            "choose another folder, or replace it with --fresh"
        )


def discard(run: Run, timeout: float | None = None) -> None:
    """Remove what a run wrote, when nobody works on it any more."""
    if run.folder.exists():
        with holding(run.folder, timeout):
            run.forget()


def tidy(run: Run) -> None:
    """Remove what a kill at the very end of a finished run left, unless someone works on it."""
    if run.untidy and run.finished and not is_held(run.folder):
        with holding(run.folder):
            if run.finished:
                run.tidy()


def _holder(folder: Path) -> str:
    """The process that holds the lock, in words."""
    try:
        process, host = json.loads((folder / LOCK).read_text())
    except (OSError, ValueError, TypeError):
        return "another process"
    return f"process {process} on {host}"


def _differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """`epochs 60, now 5; …`, the first few.

    Files that changed come first: the recipe may follow from them.
    """
    old, new = (json.loads(json.dumps(spec.get("files", {}))) for spec in (before, now))
    changed = [name for name in old if name in new and old[name] != new[name]]
    if changed and old.keys() == new.keys():
        return f"of {', '.join(changed)} before it changed"
    flat_before, flat_now = _flat(before), _flat(now)
    names = [n for n in {**flat_before, **flat_now} if flat_before.get(n) != flat_now.get(n)]
    if "method" in names:
        names = ["method"]
    names = [name for name in names if name not in DERIVED] or names
    said = [f"{name} {flat_before.get(name)}, now {flat_now.get(name)}" for name in names[:3]]
    return "; ".join(said) + (" …" if len(names) > 3 else "")


def _flat(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec's plain values as JSON keeps them, the method's fields beside the others."""
    plain = json.loads(json.dumps(spec))
    fields = plain.pop("method_fields", {})
    plain.pop("files", None)
    return {**plain, **fields}
