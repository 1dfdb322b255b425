"""The idx format of MNIST and Fashion-MNIST: a header, then unsigned bytes."""

import gzip
import struct
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError

LIMIT = 1 << 30
"""Bytes that an idx file may unpack to; the largest real one is 47 MB."""

_UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array in an idx file of unsigned bytes, gzipped or not.

    The header is checked before anything is unpacked, so that a small file
    cannot claim or unfold into more than `LIMIT` bytes.
    """
    unpack = gzip.open if path.suffix == ".gz" else open
    try:
        with unpack(path, "rb") as file:
            shape = _read_header(path, file.read(4), file.read)
            size = prod(shape)
            if size > LIMIT:
                raise UsageError(f"{path}: claims {size:,} bytes, more than the {LIMIT:,} allowed")
            # One byte more than claimed: a longer file is as wrong as a shorter one.
            content = file.read(size + 1)
    except (EOFError, zlib.error, OSError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if len(content) != size:
        raise UsageError(f"{path}: truncated or altered: {size:,} bytes expected after the header")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read_header(path: Path, magic: bytes, read: Callable[[int], bytes]) -> tuple[int, ...]:
    if len(magic) != 4 or magic[:2] != b"\0\0" or magic[2] != _UNSIGNED_BYTE or magic[3] == 0:
        raise UsageError(f"{path}: not an idx file of unsigned bytes")
    sizes = read(4 * magic[3])
    if len(sizes) != 4 * magic[3]:
        raise UsageError(f"{path}: truncated in its header")
    return struct.unpack(f">{magic[3]}I", sizes)
