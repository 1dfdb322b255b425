"""Progress bars for an interactive terminal, one a run."""

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from diw.cli.progress import Watch, clock

MOST_BARS = 12
"""With more runs than this only those at work are shown, under a bar for all of them."""


class Bars:
    """Method and seed, epoch, loss, test accuracy and time left of each run."""

    def __init__(self, watches: Sequence[Watch], stream: TextIO) -> None:
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

    def close(self) -> None:
        """Draw the last state and give the cursor back."""
        self._progress.stop()

    def _add(self, label: str, total: int) -> TaskID:
        return self._progress.add_task(label, total=total, epoch="", numbers="", left="")
