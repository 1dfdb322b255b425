"""Kernel mean matching: exact, low-rank, with a status and an error bound."""

from diw.matching.kmm import kmm
from diw.matching.match import Match

__all__ = ["Match", "kmm"]
