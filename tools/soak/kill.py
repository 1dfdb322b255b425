"""Kill commands at random moments until they are done; they must end as undisturbed ones do.

    python -m tools.soak.kill [--kills 200] [--folder .soak/kill] [--seed 0]

Commands run in forked processes, which need not import torch again, and get SIGKILL after a
random part of the time that they take undisturbed. A kill in four comes in the first moments, where
folders are made and locks taken; interrupts and terminations are mixed in. Jobs of two processes
are forked too, with the environment that torchrun gives them; one more is started by torchrun
itself, and loses one of its processes or all. The counts so far are kept in the folder, so that a
stopped soak goes on.
"""

import argparse
import csv
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
import traceback
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from diw.cli.main import exit_on_termination, main

OWN = ("--epochs", "6", "--device", "cpu", "--label", "status", "--model", "mlp")

TWO = (
    *("train", "--data", "train.csv", "--trusted", "trusted.csv", *OWN),
    *("--set", "warmup_steps=10", "--set", "every=10", "--set", "block=1"),
)
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
    "two processes": ("forked", *TWO),
    "torchrun": ("torchrun", *TWO),
    "verified rows": ("train", "--data", "train.csv", "--verified", "checked.csv", *OWN),
    # These read the run of the first command.
    "audit": ("audit", "dynamic/whole", "--device", "cpu"),
    "report": ("report", "dynamic/whole", "--out", "{out}/page.html", "--json", "{out}/r.json"),
    "predictions": ("predict", "dynamic/whole", "trusted.csv", "--out", "{out}/p.csv"),
    "evaluation": ("evaluate", "dynamic/whole", "trusted.csv", "--json", "{out}/e.json"),
    "weights of a run": ("export-weights", "dynamic/whole", "--out", "{out}/w.csv"),
    # These read tables alone.
    "weights of a table": (
        *("weights", "train.csv", "trusted.csv", "--label", "status", "--out", "{out}/w.csv"),
        *("--json", "{out}/w.json"),
    ),
    "draw": ("trust", "draw", "train.csv", "--label", "status", "-n", "40"),
    "diagnosis": (
        *("diagnose", "--data", "train.csv", "--trusted", "trusted.csv", "--label", "status"),
        *("--json", "{out}/diagnosis.json"),
    ),
}
"""What is killed; each writes to a folder: that of `--out`, or the one that `{out}` stands for."""

PR_SET_PDEATHSIG = 1  # of Linux
IGNORED = "seconds", ".lock", "report.html", "done", ".made-by-diw", "check.html"
"""What tells how long something took, holds the checksum of what does, or all rounds of a draw."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def run_soak(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill until there were `kills` kills, and every command is done; returns the counts."""
    from tests.own_data import write_csv

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "trusted.csv").exists():
        write_csv(folder / "train.csv", 400, 1)
        write_csv(folder / "trusted.csv", 40, 2)
        _check(folder / "train.csv", folder / "checked.csv")
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
        _expect((0,), wait(start(folder, COMMANDS[name], whole)))
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
        code = kill(process, number, started_by=COMMANDS[name][0])
        if code == 0:
            break
        if COMMANDS[name][0] == "torchrun":  # killed, or its exit code when a process was lost
            _expect((-9, 1), code)
        else:
            _expect(({signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number],), code)
        kills += 1
    _expect((0,), wait(start(folder, COMMANDS[name], out)))
    if "/diw/cli/main.py" in (folder / name / "log").read_text():
        raise SystemExit(f"{name}: a traceback; see the log in the soak's folder")
    ours, theirs = results(out), results(whole)
    if ours != theirs:
        different = sorted(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
        raise SystemExit(f"{name}: differs after {kills} kills: {', '.join(different)}")
    return kills


def _check(table: Path, sheet: Path) -> None:
    """Write a sheet of verified rows: the first forty, of which one in five was wrong."""
    with table.open(newline="") as file:
        given = [row["status"] for row in csv.DictReader(file)]
    other = {label: next(name for name in given if name != label) for label in set(given)}
    rights = [other[label] if row % 5 == 0 else label for row, label in enumerate(given[:40])]
    lines = [f"{table.name},{row},{right}" for row, right in enumerate(rights)]
    sheet.write_text("\n".join(["file,row,right", *lines]) + "\n")


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
        if command[0] == "forked":  # what a signal raises in the hooks of a fork would be lost
            command = command[1:]
            _join_another()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if command[0] == "torchrun":
            _torchrun((*command[1:], "--out", str(out)))
        main(_into(out, command))
    except KeyboardInterrupt:  # before the command has begun
        os._exit(130)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(99)  # a traceback, or no exit


def _into(out: Path, command: tuple[str, ...]) -> list[str]:
    """A command that writes to `out`."""
    words = [word.replace("{out}", str(out)) for word in command]
    if words == list(command):
        return [*words, "--out", str(out)]
    out.mkdir(exist_ok=True)
    return words


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


def _torchrun(command: tuple[str, ...]) -> None:
    """Become torchrun with two processes of a command."""
    source = str(Path(__file__).parents[2] / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    run = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "diw")
    os.execv(sys.executable, (sys.executable, *run, *command))


def kill(process: int, number: int, started_by: str) -> int:
    """Send a signal, and return the exit code.

    Of a job of torchrun, SIGKILL ends all processes, as a power cut does; where another signal was
    drawn, SIGKILL ends the last of the two, and the job must end by itself.
    """
    if started_by != "torchrun":
        os.kill(process, number)
        return wait(process)
    os.kill(process, signal.SIGSTOP)  # starts nothing more
    workers = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    if number == signal.SIGKILL or not workers:
        os.kill(process, signal.SIGKILL)
    for worker in workers if number == signal.SIGKILL else workers[-1:]:
        os.kill(int(worker), signal.SIGKILL)
    os.kill(process, signal.SIGCONT)
    return wait(process)


def wait(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _expect(expected: tuple[int, ...], code: int) -> None:
    if code not in expected:
        raise SystemExit(f"exit code {code}, expected {expected}; see the log in the soak's folder")


def results(out: Path) -> dict[str, object]:
    """What must be equal: every file of every run but its times, and that nothing is left over."""
    found: dict[str, object] = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.is_dir() or path.name in IGNORED or path.match("draw/*/check-*.csv"):
            continue
        content: Any = path.read_bytes()
        if path.name == "metrics.jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            content = [{key: row[key] for key in row if key != "seconds"} for row in rows]
        if path.name == "draw.json":  # what was killed at its end draws a second round
            rounds = [each["rows"] for each in json.loads(content)["rounds"]]
            drawn = list(chain.from_iterable(rounds))
            if len(set(drawn)) < len(drawn):
                raise SystemExit("draw: a row was drawn twice")
            content = rounds[0]
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
