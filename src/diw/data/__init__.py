"""Data sets: the benchmarks, the embedded subset, and files of one's own."""

from diw.data.dataset import Bundle, Dataset, Inputs
from diw.data.load import load

__all__ = ["Bundle", "Dataset", "Inputs", "load"]
