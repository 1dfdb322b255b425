"""Data sets: the benchmarks, the embedded subset, and your own files."""

from diw.data.benchmarks import BENCHMARKS, EMBEDDED, Benchmark, find, get_benchmark
from diw.data.dataset import Bundle, Dataset, Inputs
from diw.data.encoding import Encoding
from diw.data.loading import load
from diw.data.notes import Note
from diw.data.own import FileRows, read_like
from diw.data.split import Split, stratified

__all__ = [
    "BENCHMARKS",
    "EMBEDDED",
    "Benchmark",
    "Bundle",
    "Dataset",
    "Encoding",
    "FileRows",
    "Inputs",
    "Note",
    "Split",
    "find",
    "get_benchmark",
    "load",
    "read_like",
    "stratified",
]
