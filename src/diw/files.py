"""Writing files safely, and reading `.npy` and `.npz` files that anyone may have made.

After a kill or a power cut a file is as it was or as it should be: content reaches the disk before
the name that makes it visible (`replacing`), and what a file counts on before the file itself.
Where a reader must know that nothing has changed since, there is a checksum: inside the file
(`write_sealed`), or of the file, kept elsewhere (`fingerprint`).

Python objects are never unpickled, and no more memory is taken than a file can honestly fill.
"""

import glob
import hashlib
import json
import os
import platform
import tempfile
import time
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from diw.errors import DamageError, UsageError, one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEAL = b"diw sealed sha256 "
"""How a sealed file begins; then 64 hexadecimal digits, a line feed and the content."""

RECENT = 2_000_000_000
"""Nanoseconds after a change within which another one may have the same time."""

MAX_BYTES = 1 << 32
"""The most bytes an array of an .npz may take; larger data belong in a memory-mapped .npy file."""

_MAX_RATIO = 1100  # deflate packs at most 1032 to 1, so no honest file announces more

_HOST = hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()

Fingerprint = dict[str, Any]
"""`size` in bytes and `sha256` of a file."""


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block succeeds.

    The content reaches the disk before the name does, so a reader sees the old
    file or the whole new one, never a part. A pipe or a device is written to, and
    what a link points at is replaced, not the link. Temporary files that killed
    processes left are removed.
    """
    if path.parts[:2] == ("/", "dev") or (path.exists() and not path.is_file()):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "content"
            with _naming(path):
                path.write_bytes((Path(folder) / "content").read_bytes())
        return
    path = path.resolve() if path.is_symlink() else path
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{_HOST}-{os.getpid()}.tmp")
    with _naming(path, temporary):
        try:
            with temporary.open("wb") as file:
                mode = os.fstat(file.fileno()).st_mode
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.chmod(mode)  # some libraries make files that only their owner may read
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: object) -> None:
    """Write `content` as indented JSON, atomically."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file, and return when that is on the disk."""
    new = not path.exists()
    with _naming(path), path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a file's own sync does not cover its name."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_sealed(path: Path, content: bytes | memoryview) -> None:
    """Write `content` behind its checksum; `unseal` gives it back."""
    with path.open("wb") as file:
        file.write(SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n")
        file.write(content)


def unseal(path: Path, stored: bytes) -> bytes:
    """The content of what `write_sealed` wrote to `path`; anything else is a `DamageError`."""
    head, _, content = stored.partition(b"\n")
    if head != SEAL + hashlib.sha256(content).hexdigest().encode():
        raise DamageError(f"{path}: is damaged: its checksum is wrong")
    return content


def fingerprint(path: Path) -> Fingerprint:
    """Size and SHA-256 of a file, which is read once unless it is touched."""
    about = path.stat()
    touched = about.st_mtime_ns
    if time.time_ns() - touched < RECENT:  # it may change again without another time
        return _fingerprint.__wrapped__(path)
    return dict(_fingerprint(path.absolute(), about.st_ino, about.st_size, touched))


@lru_cache(maxsize=1 << 17)
def _fingerprint(path: Path, *_: int) -> Fingerprint:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"size": file.tell(), "sha256": digest.hexdigest()}


def remove_temporaries(path: Path) -> None:
    """Remove what killed writers of `path` left; nobody may be writing it now."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` whose writers, processes of this machine, have ended."""
    if os.name != "posix":
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.{_HOST}-*.tmp"):
        process = left.name.removesuffix(".tmp").rpartition("-")[2]
        if process.isdecimal() and not _is_alive(int(process)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def _naming(path: Path, temporary: Path | None = None) -> Generator[None]:
    """Name the file in errors of the system: that of a full disk comes without a name."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and str(error.filename) != str(temporary):
            raise
        raise OSError(error.errno, error.strerror or one_line(error), str(path)) from None


def plain_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula: with an apostrophe before =, +, - or @.

    Numbers are left as they are: −1 and +1 are usual names of classes.
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


class Archive:
    """The arrays of an `.npz` file, read one at a time; use it in a `with` block.

    Whatever is wrong with the file is a `UsageError` that names it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = zipfile.ZipFile(path)
        except Exception as error:  # zipfile raises many kinds for broken files
            raise self._unreadable(error) from None
        names = self._file.namelist()
        self.names = [name[:-4] for name in names if name.endswith(".npy")]

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, name: str) -> "NDArray[Any]":
        """One array, after checking the size that its header announces."""
        import numpy as np

        try:
            info = self._file.getinfo(f"{name}.npy")
            with self._file.open(info) as stream:
                size = _announced(stream, f"{self.path}: {name}")
            if size > MAX_BYTES or size > _MAX_RATIO * max(1, self.path.stat().st_size):
                raise UsageError(
                    f"{self.path}: {name} announces {size:,} bytes, too many; "
                    "save large data as .npy"
                )
            with self._file.open(info) as stream:
                array = np.lib.format.read_array(stream, allow_pickle=False)
                stream.read(1)  # at its end the checksum of the archive is compared
                return array
        except UsageError:
            raise
        except Exception as error:  # zipfile and zlib raise many kinds for broken files
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> UsageError:
        return UsageError(f"{self.path}: not a readable .npz file: {one_line(error)}")


def read_archive(path: Path) -> "dict[str, NDArray[Any]]":
    """All arrays of an `.npz` file by name."""
    with Archive(path) as archive:
        return {name: archive.read(name) for name in archive.names}


def map_array(path: Path) -> "NDArray[Any]":
    """The array of an `.npy` file, memory-mapped and read-only."""
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the header parser raises many kinds for broken files
        raise UsageError(f"{path}: not a readable .npy file: {one_line(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise UsageError(f"{path}: not an .npy file")
    return array


def _announced(stream: IO[bytes], source: str) -> int:
    """The bytes that this .npy header announces; Python objects are refused."""
    import numpy as np

    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise UsageError(f"{source}: unknown .npy version {version}")
    shape, _, dtype = readers[version](stream)
    if dtype.hasobject:
        raise UsageError(f"{source}: holds Python objects, which are never unpickled; save numbers")
    return dtype.itemsize * prod(shape)
