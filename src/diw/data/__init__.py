"""Data sets: the benchmarks, the embedded subset, and files of one's own."""

from diw.data.benchmarks.catalogue import BENCHMARKS, Benchmark, get_benchmark
from diw.data.benchmarks.locate import find
from diw.data.dataset import Bundle, Dataset, Inputs
from diw.data.encoding import Encoding
from diw.data.loading import EMBEDDED, load
from diw.data.own import Rows, read_like

__all__ = [
    "BENCHMARKS",
    "EMBEDDED",
    "Benchmark",
    "Bundle",
    "Dataset",
    "Encoding",
    "Inputs",
    "Rows",
    "find",
    "get_benchmark",
    "load",
    "read_like",
]
