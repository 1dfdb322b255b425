"""Files that a user names: nothing that was there is lost.

A command writes over no file that it reads, no file that a run names as its data, and no other
file that diw did not make. What diw made is known by its content: every folder that it writes to
has a list, `.made-by-diw`, in the format of `sha256sum`. A file that was edited since is its
user's.
"""

import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from diw.errors import UsageError
from diw.files import append, fingerprint, replacing
from diw.runs import LOCK, PRETRAINING, Run
from diw.runs.run import FILES

MADE = ".made-by-diw"
"""The list, in each folder, of what diw made there: a line with SHA-256 and name for each."""


class Outputs:
    """What one command writes, held against what it reads before any work is done.

    Attributes:
        force: Whether files that diw did not make are replaced; what is read never is.
    """

    def __init__(self, reads: Iterable[Path] = (), *, force: bool = False) -> None:
        """Take the files and folders that are read."""
        self.force = force
        self._reads: dict[object, Path] = {}
        self._claimed: set[str] = set()
        self.reads(*reads)

    def reads(self, *paths: Path) -> None:
        """Add files or folders that are read."""
        self._reads |= {_identity(path): path for path in paths}

    def reads_run(self, run: Run) -> None:
        """Add what `run` holds and the data that it names, wherever its command was given."""
        self.reads(*(run.folder / name for name in (LOCK, *FILES, PRETRAINING)))
        self.reads(*map(Path, run.spec.files))
        homes = list(run.folder.absolute().parents)
        with suppress(UsageError):  # a damaged file is reported by whoever needs it
            homes.append(run.folder / str(run.read("facts.json").get("home", ".")))
        named = [name for name in run.spec.files if Path(name).name not in ("", "..")]
        self.reads(*(home / name for home in homes for name in named))

    def file(self, path: Path, flag: str = "out") -> Path:
        """Refuse to write `path` where that cannot be done or something would be lost."""
        folder = path.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise UsageError(f"{flag}: cannot write {path}; its folder must exist and be writable")
        self._refuse_reads(path, flag)
        if not _is_stream(path):
            key = str(path.resolve()).casefold()
            if key in self._claimed:
                raise UsageError(f"{flag}: {path} is written by this command already; name another")
            self._claimed.add(key)
        _refuse_others(path, flag, force=self.force)
        return path

    def folder(self, path: Path, *names: str, flag: str = "out") -> Path:
        """Make the folder `path` if need be, for files of these names; refuse as `file` does."""
        self._refuse_reads(path, flag)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{flag}: cannot make {path}: {error.strerror}") from None
        if not os.access(path, os.W_OK):
            raise UsageError(f"{flag}: cannot write to {path}; choose another folder")
        for name in names:
            self.file(path / name, flag)
        return path

    def _refuse_reads(self, path: Path, flag: str) -> None:
        """Refuse a file or folder that is read, or lies in a folder that is."""
        if _is_stream(path):
            return
        whole = path.resolve()
        for place in (whole, *whole.parents):
            read = self._reads.get(_identity(place))
            if read is None:
                continue
            what = "read by this command" if place == whole else f"in {read}, which is read"
            raise UsageError(f"{flag}: {path} is {what}; choose another name")


@contextmanager
def creating(path: Path, *, force: bool = False) -> Generator[Path]:
    """`replacing` for a file that a user names: what diw did not make stays, unless by `force`."""
    _refuse_others(path, "out", force=force)
    with replacing(path) as temporary:
        yield temporary
        if not _is_stream(path):
            _refuse_others(path, "out", force=force)  # the work may have taken hours
            _remember(path.resolve(), temporary)


def create_text(path: Path, text: str, *, force: bool = False) -> None:
    """Write `text` as UTF-8, as `creating` does."""
    with creating(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def create_json(path: Path, content: object, *, force: bool = False) -> None:
    """Write `content` as indented JSON, as `creating` does."""
    create_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n", force=force)


def made_by_diw(path: Path) -> bool:
    """Whether diw made the file `path` as it is now."""
    path = path.resolve()
    with suppress(OSError):
        made = (path.parent / MADE).read_bytes().splitlines()
        digests = {line[:64] for line in made if line[66:] == os.fsencode(path.name)}
        return bool(digests) and fingerprint(path)["sha256"].encode() in digests
    return False


def _remember(path: Path, content: Path) -> None:
    """Add `path` to the list of what diw made, before it has that content: a kill loses nothing."""
    line = fingerprint(content)["sha256"].encode() + b"  " + os.fsencode(path.name)
    made = path.parent / MADE
    if not made.exists() or line not in made.read_bytes().splitlines():
        append(made, line + b"\n")


def _refuse_others(path: Path, flag: str, *, force: bool) -> None:
    """Refuse a file that is there and that diw did not make, unless by `force`."""
    if path.is_dir():
        raise UsageError(f"{flag}: {path} is a folder; name a file")
    if not force and path.exists() and not _is_stream(path) and not made_by_diw(path):
        raise UsageError(
            f"{flag}: {path} exists, and diw did not make it as it is; choose another name, "
            "or replace it with --force"
        )


def _is_stream(path: Path) -> bool:
    """Whether `path` is a pipe or a device, which holds nothing that could be lost."""
    there = path.exists() and not path.is_file() and not path.is_dir()
    return path.parts[:2] == ("/", "dev") or there


def _identity(path: Path) -> tuple[int, int] | str:
    """The same for two paths that lead to one file, by whatever names and links."""
    try:
        found = path.stat()
    except OSError:
        return str(path.resolve())
    return found.st_dev, found.st_ino
