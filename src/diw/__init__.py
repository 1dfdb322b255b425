"""Importance weighting of deep networks under distribution shift.

Names are resolved on first use, so that `import diw` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from diw._version import __version__

if TYPE_CHECKING:
    from diw import weighting
    from diw.matching import KMM, Match, kmm, kmm_batch
    from diw.objective import Objective, Result
    from diw.step.batch import Batch, Weights
    from diw.step.rows import Indexed
    from diw.weighting import Weighting

_HOME = {
    "Batch": "diw.step.batch",
    "Indexed": "diw.step.rows",
    "KMM": "diw.matching",
    "Match": "diw.matching",
    "Objective": "diw.objective",
    "Result": "diw.objective",
    "Weighting": "diw.weighting",
    "Weights": "diw.step.batch",
    "kmm": "diw.matching",
    "kmm_batch": "diw.matching",
}

__all__ = [
    "KMM",
    "Batch",
    "Indexed",
    "Match",
    "Objective",
    "Result",
    "Weighting",
    "Weights",
    "__version__",
    "kmm",
    "kmm_batch",
    "weighting",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "weighting":
        return import_module("diw.weighting")
    raise AttributeError(f"module 'diw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
