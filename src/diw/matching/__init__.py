"""Kernel mean matching: exact, fast at any size, honest about its status."""

from diw.matching.kmm import KMM, kmm, kmm_batch
from diw.matching.match import Match
from diw.matching.options import MatchOptions, Options

__all__ = ["KMM", "Match", "MatchOptions", "Options", "kmm", "kmm_batch"]
