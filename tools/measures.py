"""How large the project is, and how much of it runs: the figures that it is kept small by.

    python tools/measures.py

Lines are those of files, comments and blank lines included. A file counts as run if one of its
functions is called: definitions that an import executes do not count. Nothing here is a limit that
a test enforces.
"""

import contextlib
import inspect
import io
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "diw"
COMPARE = ("compare", "--methods", "uniform,remember", "--epochs", "3", "--seeds", "1")
LARGEST = 5
TIMES = 5


def main() -> None:
    """Print the measures."""
    sys.path.insert(0, str(ROOT / "src"))
    source = lines_of(SOURCE.rglob("*.py"))
    print(f"src/diw: {len(source)} files, {sum(source.values()):,} lines")
    for path, lines in sorted(source.items(), key=lambda item: -item[1])[:LARGEST]:
        print(f"  {lines:5} {path.relative_to(ROOT)}")
    reproduction = ROOT / "reproduction"
    own_tests = reproduction / "tests"
    scripts = [*SOURCE.rglob("*.js"), *SOURCE.rglob("*.css")]
    parts = {
        "src/diw, JavaScript and CSS": scripts,
        "tests": (ROOT / "tests").rglob("*.py"),
        "tools/soak": (ROOT / "tools" / "soak").glob("*.py"),
        "reproduction": reproduction.glob("*.py"),
        "reproduction/tests": own_tests.glob("*.py"),
    }
    for name, paths in parts.items():
        found = lines_of(paths)
        print(f"{name}: {len(found)} files, {sum(found.values()):,} lines")
    for name, work in (("kmm of 256 losses", matching()), ("diw compare", compare)):
        print(f"{name}: functions of {len(files_that_run(work))} files run")
    for words in (("-c", "import diw"), ("-m", "diw", "--help")):
        print(f"python {' '.join(words)}: {seconds(words):.3f} s")


def lines_of(paths: Iterable[Path]) -> dict[Path, int]:
    """The lines of each file."""
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def matching() -> Callable[[], object]:
    """A call that matches the losses of one mini-batch; everything is imported before it."""
    import numpy as np

    from diw import kmm

    generator = np.random.default_rng(0)
    losses, trusted = generator.exponential(size=256), generator.exponential(size=256) / 2
    return lambda: kmm(losses, trusted)


def compare() -> None:
    """Compare two methods on the embedded data, in this process."""
    from diw.cli.main import main as diw

    unread = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(unread),
        contextlib.redirect_stderr(unread),
    ):
        try:
            diw([*COMPARE, "--jobs", "1", "--out", folder])
        except SystemExit as end:
            code = end.code
    assert not code, unread.getvalue()


def files_that_run(work: Callable[[], object]) -> set[str]:
    """The files of `src/diw` of which a function is called while `work` is done."""
    found: set[str] = set()

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # The bodies of modules and classes, which an import runs, are no functions.
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            found.add(code.co_filename)

    threading.setprofile(called)
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {name for name in found if name.startswith(f"{SOURCE}{os.sep}")}


def seconds(words: tuple[str, ...]) -> float:
    """The median time of a new process of Python, its own start included."""

    def once(command: tuple[str, ...]) -> float:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)
        return time.perf_counter() - started

    once(words)  # so that byte code is there
    return statistics.median(once(words) for _ in range(TIMES))


if __name__ == "__main__":
    main()
