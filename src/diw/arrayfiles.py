"""Reading `.npy` and `.npz` files that anyone may have made; free of torch.

Python objects are never unpickled, and no more memory is taken than the file can honestly fill.
"""

import zipfile
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from diw.errors import UsageError, one_line

MAX_BYTES = 1 << 32
"""The most bytes an array of an .npz may take; larger data belong in a memory-mapped .npy file."""

_MAX_RATIO = 1100  # deflate packs at most 1032 to 1, so no honest file announces more


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

    def read(self, name: str) -> NDArray[Any]:
        """One array, after checking the size that its header announces."""
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


def read_archive(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an `.npz` file by name."""
    with Archive(path) as archive:
        return {name: archive.read(name) for name in archive.names}


def map_array(path: Path) -> NDArray[Any]:
    """The array of an `.npy` file, memory-mapped and read-only."""
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
