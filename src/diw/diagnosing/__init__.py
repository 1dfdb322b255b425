"""Which shift is it? Tests and estimates from training and trusted samples."""

from diw.diagnosing.diagnosis import Diagnosis, diagnose, diagnose_data

__all__ = ["Diagnosis", "diagnose", "diagnose_data"]
