"""Run the benchmarks: every module of this folder that has a `main`, in alphabetical order.

    python -m benchmarks                  all of them
    python -m benchmarks matching         some of them
    python -m benchmarks --quick          fewer repetitions, large problems left out
    python -m benchmarks matching --save  also write benchmarks/results/NAME.json

One thread unless the environment says otherwise (OMP_NUM_THREADS); benchmarks that
need another number start a process of their own.
"""

import argparse
import importlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.alone import THREADS


def found() -> dict[str, Callable[..., None]]:
    """The benchmarks by name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    return {name: module.main for name, module in modules.items() if hasattr(module, "main")}


def main() -> None:
    """Read the command line, say where this runs, run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure diw.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, nothing large")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/NAME.json")
    options = parser.parse_args()
    for name in THREADS:  # read by the linear algebra libraries when they load
        os.environ.setdefault(name, "1")
    benchmarks = found()
    unknown = set(options.names) - set(benchmarks)
    if unknown:
        parser.error(f"NAME: no {', '.join(sorted(unknown))}; choose from {', '.join(benchmarks)}")
    from benchmarks.measuring import machine

    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    for name, run in benchmarks.items():
        if options.names and name not in options.names:
            continue
        print(f"\n== {name}", flush=True)
        wanted = {"quick": options.quick, "save": options.save}
        run(**{key: wanted[key] for key in inspect.signature(run).parameters if key in wanted})


if __name__ == "__main__":
    main()
