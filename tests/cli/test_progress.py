import io
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from diw.cli.progress import Lines, Tracked, Watch, clock, show_progress
from diw.runs import Run, Writer


def row(epoch: int) -> dict[str, float]:
    return {"epoch": epoch, "train_loss": 2.0 / epoch, "test_accuracy": 0.8, "seconds": 2.0 * epoch}


def train(run: Run, epochs: range, *, finish: bool = True) -> None:
    Run.create(run.folder, {"method": "diw"})
    for epoch in epochs:
        Writer(run.folder, 1, 1).append(row(epoch))
    if finish:
        run.finish()


def wait_for(condition: object, seconds: float = 10.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_plain_lines_tell_start_tenths_and_end(tmp_path: Path) -> None:
    tracked = Tracked(Run(tmp_path / "run"), "diw seed 1", 40)
    watch, out = Watch(tracked), io.StringIO()
    lines = Lines(out)
    lines.update([watch])
    assert out.getvalue() == ""
    Run.create(tracked.run.folder, {})
    for epoch in range(41):
        if epoch:
            Writer(tracked.run.folder, 1, 1).append(row(epoch))
        if epoch == 40:
            tracked.run.finish()
        watch.look()
        lines.update([watch])
    said = out.getvalue().splitlines()
    assert said[0] == "diw seed 1: starts"
    assert [re.findall(r"epoch (\d+)/40", line) for line in said[1:]] == [
        [str(epoch)] for epoch in range(4, 41, 4)
    ]
    assert said[1] == "diw seed 1: epoch 4/40, loss 0.500, test 80.0%, 1:12 left"
    assert said[-1] == "diw seed 1: done, epoch 40/40, loss 0.050, test 80.0%"


def test_follows_work_in_another_thread(tmp_path: Path) -> None:
    runs = [Tracked(Run(tmp_path / name), name, 5) for name in ("a", "b")]
    out = io.StringIO()
    with show_progress(runs, out, interval=0.01):
        workers = [threading.Thread(target=train, args=(t.run, range(1, 6))) for t in runs]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    text = out.getvalue()
    assert "\x1b" not in text
    # The last look comes after the work, so the ends are said however quick it was.
    for name in ("a", "b"):
        assert f"{name}: done, epoch 5/5, loss 0.400, test 80.0%" in text.splitlines()


def test_an_interrupted_run_goes_on_and_a_finished_one_is_not_told_again(tmp_path: Path) -> None:
    half, full = Run(tmp_path / "half"), Run(tmp_path / "full")
    train(half, range(1, 4), finish=False)
    train(full, range(1, 11))
    out = io.StringIO()
    with show_progress([Tracked(half, "half", 10), Tracked(full, "full", 10)], out, interval=0.01):
        assert out.getvalue().splitlines() == [
            "full: already done, epoch 10/10, loss 0.200, test 80.0%"
        ]
        train(half, range(4, 5), finish=False)
        wait_for(lambda: "half" in out.getvalue())
        train(half, range(5, 11))
    said = [line for line in out.getvalue().splitlines() if line.startswith("half")]
    assert said[0] == "half: goes on after epoch 3; epoch 4/10, loss 0.500, test 80.0%"
    assert said[-1].startswith("half: done")


def test_an_error_of_the_work_passes_through(tmp_path: Path) -> None:
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), show_progress([Tracked(Run(tmp_path), "r", 2)], out):
        raise KeyboardInterrupt
    assert "done" not in out.getvalue()
    assert not [t for t in threading.enumerate() if t.name == "diw-progress"]


def test_nothing_to_watch(tmp_path: Path) -> None:
    out = io.StringIO()
    with show_progress([], out):
        pass
    assert out.getvalue() == ""


def test_records_that_vanish_or_are_torn_do_no_harm(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    watch = Watch(Tracked(run, "r", 4))
    train(run, range(1, 3), finish=False)
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "tra')
    watch.look()
    assert (watch.state, watch.epoch) == ("running", 2)
    (run.folder / "metrics.jsonl").unlink()
    watch.look()
    assert watch.epoch == 2


def test_time_left_follows_the_recent_pace(tmp_path: Path) -> None:
    watch = Watch(Tracked(Run(tmp_path), "r", 40))
    assert watch.seconds_left is None
    watch.rows = [{"seconds": 100.0 + 3.0 * epoch} for epoch in range(1, 21)]
    assert watch.seconds_left == pytest.approx(60)
    watch.rows = [{"seconds": 5.0}]
    assert watch.seconds_left == pytest.approx(195)


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-:--"), (65.2, "1:05"), (59.7, "1:00"), (3725, "1:02:05")]
)
def test_clock(seconds: float | None, text: str) -> None:
    assert clock(seconds) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("count", [2, 20])
def test_bars_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    runs = [Tracked(Run(tmp_path / str(n)), f"run [{n}]", 5) for n in range(count)]
    out = Terminal()
    with show_progress(runs, out, interval=0.01):
        train(runs[0].run, range(1, 3), finish=False)
        wait_for(lambda: "epoch 2/5" in out.getvalue())
        train(runs[0].run, range(3, 6))
    text = out.getvalue()
    assert "\x1b[" in text
    assert "run [0]" in text
    assert "loss 1.000, test 80.0%" in text
    assert text.count("\x1b[?25h") == 1
    assert ("all runs" in text) == ("run [1]" not in text) == (count == 20)


def test_importing_it_is_light() -> None:
    import subprocess

    code = "import sys, diw.cli.progress, diw.cli.report; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "rich", "plotly", "scipy"} & set(loaded)


def test_weights_that_are_unhealthy_are_said_once(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"method": "diw"})
    watch = Watch(Tracked(run, "diw seed 1", 4))
    said: list[str] = []
    for epoch in range(1, 5):
        Writer(run.folder, 1, 1).append({**row(epoch), "weighted": True, "ess": 0.05})
        watch.look()
        said += watch.warnings()
    assert len(said) == 1
    assert said[0].startswith("warning: diw seed 1: from epoch 1: few samples carry the training")
    assert "--set diw.bound" in said[0]
