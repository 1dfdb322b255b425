"""The time of a match over sizes, dimensions and width rules: no cliff between them.

    python -m benchmarks.matching_grid 2500 10 median    one cell, by itself

Training values are standard normal, 500 trusted ones have mean 0.3. Two threads.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.alone import run_alone
from benchmarks.measuring import Row, Times
from diw.matching import kmm

SIZES = (500, 1000, 2000, 4000, 8000, 16_000)
DIMENSIONS = (2, 5, 10, 50, 200)
RULES = ("median", "quantile:0.01")
GOALS = {2500: 1.0, 4000: 3.0, 8000: 15.0, 100_000: 20.0}
"""Seconds by the clock, of 10 dimensions at the median rule."""


def worker(cells: list[list[Any]]) -> list[dict[str, Any]]:
    """Solve each cell (n, d, rule) once, in this process."""
    found = []
    for n, d, rule in cells:
        rng = np.random.default_rng(0)
        train, trusted = rng.normal(size=(n, d)), rng.normal(0.3, 1.0, (500, d))
        times = Times()
        match = times.call(lambda a, b, rule=rule: kmm(a, b, gamma=rule), train, trusted)
        facts = {name: getattr(match, name) for name in ("status", "rank", "iterations")}
        found.append({"times": vars(times), "trace_error": match.trace_error, **facts})
    return found


def rows(quick: bool) -> Iterator[Row]:
    """The cells with a goal, then the grid."""
    goals = [[n, 10, "median"] for n in GOALS if not quick or n <= 4000]
    sizes = SIZES[:3] if quick else SIZES
    grid = [[n, d, rule] for d in DIMENSIONS for rule in RULES for n in sizes]
    for cells in (goals, grid):
        cells = [[500, 10, "median"], *cells]  # the first call of a process also loads libraries
        output = run_alone(["-m", "benchmarks.matching_grid", json.dumps(cells)], threads=2).output
        for (n, d, rule), facts in list(zip(cells, json.loads(output), strict=True))[1:]:
            times = Times(**facts["times"])
            seconds = GOALS.get(n) if cells[1:] == goals else None
            note = f"{facts['status']}, rank {facts['rank']}, {facts['iterations']} steps"
            if facts["trace_error"] > 1e-6:
                note += f", left out {facts['trace_error']:.1%}"
            yield Row(
                f"{n:,} × {d}, {rule}, two threads",
                times,
                "" if seconds is None else f"{seconds:g} s",
                None if seconds is None else times.wall[0] <= seconds,
                note=note,
            )


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(json.dumps(worker(json.loads(sys.argv[1]))))
    else:
        size, dimensions, width = sys.argv[1:]
        print(json.dumps(worker([[int(size), int(dimensions), width]])))
