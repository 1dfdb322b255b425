"""Measure the effect of blending old and new weights (the paper's footnote 1).

    python scripts/measure_momentum.py [--seeds 5] [--epochs 60] [--jobs 2] [--out runs/momentum]

Trains DIW on the embedded data with 40% symmetric label noise, with several
shares of the previous epoch's weights, and uniform and true weights for
comparison. Prints accuracies over seeds with paired t-tests against no blending.
Finished runs are found again, so the script can be stopped and restarted.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from diw.reports.statistics import mean_and_std, paired_p_value
from diw.reports.summary import Summary, summarise
from diw.runs import Recipe, RunSpec
from diw.training.many import run_all
from diw.training.recorded import with_method

MOMENTA = (0.0, 0.3, 0.5, 0.8, 0.9, 0.95)


def settings(epochs: int) -> dict[str, RunSpec]:
    """What is compared, by its name in the table."""
    base = RunSpec(shift="symmetric:0.4", recipe=Recipe(epochs=epochs))
    rows = {f"diw, momentum {m:g}": with_method(base, "diw", {"momentum": m}) for m in MOMENTA}
    return {name: with_method(base, name) for name in ("uniform", "truth")} | rows


def row(name: str, summaries: list[Summary], plain: list[Summary]) -> str:
    """One line: last, last-ten and best accuracy, AUROC, and p against no blending."""
    cells = [f"{name:20}"]
    for key in ("last_accuracy", "last10_accuracy", "best_accuracy"):
        mean, spread = mean_and_std([100 * getattr(s, key) for s in summaries])
        cells.append(f"{mean:6.2f} ± {spread or 0:4.2f}")
    known = [s.weight_auroc for s in summaries if s.weight_auroc is not None]
    cells.append(f"{sum(known) / len(known):6.3f}" if known else "     –")
    if summaries is not plain and len(plain) > 1:
        ours, theirs = ([s.last10_accuracy for s in side] for side in (summaries, plain))
        cells.append(f"{paired_p_value(ours, theirs):7.4f}")
    return "  ".join(cells)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/momentum"))
    options = parser.parse_args()
    rows = settings(options.epochs)
    specs = [replace(spec, seed=seed) for seed in range(options.seeds) for spec in rows.values()]
    run_all(specs, options.out, jobs=options.jobs)
    summaries = {
        name: [
            summarise(replace(spec, seed=seed).run(options.out)) for seed in range(options.seeds)
        ]
        for name, spec in rows.items()
    }
    print(f"{options.epochs} epochs, {options.seeds} seeds, 40% symmetric label noise")
    head = ("last %", "last ten %", "best %", "AUROC", "p (last ten)")
    print(f"{'':20}  {head[0]:>13}  {head[1]:>13}  {head[2]:>13}  {head[3]:>6}  {head[4]}")
    for name, found in summaries.items():
        print(row(name, found, summaries["diw, momentum 0"]))


if __name__ == "__main__":
    main()
