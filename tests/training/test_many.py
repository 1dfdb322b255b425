import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from safetensors.numpy import load_file

from diw.errors import RunError, UsageError
from diw.runs import LOCK, Recipe, RunSpec
from diw.runs.sources import Source
from diw.training.many import free_first, run_all, try_all
from diw.training.recorded import execute, with_method

RECIPE = Recipe(epochs=3, lr=1e-3)
SMALL = RunSpec(trusted=100, train_samples=1500, test_samples=100, model="mlp", recipe=RECIPE)
SPEC = with_method(replace(SMALL, shift="symmetric:0.4"), "diw")


def test_methods_share_their_data() -> None:
    first, second = Source.of(SPEC).split, Source.of(with_method(SPEC, "uniform")).split
    assert (first.train.targets == second.train.targets).all()
    assert (first.trusted_index == second.trusted_index).all()
    other = Source.of(replace(SPEC, seed=1)).split
    assert not (first.train.targets == other.train.targets).all()


def test_processes_give_what_one_process_gives_and_nothing_is_redone(tmp_path: Path) -> None:
    specs = [SPEC, with_method(SPEC, "uniform")]
    run_all(specs, tmp_path / "alone", jobs=1)
    run_all(specs, tmp_path / "together", jobs=2)
    alone = [spec.run(tmp_path / "alone") for spec in specs]
    together = [spec.run(tmp_path / "together") for spec in specs]
    for a, b in zip(alone, together, strict=True):
        first, second = load_file(a.model), load_file(b.model)
        assert all((first[name] == second[name]).all() for name in first)
    before = [run.model.stat().st_mtime_ns for run in together]
    run_all(specs, tmp_path / "together", jobs=2)
    assert [run.model.stat().st_mtime_ns for run in together] == before


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    good = with_method(SPEC, "uniform")
    bad = replace(good, recipe=replace(RECIPE, lr=1e30))
    failures = try_all([bad, good], tmp_path)
    assert good.run(tmp_path).finished
    assert failures.keys() == {bad.run(tmp_path).folder.name}
    assert "lower the learning rate" in next(iter(failures.values()))


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
    spec = replace(SPEC, recipe=replace(RECIPE, epochs=16))
    whole = execute(spec, tmp_path / "whole")
    context = multiprocessing.get_context("spawn")
    victim = context.Process(target=execute, args=(spec, tmp_path / "killed"))
    victim.start()
    run = spec.run(tmp_path / "killed")
    deadline = time.monotonic() + 120
    while not run.metrics() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    assert not run.finished
    execute(spec, tmp_path / "killed")
    ours, theirs = load_file(run.model), load_file(whole.model)
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert run.ledger().tobytes() == whole.ledger().tobytes()


def test_a_worker_killed_mid_run_loses_nothing_and_nothing_is_done_twice(tmp_path, cluster) -> None:
    recipe = replace(RECIPE, epochs=16)
    specs = [replace(SPEC, recipe=recipe, seed=seed) for seed in range(3)]
    folder = tmp_path / "runs"
    killed: list[int] = []
    victim = cluster.add_worker()

    def kill_it_at_work() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not killed:
            begun = [run for spec in specs if (run := spec.run(folder)).metrics()]
            if any(len(run.metrics()) >= 2 and not run.finished for run in begun):
                victim.kill()
                killed.append(victim.pid)
            time.sleep(0.01)
        cluster.add_worker()
        cluster.add_worker()

    killer = threading.Thread(target=kill_it_at_work)
    killer.start()
    failures = try_all(specs, folder, scheduler=cluster.address)
    killer.join()
    assert failures == {}
    assert killed
    for spec in specs:
        run = spec.run(folder)
        assert run.finished
        assert [row["epoch"] for row in run.metrics()] == list(range(1, 17))
        alone = execute(spec, tmp_path / "alone")
        ours, theirs = load_file(run.model), load_file(alone.model)
        assert all((ours[name] == theirs[name]).all() for name in theirs)
        assert run.ledger().tobytes() == alone.ledger().tobytes()
    before = [spec.run(folder).model.stat().st_mtime_ns for spec in specs]
    run_all(specs, folder, scheduler="tcp://127.0.0.1:1")  # nothing left to ask for
    assert [spec.run(folder).model.stat().st_mtime_ns for spec in specs] == before


def test_workers_with_several_threads_are_refused(tmp_path, cluster) -> None:
    cluster.add_worker(threads=2)
    with pytest.raises(UsageError, match="has 2 threads; start the workers with --nthreads 1"):
        run_all([SPEC], tmp_path / "runs", scheduler=cluster.address)


def test_a_scheduler_that_is_not_there_is_named(tmp_path, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("diw.training.many.PATIENCE", 1)
    with pytest.raises(RunError, match=r"127\.0\.0\.1:1: cannot reach a dask scheduler"):
        run_all([SPEC], tmp_path, scheduler="tcp://127.0.0.1:1")


def test_a_service_that_is_no_scheduler_is_named(tmp_path, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("diw.training.many.PATIENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:  # the test has ended
                    return
                caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(RunError, match=rf"{address}: cannot reach a dask scheduler"):
            run_all([SPEC], tmp_path, scheduler=f"tcp://{address}")
        server.shutdown(socket.SHUT_RDWR)


def when_it_trains(run, act) -> threading.Thread:
    """Call `act` once the run has two epochs."""

    def wait() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(run.metrics()) < 2:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_a_cluster_that_dies_is_reported_and_not_waited_for(tmp_path, cluster) -> None:
    long = replace(SPEC, train_samples=500, test_samples=50, recipe=Recipe(epochs=5000))
    folder = tmp_path / "runs"
    killer = when_it_trains(long.run(folder), cluster.add_worker().kill)
    with pytest.raises(RunError, match="no worker is left; gave up after 0 seconds"):
        run_all([long], folder, scheduler=cluster.address, timeout=0)
    killer.join()
    other = replace(long, seed=1)
    cluster.add_worker()
    killer = when_it_trains(other.run(folder), cluster.processes[0].kill)
    with pytest.raises(RunError, match="the dask scheduler is gone; the same command goes on"):
        run_all([other], folder, scheduler=cluster.address)
    killer.join()


def test_a_killed_process_of_several_is_one_line(tmp_path) -> None:
    long = replace(SPEC, train_samples=500, test_samples=50, recipe=Recipe(epochs=5000))
    specs = [long, replace(long, seed=1)]

    def kill_the_holder() -> None:
        process, _ = json.loads((long.run(tmp_path).folder / LOCK).read_text())
        os.kill(process, signal.SIGKILL)

    killer = when_it_trains(long.run(tmp_path), kill_the_holder)
    with pytest.raises(RunError, match="was killed, perhaps for want of memory"):
        run_all(specs, tmp_path, jobs=2)
    killer.join()
