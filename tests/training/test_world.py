"""`diw train` in several processes: the run of one process, and what a lost process leaves."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from diw.cli.main import main
from diw.errors import RunError
from diw.runs import Run
from diw.step.world import joined
from tests.own_data import write_csv

ROOT = Path(__file__).parents[2]
METHODS = ("remember", "diw", "reweight", "siw-l", "clean")
SETTINGS = {
    "remember": ("--set", "warmup_steps=4", "--set", "block=1", "--set", "every=4"),
    "siw-l": ("--set", "pretraining=1"),
    "diw": ("--set", "ridge=0.1"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_csv(tmp_path / "train.csv", 85, 1)
    write_csv(tmp_path / "trusted.csv", 24, 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(method: str, out: str, *more: str) -> list[str]:
    own = ["--data", "train.csv", "--trusted", "trusted.csv", "--label", "status"]
    short = ["--epochs", "3", "--batch-size", "18", "--device", "cpu", "--model", "mlp"]
    return ["train", *own, *short, "--method", method, *SETTINGS.get(method, ()), *more,
            "--out", out]  # fmt: skip


def ranks(folder: Path, arguments: list[str], size: int = 2) -> list[tuple[int, str]]:
    """Run a command in `size` forked processes, with the environment that torchrun gives them.

    Returns:
        The exit code of each, and what it said.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(size):
        process = os.fork()
        if not process:
            code = 99
            try:
                log = os.open(folder / f"log{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(log, 1)
                os.dup2(log, 2)
                sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size)}
                os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
                main(arguments)
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        processes.append(process)
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    return [(code, (folder / f"log{rank}").read_text()) for rank, code in enumerate(codes)]


def alone(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0


def assert_same(one: Path, two: Path) -> None:
    """Equal but for rounding: batches are 18, and 1 less than two processes share evenly."""
    Run(two).verify()
    assert Run(one).spec_json == Run(two).spec_json
    for ours, theirs in zip(Run(one).metrics(), Run(two).metrics(), strict=True):
        assert ours.keys() == theirs.keys()
        assert ours["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-4)
    ours, theirs = (load_file(path / "model.safetensors") for path in (one, two))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=2e-4)
    torch.testing.assert_close(
        *(torch.as_tensor(Run(path).ledger().copy()).float() for path in (one, two)),
        rtol=1e-2, atol=1e-2, equal_nan=True,
    )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_two_processes_make_the_run_of_one(method, folder) -> None:
    alone(command(method, "one"))
    [(first, words), (second, silent)] = ranks(folder, command(method, "two"))
    assert (first, second) == (0, 0), words + silent
    assert "accuracy" in words
    assert not silent
    assert_same(folder / "one", folder / "two")


def test_a_run_goes_on_with_another_number_of_processes(folder, monkeypatch) -> None:
    alone(command("remember", "one"))
    from diw.runs import Writer

    original = Writer.append

    def stop(journal, row, *ledgers):
        if row["epoch"] == 2:
            raise KeyboardInterrupt
        original(journal, row, *ledgers)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", stop)
        [(first, words), (second, lost)] = ranks(folder, command("remember", "two"))
    assert first == 130, words
    assert second == 1
    assert re.search(r"diw: .*world: process 1 of 2 lost another one; start the job again", lost)
    assert len(Run(folder / "two").metrics()) == 1
    [(code, words)] = ranks(folder, command("remember", "two"), size=1)
    assert code == 0, words
    assert_same(folder / "one", folder / "two")
    codes = ranks(folder, command("remember", "two"))  # finished: nothing is left to do
    assert [code for code, _ in codes] == [0, 0]
    assert "already trained" in codes[0][1]


def test_a_process_that_dies_before_training_is_said(folder, monkeypatch) -> None:
    from diw.step.world import Distributed

    original = Distributed.host

    def die(world, model):
        if world.rank:
            os._exit(9)
        return original(world, model)

    monkeypatch.setattr(Distributed, "host", die)
    [(first, words), (second, _)] = ranks(folder, command("diw", "two"))
    assert (first, second) == (1, 9), words
    assert re.search(r"diw: .*world: process 0 of 2 lost another one; start the job again", words)
    assert "Traceback" not in words


def test_a_process_that_does_not_meet_the_others_says_so(monkeypatch) -> None:
    def fail(*_):
        raise torch.distributed.DistNetworkError("The client socket has timed out\nafter 60000ms")

    monkeypatch.setattr("torch.distributed.init_process_group", fail)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(
        RunError, match=r"^world: process 1 of 2 did not meet the others: The .* af"
    ):
        joined()


def test_what_cannot_be_shared_is_said(folder) -> None:
    for wrong, words in (
        (command("diw2-f", "out"), r"world: diw2-f matches each class alone"),
        (command("diw", "other", "--batch-size", "1"), r"--batch-size: a mini-batch of 1 rows is"),
        (["report", "out"], r"report: runs in one process; torchrun is for diw train"),
    ):
        (code, said), _ = ranks(folder, wrong)
        assert code == 2
        assert re.search(words, said), said


def test_torchrun_ends_with_a_clear_message_when_a_process_dies(folder) -> None:
    """The real launcher, and a SIGKILL; the job goes on where it was."""
    alone(command("diw", "one", "--epochs", "30"))
    train = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    train += ["--nproc-per-node", "2", "-m", "diw", *command("diw", "two", "--epochs", "30")]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(
        train, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as job:
        metrics = folder / "two" / "metrics.jsonl"
        end = time.monotonic() + 120
        while time.monotonic() < end and not (metrics.exists() and metrics.stat().st_size):
            time.sleep(0.01)
        os.kill(_of_rank(job.pid, 1), signal.SIGKILL)
        words = job.communicate(timeout=120)[0]
    assert job.returncode == 1, words
    assert re.search(r"diw: .*world: process 0 of 2 lost another one", words), words
    done = len(metrics.read_text().splitlines())
    assert 1 <= done < 30
    [(code, words), _] = ranks(folder, command("diw", "two", "--epochs", "30"))
    assert code == 0, words
    assert_same(folder / "one", folder / "two")
    seconds = [json.loads(line)["seconds"] for line in metrics.read_text().splitlines()]
    assert seconds == sorted(seconds)


def _of_rank(launcher: int, rank: int) -> int:
    """The process of a rank that a launcher started (Linux)."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank}")
