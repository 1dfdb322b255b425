"""Where data sets are looked for, and whether their contents are the published ones."""

import gzip
import hashlib
import os
import zlib
from pathlib import Path

from diw.data.benchmarks.catalogue import Benchmark, DataFile
from diw.errors import RunError

DEBIAN = Path("/usr/share/datasets")
"""Where Debian's package `dataset-fashion-mnist` puts its files."""


def cache_folder() -> Path:
    """Where downloads are kept: `$XDG_CACHE_HOME/diw`, usually `~/.cache/diw`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diw"


def roots() -> tuple[Path, ...]:
    """The folders that may hold data sets, in the order they are searched."""
    own = os.environ.get("DIW_DATA")
    return (*([Path(own)] if own else []), cache_folder(), DEBIAN)


def find(benchmark: Benchmark) -> Path | None:
    """The first folder that holds all files of a data set (not yet verified), or None."""
    for root in roots():
        folder = root / benchmark.folder
        if all((folder / file.name).is_file() for file in benchmark.files):
            return folder
    return None


def read_content(path: Path, file: DataFile) -> bytes:
    """The unpacked, verified content of one file.

    Never reads more than the published size, whatever a file unpacks to.

    Raises:
        RunError: Truncated, altered or unreadable.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            content = stream.read(file.size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RunError(f"{path}: truncated or altered: {error}") from None
    if len(content) != file.size:
        found = f"{len(content):,}" if len(content) < file.size else "more"
        raise RunError(f"{path}: truncated or altered: {file.size:,} bytes expected, {found} found")
    algorithm, _, expected = file.digest.partition(":")
    digest = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if digest != expected:
        raise RunError(
            f"{path}: altered: its content has {algorithm} {digest[:12]}…, expected "
            f"{expected[:12]}…; replace it"
        )
    return content


def check_folder(benchmark: Benchmark, folder: Path) -> dict[str, str]:
    """For each file `"verified"` or what is wrong with it."""
    states: dict[str, str] = {}
    for file in benchmark.files:
        path = folder / file.name
        try:
            if path.is_file():
                read_content(path, file)
            states[file.name] = "verified" if path.is_file() else "missing"
        except RunError as error:
            states[file.name] = str(error).removeprefix(f"{path}: ")
    return states
