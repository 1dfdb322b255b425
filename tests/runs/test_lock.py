"""The lock of a run, as two commands meet at it."""

import errno
import threading
from pathlib import Path

import pytest

from diw.errors import RunError
from diw.runs import LOCK, Run, holding, is_held
from diw.runs import lock as module


def test_one_at_a_time_and_the_other_is_told_who(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(module, "SILENT", 0.02)
    with holding(tmp_path / "run"):
        assert is_held(tmp_path / "run")
        with pytest.raises(RunError, match=r"run: .*process.* gave up after 0.1 seconds"):
            holding(tmp_path / "run", timeout=0.1).__enter__()
    assert "run: waiting for " in capsys.readouterr().err
    assert not is_held(tmp_path / "run")
    with holding(tmp_path / "run", timeout=0):
        pass


def test_a_short_wait_is_silent_and_ends(tmp_path: Path, capsys) -> None:
    entered = threading.Event()

    def hold_for_a_moment() -> None:
        with holding(tmp_path):
            entered.set()
            threading.Event().wait(0.1)

    thread = threading.Thread(target=hold_for_a_moment)
    thread.start()
    assert entered.wait(60)
    with holding(tmp_path):
        assert not thread.join(60)
    assert capsys.readouterr().err == ""


def test_the_lock_stays_when_the_run_is_discarded(tmp_path: Path) -> None:
    """Else a command that waits for it and one that comes later would hold different locks."""
    run = Run.create(tmp_path / "run", {})
    with holding(run.folder):
        before = (run.folder / LOCK).stat().st_ino
        run.forget()
        assert (run.folder / LOCK).stat().st_ino == before
        assert is_held(run.folder)
    assert [path.name for path in run.folder.iterdir()] == [LOCK]


@pytest.mark.parametrize("reason", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EACCES])
def test_a_disk_without_locks_is_named_and_nobody_is_waited_for(
    tmp_path: Path, monkeypatch, reason: int
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def flock(*_: object) -> None:
        raise OSError(reason, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(module, "SILENT", 0.02)
    with pytest.raises(RunError, match=r"\.lock: cannot be locked: no locks here; choose a folder"):
        holding(tmp_path).__enter__()
    assert not is_held(tmp_path)
