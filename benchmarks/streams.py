"""Weights of data that are larger than memory: time against n and workers, peak memory.

    python -m benchmarks streams

`diw weights` on arrays that are mapped from disk, in a process of its own on one thread; then the
same on a dask cluster of this machine. Processor time is what a busy machine does not change. The
last line extrapolates, and says from what.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import run_alone

LOSSES = (10**6, 10**7, 10**8)
TABLES = (10**5, 10**6, 10**7)
COLUMNS = 20
MEMORY = 3.0
"""GiB, at most."""
MACHINES = 64
ROWS = 10**9


def write_losses(folder: Path, n: int) -> None:
    """Exponential values of mean one, and 10,000 trusted ones of mean one half."""
    generator = np.random.default_rng(0)
    values = np.lib.format.open_memmap(folder / "train.npy", "w+", np.float64, (n,))
    for start in range(0, n, 10**6):
        values[start : start + 10**6] = generator.exponential(1.0, min(10**6, n - start))
    values.flush()
    np.save(folder / "trusted.npy", generator.exponential(0.5, 10_000))


def write_table(folder: Path, n: int) -> None:
    """Float32 rows of five common causes, and 10,000 trusted ones that are moved."""
    generator = np.random.default_rng(0)
    causes = generator.standard_normal((5, COLUMNS), dtype=np.float32)

    def rows(count: int, shift: float) -> np.ndarray:
        block = generator.standard_normal((count, 5), dtype=np.float32) + np.float32(shift)
        noise = generator.standard_normal((count, COLUMNS), dtype=np.float32)
        return block @ causes + noise

    table = np.lib.format.open_memmap(folder / "train.npy", "w+", np.float32, (n, COLUMNS))
    for start in range(0, n, 10**5):
        table[start : start + 10**5] = rows(min(10**5, n - start), 0.0)
    table.flush()
    np.save(folder / "trusted.npy", rows(10_000, 0.3))


def measured(folder: Path, *options: str) -> tuple[Any, dict[str, Any]]:
    """Time and memory of `diw weights` in parts, and its summary."""
    files = [str(folder / name) for name in ("train.npy", "trusted.npy")]
    arguments = ["-m", "diw", "weights", *files, "--out", str(folder / "weights.npy")]
    summary = folder / "summary.json"
    alone = run_alone([*arguments, "--in-parts", "--json", str(summary), *options])
    return alone, json.loads(summary.read_text(encoding="utf-8"))


def show(name: str, alone: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Print a line, and return it as values."""
    print(
        f"{name:28} {alone.wall:8.1f} {alone.processor:10.1f} {alone.peak:8.2f} {found['rank']:5} "
        f"{found['passes']:7} {found['trace_error']:11.1e} {found['status']}",
        flush=True,
    )
    kept = {key: found[key] for key in ("rank", "passes", "trace_error", "status", "objective")}
    figures = {"seconds": alone.wall, "processor": alone.processor, "GiB": alone.peak}
    return {"problem": name, **figures, **kept}


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Of the time over n, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes[: len(seconds)]), np.log(seconds), 1)[0])


def on_workers(folder: Path, n: int, rows: list[dict[str, Any]]) -> None:
    """The same problem on one and two workers of a cluster on this machine."""
    from distributed import LocalCluster

    for workers in (1, 2):
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster:
            alone, found = measured(folder, "--scheduler", cluster.scheduler_address)
        rows.append(show(f"{n:,} values, {workers} workers", alone, found))


def main(quick: bool = False, save: bool = False) -> None:
    """Print the table, the exponents and the extrapolation."""
    print(f"{'':28} {'wall s':>8} {'processor s':>10} {'GiB':>8} {'rank':>5} {'passes':>7}", end="")
    print("  left of trace")
    rows: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}
    for kind, sizes, write, options in (
        ("values", LOSSES, write_losses, ()),
        (f"× {COLUMNS} table", TABLES, write_table, ("--rank", "100")),
    ):
        seconds: list[float] = []
        for n in sizes[:1] if quick else sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                write(folder, n)
                alone, found = measured(folder, *options)
                rows.append(show(f"{n:,} {kind}", alone, found))
                seconds.append(alone.processor)
                if kind == "values" and n == sizes[0]:
                    on_workers(folder, n, rows)
        if len(seconds) > 1:
            facts[f"exponent, {kind}"] = round(exponent(sizes, seconds), 3)
            print(f"{kind}: time over n, exponent {facts[f'exponent, {kind}']}")
    worst = max(row["GiB"] for row in rows)
    verdict = "met" if worst <= MEMORY else "MISSED"
    print(f"peak memory {worst:.2f} GiB (goal at most {MEMORY}: {verdict})")
    largest = [row for row in rows if row["problem"].endswith("values")][-1]
    n = int(largest["problem"].split()[0].replace(",", ""))
    each = largest["processor"] / n
    facts["seconds per value"] = each
    facts["extrapolated seconds"] = each * ROWS / MACHINES
    print(
        f"{ROWS:,} values on {MACHINES} machines of one core: {each * ROWS / MACHINES:.0f} s, from "
        f"{each * 1e9:.0f} ns per value here; assumes equal parts, a disk as fast as here, and "
        f"{largest['passes']} rounds of messages of {8 * largest['rank'] ** 2 / 1024:.0f} KiB that "
        "take no time in comparison. Not tried."
    )
    if save:
        path = Path(__file__).parent / "results" / "streams.json"
        path.write_text(json.dumps({"rows": rows, **facts}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
