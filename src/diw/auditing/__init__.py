"""The audit of training labels: which look wrong, a page to check them, and their corrections."""

from diw.auditing.audit import audit
from diw.auditing.result import Audit

__all__ = ["Audit", "audit"]
