"""Weights of data that are larger than memory: time against n and workers, peak memory.

    python -m benchmarks streams

`diw weights` on arrays that are mapped from disk, in a process of its own on one thread; then the
same on a dask cluster of this machine with one and two workers. Processor time is what a busy
machine does not change: of the command, and of the busiest worker, which all others wait for. The
last lines extrapolate, and say from what.
"""

import json
import math
import tempfile
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import run_alone

LOSSES = (10**6, 10**7, 10**8)
TABLES = (10**5, 10**6, 10**7)
ON_WORKERS = {1: (10**6, 10**7), 20: (10**6,)}
"""Sizes that are also measured on workers, by the number of columns; 10⁶ values are one part."""
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


def show(name: str, alone: Any, found: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Print a line, and return it as values."""
    workers, busiest = more.get("workers", 0), more.get("busiest", 0.0)
    print(
        f"{name:22} {workers or '-':>7} {alone.wall:8.1f} {alone.processor:8.1f} "
        f"{f'{busiest:.1f}' if workers else '-':>8} {alone.peak:6.2f} {found['rank']:5} "
        f"{found['passes']:7} {found['trace_error']:14.1e} {found['status']}",
        flush=True,
    )
    kept = {key: found[key] for key in ("rank", "passes", "trace_error", "status", "objective")}
    figures = {"seconds": alone.wall, "processor": alone.processor, "GiB": alone.peak}
    return {"problem": name, "rows": found["rows"], **figures, **more, **kept}


def on_workers(folder: Path, name: str, options: tuple[str, ...]) -> list[dict[str, Any]]:
    """The same problem on one and two workers of a cluster on this machine."""
    from distributed import Client, LocalCluster

    rows: list[dict[str, Any]] = []
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            before = client.run(time.process_time)
            alone, found = measured(folder, "--scheduler", cluster.scheduler_address, *options)
            after = client.run(time.process_time)
        busiest = max(after[worker] - before[worker] for worker in after)
        rows.append(show(name, alone, found, workers=workers, busiest=busiest))
    return rows


def seconds_per_part() -> float:
    """What the cluster itself takes for a part in a pass, when there is nothing to compute."""
    from distributed import LocalCluster

    from diw.data.values import FilePart
    from diw.training.many import spread_on_cluster

    parts = [FilePart(Path("none.npy"), i, i + 1) for i in range(256)]
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        spread_on_cluster(cluster.scheduler_address) as spread,
    ):
        spread(attrgetter("rows"), parts)  # connections are made
        started = time.perf_counter()
        for _ in range(3):
            spread(attrgetter("rows"), parts)
        return (time.perf_counter() - started) / (3 * len(parts))


def exponent(rows: list[dict[str, Any]]) -> float:
    """Of the processor time over n, by least squares of the logarithms."""
    sizes, seconds = ([row[key] for row in rows] for key in ("rows", "processor"))
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def constants(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """The fixed seconds, and those per value and pass, from the two largest problems."""
    one, two = sorted(rows, key=lambda row: row["rows"])[-2:]
    read = [row["rows"] * row["passes"] for row in (one, two)]
    each = (two["processor"] - one["processor"]) / (read[1] - read[0])
    return two["processor"] - each * read[1], each


def extrapolated(rows: list[dict[str, Any]], columns: int, overhead: float) -> dict[str, float]:
    """Seconds for 10⁹ rows on 64 machines of one core: a fixed part, reading, messages."""
    from diw.data.values import PART_VALUES

    fixed, each = constants(rows)
    passes = rows[-1]["passes"]
    parts = math.ceil(ROWS * columns / PART_VALUES)
    terms = {
        "fixed": fixed,
        "computing": passes * ROWS / MACHINES * each,
        "messages": passes * parts * overhead,
    }
    print(
        f"  {ROWS:,} rows on {MACHINES} machines: {sum(terms.values()):.0f} s = {fixed:.0f} s "
        f"fixed + {terms['computing']:.0f} s ({passes} passes of {each * 1e9:.0f} ns per row) + "
        f"{terms['messages']:.0f} s ({parts:,} parts, {overhead * 1e3:.1f} ms each in a pass)"
    )
    return terms


def main(quick: bool = False, save: bool = False) -> None:
    """Print the table, the exponents and the extrapolation."""
    print(f"{'':22} {'workers':>7} {'wall s':>8} {'proc. s':>8} {'busiest':>8} {'GiB':>6}", end="")
    print(f" {'rank':>5} {'passes':>7} {'left of trace':>14}")
    rows: list[dict[str, Any]] = []
    facts: dict[str, Any] = {}

    def keep() -> None:
        if save:
            path = Path(__file__).parent / "results" / "streams.json"
            path.write_text(json.dumps({"rows": rows, **facts}, indent=1) + "\n", encoding="utf-8")

    overhead = seconds_per_part()
    facts["seconds per part and pass"] = overhead
    for kind, columns, sizes, write, options in (
        (f"x {COLUMNS}", COLUMNS, TABLES, write_table, ("--rank", "100")),
        ("values", 1, LOSSES, write_losses, ()),
    ):
        alone_rows: list[dict[str, Any]] = []
        for n in sizes[:1] if quick else sizes:
            name = f"{n:,} {kind}"
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                write(folder, n)
                alone_rows.append(show(name, *measured(folder, *options)))
                rows.append(alone_rows[-1])
                keep()
                if n in ON_WORKERS[columns]:
                    rows += on_workers(folder, name, options)
                    keep()
        if len(alone_rows) > 1:
            facts[f"exponent, {kind}"] = round(exponent(alone_rows), 3)
            facts[f"exponent, {kind}, two largest"] = round(exponent(alone_rows[-2:]), 3)
            print(
                f"{kind}: time over n, exponent {facts[f'exponent, {kind}']}, from the two largest "
                f"{facts[f'exponent, {kind}, two largest']}"
            )
            facts[f"extrapolated, {kind}"] = extrapolated(alone_rows, columns, overhead)
    worst = max(row["GiB"] for row in rows)
    verdict = "met" if worst <= MEMORY else "MISSED"
    print(f"peak memory {worst:.2f} GiB (goal at most {MEMORY}: {verdict})")
    print(
        "The extrapolation assumes machines of one core like this one, equal parts, a shared disk "
        "that gives each machine what this one gives, and a network as fast as this machine's own. "
        "Not tried."
    )
    keep()


if __name__ == "__main__":
    main()
