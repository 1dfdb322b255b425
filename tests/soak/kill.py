"""Kill commands at random moments until they are done; they must end as undisturbed ones do.

    python -m tests.soak.kill [--kills 200] [--folder .soak/kill] [--seed 0]

Commands run in forked processes, which need not import torch again, and get SIGKILL after a
random part of the time that they take undisturbed. A kill in four comes in the first moments, where
folders are made and locks taken; interrupts and terminations are mixed in. The counts so far are
kept in the folder, so that a stopped soak goes on.
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import torch

from diw.cli.main import main
from diw.cli.signals import exit_on_termination

OWN = ("--epochs", "6", "--device", "cpu", "--label", "status", "--model", "mlp")

COMMANDS: dict[str, tuple[str, ...]] = {
    "dynamic": ("train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN),
    "pretraining and static weights": (
        *("train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN),
        *("--method", "siw-l", "--set", "pretraining=4"),
    ),
    "gradients": (
        *("train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN),
        *("--method", "reweight"),
    ),
    "trusted alone": (
        *("train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN, "--method", "clean"),
    ),
    "comparison": (
        *("compare", "--data", "train.csv", "--trusted", "trusted.csv", "--shift", "none", *OWN),
        *("--methods", "uniform,diw", "--seeds", "1", "--jobs", "1"),
    ),
    "two processes": (
        *("torchrun", "train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN),
        *("--set", "warmup_steps=10", "--set", "every=10", "--set", "block=1"),
    ),
    "audit": ("audit", "dynamic/whole", "--device", "cpu"),  # of the first command's run
}
"""What is killed; each writes to the folder `out`."""

PR_SET_PDEATHSIG = 1  # of Linux
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def run_soak(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill until there were `kills` kills, and every command is done; returns the counts."""
    from tests.own_data import write_csv

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "trusted.csv").exists():
        write_csv(folder / "train.csv", 400, 1)
        write_csv(folder / "trusted.csv", 40, 2)
    counts_file = folder / "counts.json"
    counts = json.loads(counts_file.read_text()) if counts_file.exists() else {}
    rounds = counts.get("rounds", 0)
    while counts.get("kills", 0) < kills:
        name = list(COMMANDS)[rounds % len(COMMANDS)]
        chance = random.Random(f"{seed} {rounds}")
        counts["kills"] = counts.get("kills", 0) + _one_round(folder, name, chance)
        rounds += 1
        counts["rounds"] = rounds
        counts_file.write_text(json.dumps(counts))
        print(f"{counts['kills']} kills in {rounds} runs, all bitwise equal", flush=True)
    return counts


def _one_round(folder: Path, name: str, chance: random.Random) -> int:
    """Kill one command again and again until it is done, and compare; the number of kills."""
    whole, out = folder / name / "whole", folder / name / "killed"
    if not (whole / "seconds").exists():
        shutil.rmtree(whole, ignore_errors=True)
        started = time.monotonic()
        _expect(0, wait(start(folder, COMMANDS[name], whole)))
        (whole / "seconds").write_text(str(time.monotonic() - started))
    shutil.rmtree(out, ignore_errors=True)
    seconds = float((whole / "seconds").read_text())
    kills = 0
    while kills < 8:
        process = start(folder, COMMANDS[name], out)
        time.sleep(chance.uniform(0, 0.1 if chance.random() < 0.25 else 0.7 * seconds))
        number = chance.choice(SIGNALS)
        if os.waitpid(process, os.WNOHANG)[0]:
            break
        os.kill(process, number)
        code = wait(process)
        if code == 0:
            break
        _expect({signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number], code)
        kills += 1
    _expect(0, wait(start(folder, COMMANDS[name], out)))
    ours, theirs = results(out), results(whole)
    if ours != theirs:
        different = sorted(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
        raise SystemExit(f"{name}: differs after {kills} kills: {', '.join(different)}")
    return kills


def start(folder: Path, command: tuple[str, ...], out: Path) -> int:
    # A signal that comes before the command can hear it waits.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process
    try:
        os.chdir(folder)
        out.parent.mkdir(parents=True, exist_ok=True)
        quiet = os.open(out.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        exit_on_termination()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if command[0] == "torchrun":
            command = command[1:]
            _join_another()
        main([*command, "--out", str(out)])
    except KeyboardInterrupt:  # before the command has begun
        os._exit(130)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
    finally:
        os._exit(99)  # a traceback, or no exit


def _join_another() -> None:
    """Fork a second process of the same job, with the environment that torchrun gives them.

    This one, the first, gets the signals; the other is ended with it, as torchrun would do.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    os.environ["RANK"] = "0" if os.fork() else "1"
    if os.environ["RANK"] == "1":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _expect(expected: int, code: int) -> None:
    if code != expected:
        raise SystemExit(f"exit code {code}, expected {expected}; see the log in the soak's folder")


def results(out: Path) -> dict[str, object]:
    """What must be equal: every file of every run but its times, and that nothing is left over."""
    found: dict[str, object] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.is_dir() or path.name in ("seconds", ".lock", "report.html", "done"):
            continue
        content: object = path.read_bytes()
        if path.name == "metrics.jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            content = [{key: row[key] for key in row if key != "seconds"} for row in rows]
        found[name] = content
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path(".soak/kill"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    run_soak(options.folder.absolute(), options.kills, options.seed)
