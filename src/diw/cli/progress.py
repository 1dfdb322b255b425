"""Live progress read from run records, whoever writes them: a thread, a process, another machine.

    with show_progress([Tracked(run, "diw seed 1", 60), ...]):
        ...  # the work

One bar per run in an interactive terminal; plain lines without control codes anywhere else.
"""

import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TextIO

import click

from diw.alerts import complaints
from diw.errors import RunError, UsageError
from diw.runs import Row, Run, RunSpec

if TYPE_CHECKING:
    from rich.progress import TaskID

INTERVAL = 0.5
"""Seconds between two looks at the records."""

RECENT = 10
"""Epochs that the time left is estimated from: warm-up epochs are quicker than the rest."""

MOST_BARS = 12
"""With more runs than this only those being trained are shown, under a bar for all of them."""

Phase = Literal["waiting", "running", "done"]


@dataclass(frozen=True)
class Tracked:
    """A run to watch; its folder need not exist yet."""

    run: Run
    label: str
    epochs: int
    scored_on: str = "test"
    """What the accuracy is measured on."""


@dataclass
class Watch:
    """What the records say of one run, reread only when they have changed."""

    tracked: Tracked
    state: Phase = "waiting"
    rows: list[Row] = field(default_factory=list[Row])
    known: int = 0
    """Epochs that were there before the work began."""
    _stamp: tuple[int, int] | None = None
    _said: set[str] = field(default_factory=set[str])
    """Kinds of warnings that were given: each is given once."""

    def __post_init__(self) -> None:
        """Take note of what an earlier session left."""
        self.look()
        self.known = len(self.rows)
        if self.state == "running":
            self.state = "waiting"

    def look(self) -> None:
        """Read what is new; files that come or go meanwhile are looked at next time."""
        run = self.tracked.run
        try:
            finished = run.finished
            changed = self._reread()
            started = changed or (run.folder / "spec.json").exists()
        except (OSError, UsageError, RunError):  # whoever reports it will say so
            return
        if finished:
            self.state = "done"
        elif changed or (started and self.known == 0):
            self.state = "running"

    def _reread(self) -> bool:
        """Whether there was anything new in the metrics."""
        path = self.tracked.run.folder / "metrics.jsonl"
        if not path.exists():
            return False
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp == self._stamp:
            return False
        self._stamp, self.rows = stamp, self.tracked.run.metrics()
        return True

    def warnings(self) -> list[str]:
        """What is newly wrong with the weights, each kind once."""
        if self.epoch <= self.known:
            return []
        try:
            method = str(self.tracked.run.spec_json.get("method"))
        except (OSError, UsageError, RunError):  # it is being discarded
            return []
        found = complaints(
            self.rows,
            method,
            bound=f"--set {method}.bound",
            doubtful="diw audit lists the doubtful ones",
        )
        new = {kind: words for kind, words in found.items() if kind not in self._said}
        self._said |= new.keys()
        return [f"warning: {self.tracked.label}: {words}" for words in new.values()]

    @property
    def epoch(self) -> int:
        """The last finished epoch."""
        return len(self.rows)

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the recent epochs; None before there is one."""
        if not self.rows:
            return None
        recent = [0.0, *(float(row["seconds"]) for row in self.rows)][-RECENT - 1 :]
        pace = (recent[-1] - recent[0]) / (len(recent) - 1)
        return max(0.0, pace * (self.tracked.epochs - self.epoch))

    @property
    def numbers(self) -> str:
        """Loss and accuracy of the last finished epoch."""
        if not self.rows:
            return ""
        last = self.rows[-1]
        loss = f"loss {last['train_loss']:.3f}, " if last.get("train_loss") is not None else ""
        return f"{loss}{self.tracked.scored_on} {100 * last['test_accuracy']:.1f}%"


@contextmanager
def show_progress(
    runs: Sequence[Tracked], stream: TextIO | None = None, interval: float = INTERVAL
) -> Generator[None]:
    """Show the progress of `runs` while the block does the work, on the standard error."""
    from diw.pages import is_interactive

    out = stream or sys.stderr
    watches = [Watch(tracked) for tracked in runs]
    display = Bars(watches, out) if is_interactive(out) else Lines(out)
    stop = threading.Event()

    def follow() -> None:
        while True:
            ended = stop.wait(interval)
            for watch in watches:
                watch.look()
                for line in watch.warnings():
                    display.say(line)
            display.update(watches)
            if ended:
                return

    display.update(watches)
    thread = threading.Thread(target=follow, name="diw-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        display.close()


class Lines:
    """Plain lines: a run's start, every tenth of its epochs, its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._said: dict[int, tuple[Phase, int]] = {}

    def update(self, watches: Sequence[Watch]) -> None:
        """Print the lines that are due."""
        for place, watch in enumerate(watches):
            line = self._line(place, watch)
            if line:
                self._stream.write(f"{watch.tracked.label}: {line}\n")
        self._stream.flush()

    def say(self, line: str) -> None:
        """Print a line of its own."""
        self._stream.write(f"{line}\n")

    def close(self) -> None:
        """Nothing is left open."""

    def _line(self, place: int, watch: Watch) -> str | None:
        first = place not in self._said
        state, tenth = self._said.get(place, ("waiting", 10 * watch.known // watch.tracked.epochs))
        reached = 10 * watch.epoch // watch.tracked.epochs
        self._said[place] = (watch.state, max(tenth, reached))
        counted = f"epoch {watch.epoch}/{watch.tracked.epochs}"
        if watch.state == "done" and state != "done":
            return f"{'already done' if first else 'done'}, {counted}, {watch.numbers}"
        if watch.state != "running":
            return None
        if state == "waiting":
            begin = f"goes on after epoch {watch.known}" if watch.known else "starts"
            return begin if watch.epoch == watch.known else f"{begin}; {counted}, {watch.numbers}"
        if reached > tenth:
            return f"{counted}, {watch.numbers}, {clock(watch.seconds_left)} left"
        return None


class Bars:
    """A bar per run: its label, epoch, loss, accuracy and time left."""

    def __init__(self, watches: Sequence[Watch], stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24, complete_style="blue", finished_style="green"),
            TextColumn("{task.fields[epoch]}", justify="right", markup=False),
            TextColumn("{task.fields[numbers]}", markup=False),
            TextColumn("{task.fields[left]}", style="dim", justify="right", markup=False),
            console=Console(file=stream),
        )
        self._many = len(watches) > MOST_BARS
        self._all = self._add("all runs", len(watches)) if self._many else None
        self._tasks = [self._add(watch.tracked.label, watch.tracked.epochs) for watch in watches]
        self.update(watches)  # before the first drawing, which would show every bar
        self._progress.start()

    def update(self, watches: Sequence[Watch]) -> None:
        """Move every bar to where its run is."""
        for task, watch in zip(self._tasks, watches, strict=True):
            waits = watch.state == "waiting"
            left = {"waiting": "waiting", "done": "done"}.get(
                watch.state, f"{clock(watch.seconds_left)} left"
            )
            self._progress.update(
                task,
                completed=watch.tracked.epochs if watch.state == "done" else watch.epoch,
                epoch="" if waits else f"epoch {watch.epoch}/{watch.tracked.epochs}",
                numbers="" if waits else watch.numbers,
                left=left,
                visible=not self._many or watch.state == "running",
            )
        if self._all is not None:
            done = sum(watch.state == "done" for watch in watches)
            self._progress.update(self._all, completed=done, epoch=f"{done}/{len(watches)} runs")

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        """Draw the last state and release the cursor."""
        self._progress.stop()

    def _add(self, label: str, total: int) -> "TaskID":
        return self._progress.add_task(label, total=total, epoch="", numbers="", left="")


def clock(seconds: float | None) -> str:
    """`1:05` or `1:02:05`; dashes where it is not known."""
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def show_training(pending: Sequence[tuple[RunSpec, Run]], *, jobs: int) -> Generator[None]:
    """Say about how long these runs will take, and show how they go while the block trains them."""
    from diw.runs.sources import Source

    tracked: list[Tracked] = []
    if pending:
        specs = [spec for spec, _ in pending]
        scored_on = Source.of(specs[0]).split.scored_on
        _say_time(specs, jobs)
        for spec, run in pending:
            label = f"{spec.method} seed {spec.seed}"
            tracked.append(Tracked(run, label, spec.recipe.epochs, scored_on))
    with show_progress(tracked):
        yield


def _say_time(specs: Sequence[RunSpec], jobs: int) -> None:
    """Say about how long these runs will take, from a few steps of each method."""
    from diw.training.many import Stopwatch

    seconds = Stopwatch().seconds(specs) / min(jobs, len(specs))
    epochs, passes = specs[0].recipe.epochs, specs[0].recipe.passes or 1
    count = "an epoch" if epochs == 1 else f"up to {epochs} epochs"
    over = f" of {passes} passes over the data" if passes > 1 else ""
    each = "" if len(specs) == 1 else f" for {len(specs)} runs"
    click.echo(f"time: about {_duration(seconds)}{each}; {count}{over}", err=True)


def _duration(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `3 hours`: no more digits than an estimate has."""
    for size, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    whole = max(1, round(seconds, -1 if seconds > 20 else None))
    return "a second" if whole == 1 else f"{whole:.0f} seconds"
