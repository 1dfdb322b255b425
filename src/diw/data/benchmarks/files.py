"""The files of a benchmark: where they are, whether they are the published ones, and downloads.

A download is moved into the cache folder when it is complete and verified, or not at all.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, cast

from filelock import FileLock

from diw.data.benchmarks.catalogue import Benchmark, DataFile, Download
from diw.errors import RunError, UsageError

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
    """The unpacked, verified content of one file; a truncated or altered one raises `RunError`.

    Never reads more than the published size, whatever a file unpacks to.
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


def fetch(benchmark: Benchmark, *, progress: bool = True) -> Path:
    """The folder of a data set, downloaded from its official address unless it is there already.

    Everything happens in a temporary folder beside the final one, which appears
    by one rename when all files are verified; two processes do not download twice.
    """
    cache = cache_folder()
    final = cache / benchmark.folder
    found = find(benchmark)
    if found is not None and found != final:
        _verify(benchmark, found)
        return found
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / f"{benchmark.folder}.lock"):
        if set(check_folder(benchmark, final).values()) == {"verified"}:
            return final
        unfinished = cache / f".{benchmark.folder}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        try:
            ready = unfinished / "ready"
            ready.mkdir(parents=True)
            for download in benchmark.downloads:
                file = _download(download, unfinished, progress)
                if file.name.endswith(".tar.gz"):
                    extract(file, ready, benchmark.files)
                else:
                    file.rename(ready / file.name)
            _verify(benchmark, ready)
            if final.exists():
                shutil.rmtree(final)
            ready.rename(final)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return final


def _verify(benchmark: Benchmark, folder: Path) -> None:
    for file in benchmark.files:
        read_content(folder / file.name, file)


def extract(archive: Path, folder: Path, files: tuple[DataFile, ...]) -> None:
    """Write the wanted files of a .tar.gz into `folder`, and nothing else anywhere.

    Members are found by the last part of their name, must be regular files of
    the published size, and are written under our own names: paths that climb
    out, links and devices in an archive have no effect.
    """
    wanted = {file.name: file for file in files}
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                file = wanted.get(PurePosixPath(member.name).name)
                if file is None or not member.isreg() or member.size != file.size:
                    continue
                stream = members.extractfile(member)
                if stream is None:
                    continue
                with stream, (folder / file.name).open("wb") as copy:
                    shutil.copyfileobj(stream, copy)
                del wanted[file.name]
    except (tarfile.TarError, OSError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RunError(f"{archive.name}: cannot be unpacked: {error}") from None
    if wanted:
        raise RunError(f"{archive.name}: does not hold {', '.join(sorted(wanted))}")


def _download(download: Download, folder: Path, progress: bool) -> Path:
    """One file, checked against its md5, in `folder`."""
    try:
        import pooch
        import requests
        from tqdm import tqdm
    except ImportError:
        raise UsageError(
            "data: downloading needs pooch: install diw with the extra 'data', or put the files "
            "into $DIW_DATA"
        ) from None
    name = download.url.rsplit("/", 1)[1]
    # None: no bar where there is no terminal.
    bar = tqdm(desc=name, total=1, unit="B", unit_scale=True, disable=None if progress else True)
    # pooch's annotations of its own downloader and of its bar do not fit its code.
    downloader = cast(
        Any, pooch.HTTPDownloader(progressbar=cast(Any, bar), chunk_size=1 << 18, timeout=60)
    )
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(
            pooch.retrieve(
                download.url,
                known_hash=f"md5:{download.md5}",
                fname=name,
                path=folder,
                downloader=downloader,
            )
        )
    except requests.exceptions.RequestException as error:
        raise RunError(f"{download.url}: cannot be downloaded: {_reason(error)}") from None
    except (OSError, ValueError) as error:  # pooch raises ValueError for a wrong hash
        raise RunError(f"{download.url}: cannot be downloaded: {error}") from None
    finally:
        bar.close()


def _reason(error: Exception) -> str:
    """The innermost cause: requests wraps it several times over."""
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__ or inner
    return str(inner)
