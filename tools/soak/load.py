"""Long, large and many: memory stays flat, a large table fits, no queued run is lost.

    python -m tools.soak.load [memory] [table] [queue] [--folder .soak/load]

- memory: 300 epochs of one run grow the process by at most 5% after the second.
- table: 10⁶ rows of 50 columns are trained on for an epoch, and weighed, within 6 GiB each.
- queue: 200 runs for 2 workers are all finished and sound.

Each part writes its figures to the folder when it is done, and is not done again.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

ROWS, COLUMNS, MEMORY = 1_000_000, 50, 6.0
EPOCHS, GROWTH = 300, 0.05
RUNS = 200


def memory(folder: Path, epochs: int = EPOCHS) -> dict[str, float]:
    """MiB of a training process after the second and after the last epoch."""
    from diw.cli.main import main
    from diw.runs import Writer
    from tests.own_data import write_csv

    write_csv(folder / "train.csv", 400, 1)
    write_csv(folder / "trusted.csv", 40, 2)
    sizes: list[float] = []
    code: object = None
    original = Writer.append

    def measured(journal, row, *more) -> None:
        original(journal, row, *more)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sizes.append(pages * resource.getpagesize() / 2**20)

    Writer.append = measured
    files = ["--data", str(folder / "train.csv"), "--trusted", str(folder / "trusted.csv")]
    own = ["--label", "status", "--epochs", str(epochs), "--device", "cpu", "--selection", "0"]
    try:
        main(["train", *files, *own, "--out", str(folder / "run")])
    except SystemExit as end:
        code = end.code
    finally:
        Writer.append = original
    assert not code, code
    assert len(sizes) == epochs, f"{len(sizes)} of {epochs} epochs"
    growth = max(sizes[2:]) / sizes[1] - 1
    assert growth <= GROWTH, f"memory grew by {growth:.1%}"
    return {"second": sizes[1], "last": sizes[-1], "growth": growth, "epochs": epochs}


def table(folder: Path, rows: int = ROWS) -> dict[str, float]:
    """Peak GiB and seconds of `diw train` and `diw weights` on a large table."""
    import pyarrow
    import pyarrow.parquet as parquet

    generator = np.random.default_rng(0)
    for name, count, shift in (("train", rows, 0.0), ("trusted", 2000, 0.2)):
        X = generator.standard_normal((count, COLUMNS), dtype=np.float32) + np.float32(shift)
        label = np.where(X[:, 0] + generator.standard_normal(count) > 0, "yes", "no")
        columns = {f"x{i}": X[:, i] for i in range(COLUMNS)}
        parquet.write_table(pyarrow.table(columns | {"label": label}), folder / f"{name}.parquet")
    files = [str(folder / "train.parquet"), str(folder / "trusted.parquet")]
    own = ["--label", "label", "--epochs", "1", "--device", "cpu"]
    commands = {
        "train": ["--data", files[0], "--trusted", files[1], *own, "--out", str(folder / "run")],
        "weights": [*files, "--drop", "label", "--out", str(folder / "weights.npy")],
    }
    found: dict[str, float] = {}
    for verb, arguments in commands.items():
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.alone", "-m", "diw", verb, *arguments],
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        figures = json.loads(done.stdout.splitlines()[-1])
        assert figures["peak"] <= MEMORY, f"{verb} took {figures['peak']:.2f} GiB"
        found |= {f"{verb} GiB": figures["peak"], f"{verb} processor s": figures["processor"]}
    return found


def queue(folder: Path, runs: int = RUNS) -> dict[str, float]:
    """Runs that two workers finished."""
    from diw.runs import Recipe, RunSpec
    from diw.training.many import try_all
    from diw.training.recorded import with_method

    small = RunSpec(
        shift="symmetric:0.4", trusted=20, model="mlp", train_samples=64, test_samples=20,
        recipe=Recipe(epochs=1, lr=1e-3),
    )  # fmt: skip
    specs = [replace(with_method(small, "uniform"), seed=seed) for seed in range(runs)]
    failures = try_all(specs, folder / "runs", jobs=2)
    assert not failures, failures
    for spec in specs:
        assert spec.run(folder / "runs").verify()
    return {"runs": runs}


def run_soak(folder: Path, names: list[str]) -> None:
    """The parts that have no figures yet."""
    for name in names:
        figures = folder / f"{name}.json"
        if not figures.exists():
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)
            found = {"memory": memory, "table": table, "queue": queue}[name](folder / name)
            figures.write_text(json.dumps(found))
            shutil.rmtree(folder / name)
        print(f"{name}: {figures.read_text()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", default=["memory", "table", "queue"])
    parser.add_argument("--folder", type=Path, default=Path(".soak/load"))
    options = parser.parse_args()
    run_soak(options.folder.absolute(), options.names)
