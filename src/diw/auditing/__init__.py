"""Which training labels look wrong, with a page to check them; and which shift it is."""

from diw.auditing.audit import audit
from diw.auditing.diagnosis import Diagnosis, diagnose, diagnose_data
from diw.auditing.result import Audit

__all__ = ["Audit", "Diagnosis", "audit", "diagnose", "diagnose_data"]
