"""The benchmarks of the paper: what they are, where they are, and how they are read."""

from diw.data.benchmarks.catalogue import BENCHMARKS, Benchmark, get_benchmark
from diw.data.benchmarks.files import fetch, find
from diw.data.benchmarks.readers import (
    EMBEDDED,
    load_embedded,
    read_benchmark,
    synthetic_like,
)

__all__ = [
    "BENCHMARKS",
    "EMBEDDED",
    "Benchmark",
    "fetch",
    "find",
    "get_benchmark",
    "load_embedded",
    "read_benchmark",
    "synthetic_like",
]
