"""How matching is measured: contenders take turns, and one table shows all."""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np


@dataclass
class Times:
    """Seconds of repeated calls: wall time, and processor time of this process."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Time one call."""
        wall, processor = time.perf_counter(), time.process_time()
        answer = function(*arguments)
        self.processor.append(time.process_time() - processor)
        self.wall.append(time.perf_counter() - wall)
        return answer

    def first(self, count: int) -> "Times":
        """The times of the first `count` calls."""
        return Times(self.wall[:count], self.processor[:count])


@dataclass(frozen=True)
class Row:
    """One line of the table: a problem, our times, perhaps a competitor's, the goal."""

    problem: str
    ours: Times
    goal: str
    """The goal in words; empty if there is none."""
    reached: bool | None
    """None if there is no goal, or it was not measured."""
    competitor: str = ""
    theirs: Times | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our median processor time divided by theirs, on the problems that both solved."""
        if self.theirs is None:
            return None
        count = len(self.theirs.processor)
        return float(np.median(self.ours.processor[:count]) / np.median(self.theirs.processor))

    def figures(self) -> dict[str, Any]:
        """The row as JSON values, in seconds."""
        return {
            "problem": self.problem,
            "ours": _summary(self.ours),
            "competitor": self.competitor or None,
            "theirs": None if self.theirs is None else _summary(self.theirs),
            "ratio": self.ratio,
            "goal": self.goal,
            "reached": self.reached,
            "note": self.note,
        }


def take_turns(
    contenders: Mapping[str, Callable[[Any], Any]],
    problems: Sequence[Any],
    limits: Mapping[str, int] | None = None,
) -> tuple[dict[str, Times], dict[str, list[Any]]]:
    """Give every problem to every contender in turn, so that a busy machine slows all equally.

    Args:
        contenders: Functions of a problem, by name; each is first called once to warm up.
        problems: The problems in their order.
        limits: The number of problems for slow contenders, by name; all by default.
    """
    times = {name: Times() for name in contenders}
    answers: dict[str, list[Any]] = {name: [] for name in contenders}
    for function in contenders.values():
        function(problems[0])
    for place, problem in enumerate(problems):
        for name, function in contenders.items():
            if place < (limits or {}).get(name, len(problems)):
                answers[name].append(times[name].call(function, problem))
    return times, answers


def made_by(name: str) -> dict[str, str]:
    """The command of a benchmark and the revision that it measured, for its file of results."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {"command": f"python -m benchmarks {name} --save", "commit": commit}


def machine() -> dict[str, str]:
    """Where the figures come from."""
    packages = ("numpy", "scipy", "torch", "qpsolvers")
    return {
        "processors": str(os.cpu_count()),
        "model": _processor(),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "load": f"{os.getloadavg()[0]:.1f}",  # above 1, wall times include other processes
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def print_table(rows: Sequence[Row]) -> None:
    """Print an aligned table; times are processor time, except in the column "wall"."""
    head = ["problem", "ours: median", "p95", "wall", "against", "median", "p95", "ratio", "goal"]
    lines = [[*head, "reached", ""]]
    for row in rows:
        ours, theirs, ratio = row.ours, row.theirs, row.ratio
        lines.append(
            [
                row.problem,
                *_shown(ours.processor),
                _shown(ours.wall)[0],
                row.competitor,
                *(_shown(theirs.processor) if theirs else ("", "")),
                "" if ratio is None else f"1/{1 / ratio:.1f}",
                row.goal,
                {True: "yes", False: "NO", None: ""}[row.reached],
                row.note,
            ]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    print("\nmedian, p95: processor time; wall: median wall time; ratio: of processor medians")
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())


def _shown(seconds: Sequence[float]) -> tuple[str, str]:
    """Median and 95th percentile with a unit; the latter only for ten or more calls."""
    if not seconds:
        return "", ""
    middle, high = np.median(seconds), np.quantile(seconds, 0.95)
    unit, name = (1.0, "s") if middle >= 1 else (1e3, "ms")
    return f"{middle * unit:.2f} {name}", f"{high * unit:.2f}" if len(seconds) >= 10 else ""


def _summary(times: Times) -> dict[str, Any]:
    kinds = {"wall": times.wall, "processor": times.processor}
    summary: dict[str, Any] = {"calls": len(times.wall)}
    for name, seconds in kinds.items():
        if seconds:
            summary[f"{name}_median"] = float(np.median(seconds))
            summary[f"{name}_p95"] = float(np.quantile(seconds, 0.95))
    return summary


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.processor() or platform.machine()
