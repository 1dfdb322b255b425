"""Kernel mean matching: exact, fast at any size, honest about its status."""

from diw.matching.batch import kmm_batch
from diw.matching.estimator import KMM
from diw.matching.kmm import kmm
from diw.matching.match import Match

__all__ = ["KMM", "Match", "kmm", "kmm_batch"]
