"""Weights as the caller's kind of array."""

from typing import Any

import numpy as np

from diw.matching.backend import Array
from diw.matching.kernel import to_numpy


def like(z: Any, w: Array, bound: float) -> Any:
    """`w` with the kind, device and precision of `z`; rounding never lifts a weight past B."""
    tensor = hasattr(z, "detach")
    if tensor:
        single = z.is_floating_point() and z.itemsize < 8
    else:
        dtype = getattr(z, "dtype", None)
        single = dtype is not None and dtype.kind == "f" and dtype.itemsize < 8
    if tensor and not isinstance(w, np.ndarray):
        return w.float().clamp(max=float(_below(bound))) if single else w
    w = to_numpy(w)
    if single:
        w = np.minimum(w.astype(np.float32), _below(bound))
    if not tensor:
        return w
    import torch

    return torch.from_numpy(w).to(z.device)


def _below(bound: float) -> np.float32:
    """The largest float32 that is not above the bound."""
    value = np.float32(bound)
    return value if float(value) <= bound else np.nextafter(value, np.float32(0))
