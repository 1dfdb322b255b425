"""Importance weighting of deep networks under distribution shift.

Names are resolved on first use, so that `import diw` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from diw._version import __version__
from diw.deprecated import old_name

if TYPE_CHECKING:
    from diw import matching, methods
    from diw.auditing import Audit, Diagnosis, audit, diagnose
    from diw.integrations.reweighted import ImportanceWeighted as ImportanceWeighted
    from diw.integrations.sklearn import DIWClassifier as DIWClassifier
    from diw.integrations.sklearn import DIWRegressor as DIWRegressor
    from diw.integrations.trusted import TrustedClassifier as TrustedClassifier
    from diw.matching import KMM, Match, kmm, kmm_batch
    from diw.methods import Method
    from diw.objective import Objective, Result
    from diw.step.batch import Batch, Weights
    from diw.step.rows import IndexedDataset
    from diw.step.world import Distributed

_HOME = {
    "Audit": "diw.auditing",
    "Batch": "diw.step.batch",
    "Diagnosis": "diw.auditing",
    "Distributed": "diw.step.world",
    "IndexedDataset": "diw.step.rows",
    "KMM": "diw.matching",
    "Match": "diw.matching",
    "Objective": "diw.objective",
    "Result": "diw.objective",
    "Method": "diw.methods",
    "Weights": "diw.step.batch",
    "audit": "diw.auditing",
    "diagnose": "diw.auditing",
    "kmm": "diw.matching",
    "kmm_batch": "diw.matching",
}

# Names that need an extra. They are not in `__all__`, so that `from diw import *` works without.
_WITH_EXTRA = {
    "DIWClassifier": "diw.integrations.sklearn",
    "DIWRegressor": "diw.integrations.sklearn",
    "ImportanceWeighted": "diw.integrations.reweighted",
    "TrustedClassifier": "diw.integrations.trusted",
}

__all__ = [
    "KMM",
    "Audit",
    "Batch",
    "Diagnosis",
    "Distributed",
    "IndexedDataset",
    "Match",
    "Method",
    "Objective",
    "Result",
    "Weights",
    "__version__",
    "audit",
    "diagnose",
    "kmm",
    "kmm_batch",
    "matching",
    "methods",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name, _WITH_EXTRA.get(name))
    if home is not None:
        return getattr(import_module(home), name)
    if name in ("matching", "methods"):
        return import_module(f"diw.{name}")
    return old_name("diw", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_WITH_EXTRA])
