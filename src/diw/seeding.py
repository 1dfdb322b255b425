"""Randomness from (seed, purpose): every consumer has a stream of its own, and nothing is global.

Two purposes never share a stream, so drawing one number more in one place
(another method, another probe) changes nothing anywhere else: this is what
makes trials of different methods paired by construction.
"""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed from `seed` and a purpose, the same on every machine and in every process.

    Args:
        seed: The seed a user gave.
        purpose: Words or numbers that name the stream, e.g. `"noise"` or `("pretrain", 3)`.
    """
    text = "\x1f".join([str(int(seed)), *map(str, purpose)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A NumPy generator for one purpose, see `derive`."""
    return np.random.Generator(np.random.PCG64(derive(seed, *purpose)))


def torch_generator(seed: int, *purpose: str | int) -> "torch.Generator":
    """A CPU torch generator for one purpose, see `derive`.

    Always on the CPU: draws are then the same whatever device trains.
    """
    import torch

    return torch.Generator().manual_seed(derive(seed, *purpose))
