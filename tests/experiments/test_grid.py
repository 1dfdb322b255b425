import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from filelock import FileLock
from safetensors.numpy import load_file

from diw.experiments.execute import LOCK, execute
from diw.experiments.grid import free_first, run_all
from diw.experiments.sources import load_split, with_method
from diw.records import Recipe, RunSpec

RECIPE = Recipe(epochs=3, lr=1e-3)
SPEC = with_method(RunSpec(shift="symmetric:0.4", trusted=100, model="mlp", recipe=RECIPE), "diw")


def test_methods_share_their_data() -> None:
    first, second = load_split(SPEC), load_split(with_method(SPEC, "uniform"))
    assert (first.train.targets == second.train.targets).all()
    assert (first.trusted_places == second.trusted_places).all()
    other = load_split(replace(SPEC, seed=1))
    assert not (first.train.targets == other.train.targets).all()


def test_processes_give_what_one_process_gives_and_nothing_is_redone(tmp_path: Path) -> None:
    specs = [SPEC, with_method(SPEC, "uniform")]
    alone = run_all(specs, tmp_path / "alone", jobs=1)
    together = run_all(specs, tmp_path / "together", jobs=2)
    for a, b in zip(alone, together, strict=True):
        first, second = load_file(a.model), load_file(b.model)
        assert all((first[name] == second[name]).all() for name in first)
    before = [run.model.stat().st_mtime_ns for run in together]
    run_all(specs, tmp_path / "together", jobs=2)
    assert [run.model.stat().st_mtime_ns for run in together] == before


def test_two_processes_never_do_the_same_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=execute, args=(SPEC, tmp_path)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert [row["epoch"] for row in SPEC.run(tmp_path).metrics()] == [1, 2, 3]


def test_a_command_takes_up_first_what_no_other_one_trains(tmp_path: Path) -> None:
    taken, free = SPEC, with_method(SPEC, "uniform")
    folder = taken.run(tmp_path).folder
    folder.mkdir(parents=True)
    order = free_first([taken, free], tmp_path)
    with FileLock(folder / LOCK):
        assert next(order) == free
    assert list(order) == [taken]


def test_a_run_killed_by_the_system_frees_its_lock_and_goes_on(tmp_path: Path) -> None:
    whole = execute(SPEC, tmp_path / "whole")
    context = multiprocessing.get_context("spawn")
    victim = context.Process(target=execute, args=(SPEC, tmp_path / "killed"))
    victim.start()
    run = SPEC.run(tmp_path / "killed")
    deadline = time.monotonic() + 120
    while not run.metrics() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    assert not run.finished
    execute(SPEC, tmp_path / "killed")
    ours, theirs = load_file(run.model), load_file(whole.model)
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert run.ledger().tobytes() == whole.ledger().tobytes()
