"""Who may write to the folder of a run: decided under its lock."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from diw.errors import RunError, UsageError
from diw.runs import Run, check_claim, claim, discard, holding
from diw.runs.journal import CHECKPOINTS
from diw.training.recorded import execute, with_method
from tests.own_data import diw, done
from tests.problems import TINY

SPEC = with_method(TINY, "diw")
TRAIN = (
    *("train", "--epochs", "1", "--trusted", "50", "--model", "mlp", "--method", "uniform"),
    *("--device", "cpu"),
)


def test_fresh_waits_for_the_command_that_trains_the_run(tmp_path: Path) -> None:
    done(*TRAIN, "--out", tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with holding(tmp_path / "run"):
        code, _, error = diw(*TRAIN, "--out", tmp_path / "run", "--fresh", "--timeout", "0.1")
    assert code == 1
    assert "works on this run; gave up after 0.1 seconds" in error
    del before[".lock"]
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before


def test_the_spec_is_compared_under_the_lock(tmp_path: Path, monkeypatch) -> None:
    """Another command takes the empty folder between the first look and the lock."""
    from diw.cli import train

    other = replace(SPEC, seed=7)

    @contextmanager
    def after_another(folder, timeout):
        with holding(folder, timeout):
            Run.create(folder, other.as_json())
            yield

    monkeypatch.setattr(train, "holding", after_another)
    code, out, error = diw(*TRAIN, "--out", tmp_path / "run")
    assert code == 2
    assert out == ""
    assert "holds another run" in error
    assert Run(tmp_path / "run").spec == other


def test_discarding_happens_under_the_lock_and_keeps_it(tmp_path: Path) -> None:
    run = execute(SPEC, tmp_path)
    with holding(run.folder), pytest.raises(RunError, match="works on this run"):
        discard(run, timeout=0)
    assert run.finished
    discard(run)
    assert [path.name for path in run.folder.iterdir()] == [".lock"]
    discard(Run(tmp_path / "missing"))
    assert not (tmp_path / "missing").exists()


def test_what_a_kill_after_the_end_left_is_removed_by_the_next_command(tmp_path: Path) -> None:
    from diw.training.many import run_all

    run = execute(SPEC, tmp_path)
    for path in (run.folder / name for name in CHECKPOINTS):
        path.write_bytes(b"not needed any more")
    run_all([SPEC], tmp_path)
    assert not run.untidy


def test_another_run_and_other_files_are_refused(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", SPEC.as_json())
    claim(SPEC, run)
    with pytest.raises(UsageError, match="holds another run"):
        check_claim(replace(SPEC, seed=9), run)
    (run.folder / "spec.json").rename(run.folder / "thesis.tex")
    with pytest.raises(UsageError, match="holds other files"):
        check_claim(SPEC, run, fresh=True)
