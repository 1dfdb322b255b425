"""Data sets: the benchmarks, the embedded subset, and your own files.

Names are resolved on first use, so that tables can be read without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diw.data.benchmarks import BENCHMARKS, EMBEDDED, Benchmark, find, get_benchmark
    from diw.data.checks import Note
    from diw.data.dataset import Bundle, Dataset, Inputs
    from diw.data.encoding import Encoding
    from diw.data.marks import Verified, read_verified
    from diw.data.read import FileRows, load, read_like
    from diw.data.split import Split, stratified

_HOME = {
    "BENCHMARKS": "benchmarks",
    "EMBEDDED": "benchmarks",
    "Benchmark": "benchmarks",
    "Bundle": "dataset",
    "Dataset": "dataset",
    "Encoding": "encoding",
    "FileRows": "read",
    "Inputs": "dataset",
    "Note": "checks",
    "Split": "split",
    "Verified": "marks",
    "find": "benchmarks",
    "get_benchmark": "benchmarks",
    "load": "read",
    "read_like": "read",
    "read_verified": "marks",
    "stratified": "split",
}

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
    "Verified",
    "find",
    "get_benchmark",
    "load",
    "read_like",
    "read_verified",
    "stratified",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
