"""`Problem`: the checked and scaled input of a match."""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from diw.matching import kernel as kernels
from diw.matching.backend import Array, Arrays, NumpyArrays, TorchArrays, largest
from diw.matching.options import Options

_NUMPY = NumpyArrays()
SMALL = 512  # up to so many rows the slow way is fast enough
_LARGEST = 1e300  # a γ beyond it makes K the identity just the same, and never meets ∞ · 0


@dataclass(frozen=True)
class Problem:
    """minimise ½wᵀ(K+ωI)w − kᵀw over 0 ≤ w ≤ B, low ≤ Σw ≤ high."""

    xp: Arrays
    z: Array
    """(n + m,) or (n + m, d) training, then trusted values; centred, scaled to magnitude one."""
    n: int
    gamma: float
    """γ for the scaled values."""
    given_gamma: float
    """γ for the values as they were given."""
    ridge: float
    bound: float
    slack: float

    @property
    def low(self) -> float:
        """The smallest sum allowed."""
        return self.n * (1.0 - self.slack)

    @property
    def high(self) -> float:
        """The largest sum allowed."""
        return self.n * (1.0 + self.slack)


def problem(z_train: Any, z_trusted: Any, options: Options) -> Problem:
    """Check the values of `kmm` and bring them into a common, harmless scale.

    Raises:
        ValueError: The values cannot work; the message names the argument.
    """
    xp = _arrays(z_train, options.backend)
    train, trusted = _values(xp, "z_train", z_train), _values(xp, "z_trusted", z_trusted)
    if train.shape[1:] != trusted.shape[1:]:
        raise ValueError(
            f"z_trusted: rows of shape {tuple(trusted.shape[1:])} do not match "
            f"z_train's {tuple(train.shape[1:])}"
        )
    n = len(train)
    slack, bound = options.slack, options.bound
    if slack is None:
        slack = (math.sqrt(n) - 1.0) / math.sqrt(n)
    if bound < 1 - slack:
        raise ValueError(
            f"bound: {bound:g} is below 1 - slack = {1 - slack:g}, so no weights reach that mean"
        )
    z, unit = _scaled(xp, train, trusted)
    scaled, given = _gamma(options.gamma, z[:n], unit)
    return Problem(xp, z, n, scaled, given, float(options.ridge), float(bound), float(slack))


def _arrays(z: Any, backend: str) -> Arrays:
    """PyTorch for tensors on a device of their own that has float64, NumPy for the rest."""
    if backend == "numpy" or (backend == "auto" and not hasattr(z, "detach")):
        return _NUMPY
    device = z.device if hasattr(z, "detach") else "cpu"
    kind = getattr(device, "type", "cpu")
    if backend == "auto" and kind in ("cpu", "mps"):
        return _NUMPY
    return TorchArrays(device)


def _values(xp: Arrays, name: str, z: Any) -> Array:
    """Values in float64, finite, of shape (n,) or (n, d) with at least one entry."""
    if np.ma.is_masked(z):
        raise ValueError(f"{name}: has masked values; drop or fill them")
    tensor = hasattr(z, "detach")
    if z.is_complex() if tensor else np.iscomplexobj(z):
        raise ValueError(f"{name}: has complex numbers; give real ones")
    try:
        if tensor:
            z = z.detach()
            z = z.cpu().double().numpy() if isinstance(xp, NumpyArrays) else z
        values = xp.array(z)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name}: is not a dense array of numbers") from None
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"{name}: needs shape (n,) or (n, d) with at least one value, not {tuple(values.shape)}"
        )
    return values


def _scaled(xp: Arrays, train: Array, trusted: Array) -> tuple[Array, float]:
    """All values, divided by a power of two: exact, and no square overflows or vanishes.

    Many rows are centred first: `kernels.squared_distances` loses digits far from
    the origin and makes up for them by another way, which is slow. The centre is
    a median, so that an outlier does not round the rest away.
    """
    n = len(train)
    z = xp.empty(n + len(trusted), *train.shape[1:])
    z[:n] = train
    z[n:] = trusted
    if z.ndim == 2 and len(z) > SMALL:
        z -= xp.middle(z[:: len(z) // SMALL])
    size = largest(z)
    if not size < math.inf:
        name = "z_trusted" if largest(train) < math.inf else "z_train"
        raise ValueError(f"{name}: holds NaN or infinite values")
    if size == 0:
        return z, 1.0
    unit = 2.0 ** min(math.frexp(size)[1], 1023)
    z /= unit
    return z, unit


def _gamma(gamma: float | str | None, z: Array, unit: float) -> tuple[float, float]:
    """γ for the scaled values and for the given ones."""
    if gamma is None:
        gamma = kernels.LOSS_RULE if z.ndim == 1 else kernels.FEATURE_RULE
    if not isinstance(gamma, str):
        return min(float(gamma) * unit * unit, _LARGEST), float(gamma)
    value = kernels.width(z, gamma)
    if kernels.is_distance(gamma):
        return min(value * unit * unit * unit, _LARGEST), value * unit
    return min(value, _LARGEST), min(value / unit / unit, sys.float_info.max)
