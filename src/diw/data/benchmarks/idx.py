"""The idx format of MNIST and Fashion-MNIST: a header, then unsigned bytes."""

import struct
from math import prod

import numpy as np
import numpy.typing as npt

from diw.errors import RunError

_UNSIGNED_BYTE = 0x08


def parse_idx(content: bytes, name: str) -> npt.NDArray[np.uint8]:
    """The array in the (unpacked) content of an idx file of unsigned bytes.

    Args:
        content: The whole file.
        name: What messages call it.
    """
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise RunError(f"{name}: not an idx file of unsigned bytes")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise RunError(f"{name}: truncated in its header")
    shape = struct.unpack(f">{content[3]}I", content[4:start])
    if len(content) - start != prod(shape):
        raise RunError(f"{name}: {prod(shape):,} bytes announced, {len(content) - start:,} found")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
