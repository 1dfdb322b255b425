"""Kernel mean matching: every promise about its speed and memory, and what was measured.

    python -m benchmarks matching [--quick] [--save]

Contenders take turns in one process; ratios are of medians of processor time, because
other work on the machine changes that least. Goals in seconds are held against
the clock. The matching share of a training step is in `benchmarks/steps.py`.
"""

from itertools import chain
from pathlib import Path

from benchmarks import matching_grid, matching_large, matching_minibatch
from benchmarks.measuring import Row, machine, print_table
from diw.files import write_json

RESULTS = Path(__file__).parent / "results" / "matching.json"


def main(quick: bool = False, save: bool = False) -> None:
    """Measure all rows, print the table, perhaps save the figures."""
    rows: list[Row] = []
    parts = (part.rows(quick) for part in (matching_minibatch, matching_large, matching_grid))
    for row in chain.from_iterable(parts):
        print(f"{row.problem} {row.competitor}".rstrip(), flush=True)
        rows.append(row)
    print_table(rows)
    missed = [row for row in rows if row.reached is False]
    judged = [row for row in rows if row.reached is not None]
    print(f"{len(judged) - len(missed)} of {len(judged)} goals reached")
    if save:
        RESULTS.parent.mkdir(exist_ok=True)
        figures = {"machine": machine(), "rows": [row.figures() for row in rows]}
        write_json(RESULTS, figures)
        print(f"figures: {RESULTS}")
