"""Large problems: each in a process of its own, whose peak memory is measured with its time.

python -m benchmarks.matching_large losses 100000 5    one of them, by itself
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import run_alone
from benchmarks.matching_minibatch import RECORDED
from benchmarks.measuring import Row, Times
from diw.matching import kmm

CALLS = {1_000: 300, 10_000: 50, 100_000: 9, 1_000_000: 3}
LOSS_GOALS = {100_000: (2.0, None), 1_000_000: (20.0, 3.0)}
PIXEL_GOALS = {"quantile:0.01": 15.0, "median": 40.0}
TABLE_GOALS = (60.0, 6.0)


def many_losses(n: int) -> tuple[np.ndarray, np.ndarray]:
    """`n` losses and n/100 trusted ones: drawn from the recorded ones, each moved by about 2%."""
    rng = np.random.default_rng(0)
    with np.load(RECORDED) as file:
        recorded = [file[f"symmetric_{part}"].ravel() for part in ("train", "trusted")]
    train, trusted = (
        rng.choice(values, size) * np.exp(0.02 * rng.standard_normal(size))
        for values, size in zip(recorded, (n, n // 100), strict=True)
    )
    return train, trusted


def one_class() -> tuple[np.ndarray, np.ndarray]:
    """Fashion-MNIST's pixels labelled 0 under 40% symmetric noise, and 100 trusted ones."""
    import torch

    from diw.data import load
    from diw.data.split import make_split

    data = load("fashion-mnist")
    split = make_split(data, shift="symmetric:0.4", trusted="100/class", seed=0)
    parts = []
    for part, rows in ((split.train, 6000), (split.trusted, 100)):
        places = (part.targets == 0).nonzero()[:rows, 0]
        parts.append(part.take(places)[0].flatten(1).to(torch.float64).numpy())
    return parts[0], parts[1]


def worker(kind: str, what: str, calls: int) -> dict[str, Any]:
    """Solve one problem several times, in this process."""
    train, trusted = many_losses(int(what)) if kind == "losses" else one_class()
    rule = None if kind == "losses" else what
    times = Times()
    if calls > 1:
        kmm(train, trusted, gamma=rule)
    for _ in range(calls):
        match = times.call(lambda: kmm(train, trusted, gamma=rule))
    facts = {name: getattr(match, name) for name in ("status", "rank", "iterations")}
    return {"times": vars(times), "shape": [len(train), len(trusted)], **facts}


def solved_alone(kind: str, what: str, calls: int, threads: int = 1) -> tuple[Times, float, dict]:
    """`worker` in a process of its own: times of the calls, peak GiB, facts."""
    arguments = ["-m", "benchmarks.matching_large", kind, what, str(calls)]
    alone = run_alone(arguments, threads=threads)
    facts = json.loads(alone.output)
    return Times(**facts.pop("times")), alone.peak, facts


def loss_rows(quick: bool) -> Iterator[Row]:
    """Losses from 10³ to 10⁶, with the exponent of the time over n."""
    medians = {}
    for n, calls in CALLS.items():
        if quick and n > 100_000:
            continue
        times, peak, facts = solved_alone("losses", str(n), 1 if quick else calls)
        medians[n] = float(np.median(times.processor))
        name = f"{n:,} losses, {n // 100:,} trusted"
        yield _limited(name, times, peak, facts, LOSS_GOALS.get(n))
    sizes, seconds = np.log(list(medians)), np.log(list(medians.values()))
    slope = np.polyfit(sizes, seconds, 1)[0]
    steps = np.diff(seconds) / np.diff(sizes)
    note = f"{slope:.2f}; from one size to the next " + ", ".join(f"{x:.2f}" for x in steps)
    reached = None if quick else bool(slope <= 1.1)
    yield Row("time over n, exponent", Times(), "about 1", reached, note=note)


def pixel_rows(quick: bool) -> Iterator[Row]:
    """One class of raw pixels on two threads: the kernel matrix has full rank."""
    from diw.data import find
    from diw.data.benchmarks.catalogue import get_benchmark

    missing = find(get_benchmark("fashion-mnist")) is None
    for rule, seconds in PIXEL_GOALS.items():
        name = f"6,000 × 784 pixels, {rule}, two threads"
        if quick or missing:
            reason = "no Fashion-MNIST in $DIW_DATA" if missing else "--quick"
            yield Row(name, Times(), f"{seconds:g} s", None, note=f"not run: {reason}")
            continue
        times, peak, facts = solved_alone("pixels", rule, 1, threads=2)
        yield _limited(name, times, peak, facts, (seconds, None))


def table_row(quick: bool) -> Row:
    """`diw weights` on 10⁶ rows of 50 columns: reading, scaling, matching, writing."""
    name = "1,000,000 rows × 50, diw weights, median"
    if quick:
        return Row(name, Times(), "60 s, 6 GiB", None, note="not run: --quick")
    with tempfile.TemporaryDirectory() as folder:
        train, trusted = Path(folder, "train.npy"), Path(folder, "trusted.npy")
        _write_table(train, 1_000_000, 0.0)
        _write_table(trusted, 10_000, 0.3)
        summary = Path(folder, "summary.json")
        files = [str(train), str(trusted), "--out", str(Path(folder, "weights.npy"))]
        arguments = ["-m", "diw", "weights", *files, "--gamma", "median", "--json", str(summary)]
        alone = run_alone(arguments)
        facts = json.loads(summary.read_text(encoding="utf-8"))
    times = Times([alone.wall], [alone.processor])
    return _limited(name, times, alone.peak, facts, TABLE_GOALS)


def _write_table(path: Path, rows: int, shift: float) -> None:
    """Columns with five common causes, written in blocks."""
    rng = np.random.default_rng(rows)
    causes = np.random.default_rng(0).standard_normal((5, 50), dtype=np.float32)
    table = np.lib.format.open_memmap(path, "w+", np.float32, (rows, 50))
    step = 10_000
    for start in range(0, rows, step):
        block = rng.standard_normal((step, 5), dtype=np.float32) + np.float32(shift)
        table[start : start + step] = block @ causes
        table[start : start + step] += rng.standard_normal((step, 50), dtype=np.float32)
    table.flush()


def _limited(
    name: str, times: Times, peak: float, facts: dict, limits: tuple[float, float | None] | None
) -> Row:
    """A row whose goal is wall seconds and perhaps GiB."""
    note = f"{facts['status']}, rank {facts['rank']}, {facts['iterations']} steps, {peak:.2f} GiB"
    if limits is None:
        return Row(name, times, "", None, note=note)
    seconds, memory = limits
    reached = np.median(times.wall) <= seconds and (memory is None or peak <= memory)
    goal = f"{seconds:g} s" + ("" if memory is None else f", {memory:g} GiB")
    return Row(name, times, goal, bool(reached), note=note)


def rows(quick: bool) -> Iterator[Row]:
    """All lines of the table, one at a time."""
    yield from loss_rows(quick)
    yield from pixel_rows(quick)
    yield table_row(quick)


if __name__ == "__main__":
    print(json.dumps(worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
