"""Copy what a reproduction wrote, without weights and networks, to a folder that can be committed.

    python -m scripts.keep_results runs/reproduce/cpu results/cpu

Of each result: its tables, figures and numbers as they are, and `records.json` with the
spec and the accuracy by epoch of every finished run. What was kept before is replaced.
"""

import argparse
import json
import shutil
from pathlib import Path

from diw.runs import Run
from reproduction.catalogue import EXPERIMENT, RUNS
from reproduction.kept import RECORDS, record_of

SUFFIXES = {".md", ".tex", ".csv", ".json", ".png", ".pdf"}


def main() -> None:
    """Read the command line and copy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("source", type=Path, help="runs/reproduce/SCALE")
    parser.add_argument("target", type=Path, help="results/SCALE")
    options = parser.parse_args()
    for description in sorted(options.source.glob(f"*/{EXPERIMENT}")):
        own = description.parent
        cells = json.loads(description.read_text(encoding="utf-8"))["cells"]
        names = dict.fromkeys(name for cell in cells for name in cell["runs"].values())
        runs = [Run(options.source / RUNS / name) for name in names]
        records = [record_of(run) for run in runs if run.finished]
        if not records:
            continue
        kept = options.target / own.name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for path in own.iterdir():
            if path.suffix in SUFFIXES and path.name != EXPERIMENT:
                shutil.copy(path, kept)
        lines = ",\n".join(json.dumps(one) for one in records)
        (kept / RECORDS).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        print(f"{kept}: {len(records)} runs")


if __name__ == "__main__":
    main()
