"""Which training labels look wrong, with a page to check them; and which shift it is.

Names are resolved on first use: the result and its pages need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diw.auditing.audits import audit
    from diw.auditing.diagnosis import Diagnosis, diagnose, diagnose_data
    from diw.auditing.result import Audit

_HOME = {
    "Audit": "result",
    "Diagnosis": "diagnosis",
    "audit": "audits",
    "diagnose": "diagnosis",
    "diagnose_data": "diagnosis",
}

__all__ = ["Audit", "Diagnosis", "audit", "diagnose", "diagnose_data"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"diw.auditing.{_HOME[name]}"), name)
    raise AttributeError(f"module 'diw.auditing' has no attribute {name!r}")
