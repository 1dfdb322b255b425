"""Importance weighting of deep networks under distribution shift.

Names are resolved on first use, so that `import diw` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from diw._version import __version__

if TYPE_CHECKING:
    from diw.matching import KMM, Match, kmm

_HOME = {
    "KMM": "diw.matching",
    "Match": "diw.matching",
    "kmm": "diw.matching",
}

__all__ = ["KMM", "Match", "__version__", "kmm"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'diw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
