"""Damage files of runs and make up command lines: no traceback, no hang, no wrong result.

    python -m tests.soak.fuzz [--cases 4500] [--folder .soak/fuzz] [--seed 0]

Two cases in three damage one file of a finished or an unfinished run (a byte flipped, an end cut
off, emptied, exchanged for another, removed) and call a verb on it; one in three is a random
command line. A command may exit with 0, 1 or 2 only, with 1 and 2 in a line that says why, and with
0 only if its result is that of the undamaged run. Every case is determined by its number; the
number reached is kept in the folder, so that a stopped soak goes on.
"""

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import traceback
import warnings
from pathlib import Path

import torch

from diw.cli.main import VERBS, main

TRAIN = (
    *("train", "--data", "train.csv", "--label", "status", "--trusted", "trusted.csv"),
    *("--epochs", "3", "--device", "cpu"),
)
PREDICT = ("predict", "run", "trusted.csv", "--out", "p.csv", "--device", "cpu")

WORDS = (
    *(
        "train.csv",
        "trusted.csv",
        "missing.csv",
        "run",
        ".",
        "",
        "-1",
        "0",
        "1",
        "1e400",
        "nan",
        "/",
    ),
    *("embedded", "status", "rows:0,1", "5/class", "symmetric:0.4", "pair:2", "none", "mlp", "diw"),
    *("uniform,diw", "é", "x" * 300, "--", "-h", "diw.bound=10", "bound", "cpu", "p.csv", "p.npz"),
)
FLAGS = (
    *("--data", "--label", "--trusted", "--test", "--shift", "--model", "--epochs", "--batch-size"),
    *(
        "--lr",
        "--schedule",
        "--method",
        "--methods",
        "--seed",
        "--seeds",
        "--out",
        "--json",
        "--set",
    ),
    *(
        "--fresh",
        "--device",
        "--jobs",
        "--only",
        "--scale",
        "--gamma",
        "--bound",
        "--raw",
        "--drop",
    ),
    *("--list", "--dry-run", "--timeout", "--trust-model", "--allow-leaks", "--optimizer", "--tol"),
)


def run_soak(folder: Path, cases: int, seed: int) -> int:
    """Run the cases from where the last soak stopped; returns how many were run in all."""
    from tests.own_data import write_csv

    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    if not Path("expected.json").exists():
        write_csv(Path("train.csv"), 60, 1)
        write_csv(Path("trusted.csv"), 20, 2)
        for name in ("finished", "unfinished"):
            shutil.rmtree(name, ignore_errors=True)
        assert diw(*TRAIN, "--out", "finished")[0] == 0
        _leave_unfinished()
        shutil.copytree("finished", "run")
        assert diw(*PREDICT)[0] == 0
        expected = {"predictions": Path("p.csv").read_text(), "metrics": _metrics(Path("finished"))}
        Path("expected.json").write_text(json.dumps(expected))
    expected = json.loads(Path("expected.json").read_text())
    reached = Path("reached")
    first = int(reached.read_text()) if reached.exists() else 0
    for number in range(first, cases):
        chance = random.Random(f"{seed} {number}")
        words = _damaged(chance, expected) if number % 3 else _made_up(chance)
        if words:
            raise SystemExit(f"case {number}: {words}")
        reached.write_text(str(number + 1))
        if number % 100 == 99 or number == cases - 1:
            print(f"{number + 1} cases, nothing wrong", flush=True)
    return cases


def _leave_unfinished() -> None:
    """A run that was stopped before its last epoch."""
    from diw.records import Journal

    original = Journal.append

    def stop(journal: Journal, row: dict[str, object], *ledgers: object) -> None:
        if row["epoch"] == 3:
            raise KeyboardInterrupt
        original(journal, row, *ledgers)  # type: ignore[arg-type]

    Journal.append = stop  # type: ignore[method-assign,assignment]
    try:
        assert diw(*TRAIN, "--out", "unfinished")[0] == 130
    finally:
        Journal.append = original  # type: ignore[method-assign]


def _damaged(chance: random.Random, expected: dict[str, object]) -> str:
    """Damage one file of a run and call a verb; what is wrong with the outcome, or nothing."""
    shutil.rmtree("run", ignore_errors=True)
    finished = chance.random() < 0.6
    shutil.copytree("finished" if finished else "unfinished", "run")
    for left in ("p.csv", "r.html", "r.json"):
        Path(left).unlink(missing_ok=True)
    files = sorted(path for path in Path("run").iterdir() if path.name != ".lock")
    path = chance.choice(files)
    what = chance.choice(["flip", "flip", "flip", "cut", "empty", "swap", "remove"])
    content = bytearray(path.read_bytes())
    if what == "remove":
        path.unlink()
    elif what == "swap":
        shutil.copy(chance.choice([other for other in files if other != path]), path)
    elif what == "empty":
        path.write_bytes(b"")
    elif content:
        place = chance.randrange(len(content))
        content[place] ^= 1 << chance.randrange(8)
        path.write_bytes(content if what == "flip" else content[:place])
    verbs = (PREDICT, ("report", "run", "--out", "r.html", "--json", "r.json"), ("verify", "run"))
    command = chance.choice([*verbs, (*TRAIN, "--out", "run"), ("evaluate", "run", "trusted.csv")])
    code, words = _outcome(command)
    if words:
        return f"{what} {path}, then {' '.join(command)}: {words}"
    wrong = ""
    if code == 0 and command == PREDICT and Path("p.csv").read_text() != expected["predictions"]:
        wrong = "other predictions"
    if code == 0 and command[0] == "train" and _metrics(Path("run")) != expected["metrics"]:
        wrong = "other metrics"
    return wrong and f"{what} {path}, then {' '.join(command)}: {wrong}"


def _made_up(chance: random.Random) -> str:
    """Call a random command line; what is wrong with the outcome, or nothing."""
    command = [chance.choice([*VERBS, "", "--help"])]
    for _ in range(chance.randrange(7)):
        command += [chance.choice(FLAGS)] if chance.random() < 0.6 else []
        command += [chance.choice(WORDS)] if chance.random() < 0.8 else []
    if command[0] in ("train", "compare") and "--epochs" not in command:
        command += ["--epochs", "1"]
    if command[0] in ("compare", "train") and "--data" not in command:
        command += ["--data", "train.csv", "--label", "status"]
    if command[0] == "reproduce":
        command += ["--dry-run"]
    _, words = _outcome(command)
    return words and f"{command}: {words}"


def _outcome(command: tuple[str, ...] | list[str]) -> tuple[int, str]:
    try:
        code, out, error = diw(*command)
    except BaseException:
        return -1, traceback.format_exc()
    if code not in (0, 1, 2):
        return code, f"exit code {code}"
    if "Traceback" in out + error:
        return code, error
    if code and not (error.strip() or "Usage:" in out):
        return code, f"exit code {code} without a word"
    return code, ""


def diw(*command: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in this process."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(list(command))
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), error.getvalue()
    raise AssertionError("no exit")


def _metrics(run: Path) -> list[object]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: row[key] for key in row if key != "seconds"} for row in rows]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cases", type=int, default=4500)
    parser.add_argument("--folder", type=Path, default=Path(".soak/fuzz"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run_soak(options.folder.absolute(), options.cases, options.seed)
