"""Damage files of runs and make up command lines: no traceback, no hang, no wrong result.

    python -m tools.soak.fuzz [--cases 4500] [--folder .soak/fuzz] [--seed 0]

Two cases in three damage one file of a finished or an unfinished run (a byte flipped, an end cut
off, emptied, exchanged for another, removed) and call a verb on it; one in three is a random
command line. A command may exit with 0, 1 or 2 only, with 1 and 2 in a line that says why, and with
0 only if its result is that of the undamaged run. Every case is determined by its number; the
number reached is kept in the folder, so that a stopped soak goes on.
"""

import contextlib
import io
import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
from tools.soak.cases import WrongError, go_through, run_from_command_line

from diw.cli.main import VERBS, main
from diw.cli.main import diw as verbs

TRAIN = (
    *("train", "--data", "train.csv", "--label", "status", "--trusted", "trusted.csv"),
    *("--epochs", "3", "--device", "cpu"),
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "predict": ("predict", "run", "trusted.csv", "--out", "p.csv", "--device", "cpu"),
    "report": ("report", "run", "--out", "r.html", "--json", "r.json"),
    "verify": ("report", "run", "--check"),
    "train": (*TRAIN, "--out", "run"),
    "evaluate": ("evaluate", "run", "trusted.csv", "--device", "cpu", "--json", "e.json"),
    "audit": ("audit", "run", "--out", "a", "--device", "cpu"),
}
"""What is called on a damaged run."""

WORDS = (
    *("train.csv", "trusted.csv", "missing.csv", "run", ".", "", "-1", "0", "1", "1e400", "nan"),
    *("embedded", "status", "rows:0,1", "5/class", "symmetric:0.4", "pair:2", "none", "mlp", "/"),
    *("uniform,diw", "é", "x" * 300, "--", "-h", "diw.bound=10", "bound", "cpu", "p.csv", "p.npz"),
)
NUMBERS = ("0", "1", "2", "-1", "0.5", "1e-3", "1e400", "nan", "7")
FILES = {"predict": 2, "evaluate": 2, "audit": 1, "export-weights": 1, "weights": 2}
FILES |= {"report": 1}
"""How many files or runs a verb takes."""
OPTIONS: dict[str, list[click.Option]] = {
    verb: [
        option
        for option in verbs.get_command(click.Context(verbs), verb).params  # type: ignore[union-attr]
        if isinstance(option, click.Option) and "--scheduler" not in option.opts
    ]
    for verb in VERBS
}
"""Of each verb; but a scheduler that is not there is waited for, as promised."""


def run_soak(folder: Path, cases: int, seed: int) -> None:
    """Try so many cases, one after the other."""
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
        expected: dict[str, dict[str, object]] = {}
        for state in ("finished", "unfinished"):
            expected[state] = {verb: _result(verb, state) for verb in COMMANDS}
        assert all(expected["finished"].values())
        assert expected["finished"]["train"] == expected["unfinished"]["train"]
        Path("expected.json").write_text(json.dumps(expected))
    expected = json.loads(Path("expected.json").read_text())

    def case(number: int) -> str:
        chance = random.Random(f"{seed} {number}")
        return _damaged(chance, expected) if number % 3 else _made_up(chance)

    go_through(folder, "cases", cases, case)


def _leave_unfinished() -> None:
    """A run that was stopped before its last epoch."""
    from diw.runs import Writer

    original = Writer.append

    def stop(journal: Writer, row: dict[str, object], *ledgers: object) -> None:
        if row["epoch"] == 3:
            raise KeyboardInterrupt
        original(journal, row, *ledgers)  # type: ignore[arg-type]

    Writer.append = stop  # type: ignore[method-assign,assignment]
    try:
        assert diw(*TRAIN, "--out", "unfinished")[0] == 130
    finally:
        Writer.append = original  # type: ignore[method-assign]


def _damaged(chance: random.Random, expected: dict[str, dict[str, object]]) -> str:
    """Damage one file of a run and call a verb; its exit code in words."""
    state = "finished" if chance.random() < 0.6 else "unfinished"
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree(state, "run")
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
    changed = not path.exists() or path.read_bytes() != Path(state, path.name).read_bytes()
    if path.name == "done" and not (path.exists() and path.read_bytes()):
        changed = False  # an unfinished run, or one of the time before checksums; verify says so
    verb = chance.choice(
        [verb for verb in COMMANDS if expected[state][verb] or not chance.randrange(9)]
    )
    where = f"{what} {path} of a run that is {state}, then {verb}"
    code = _checked(COMMANDS[verb], where)
    if code == 0 and _product(verb) != expected[state][verb]:
        raise WrongError(f"{where}: another result than that of the undamaged run")
    if code == 0 and verb == "verify" and changed and state == "finished":
        raise WrongError(f"{where}: was not noticed")
    return f"damaged runs: exit code {code}"


def _result(verb: str, state: str) -> object:
    """What a verb makes of an undamaged run, None if it refuses."""
    shutil.rmtree("run", ignore_errors=True)
    shutil.copytree(state, "run")
    return _product(verb) if _checked(COMMANDS[verb], verb) == 0 else None


def _product(verb: str) -> object:
    """What a verb has written."""
    if verb == "predict":
        return Path("p.csv").read_text()
    if verb == "train":
        rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
        return [{key: row[key] for key in row if key != "seconds"} for row in rows]
    if verb in ("report", "evaluate"):
        return json.loads(Path("r.json" if verb == "report" else "e.json").read_text())
    if verb == "audit":
        return Path("a/suspects.csv").read_text()
    return "verified"


def _made_up(chance: random.Random) -> str:
    """Call a random command line; its exit code in words.

    Mostly with options that the verb has, and values of the kind that they take.
    """
    verb = chance.choice([*VERBS, *VERBS, *VERBS, "", "--help"])
    command = [verb]
    command += [
        chance.choice(("train.csv", "trusted.csv", "run")) for _ in range(FILES.get(verb, 0))
    ]
    for _ in range(chance.randrange(6)):
        own = OPTIONS.get(verb) if chance.random() < 0.9 else None
        option = chance.choice(own or OPTIONS["train"])
        command.append(option.opts[0])
        if not option.is_flag or chance.random() < 0.05:
            choices = getattr(option.type, "choices", ())
            number = isinstance(option.type, click.types.FloatParamType | click.types.IntParamType)
            fitting = list(choices) or (NUMBERS if number else list(WORDS))
            command.append(str(chance.choice(fitting if chance.random() < 0.8 else WORDS)))
        elif chance.random() < 0.05:
            command.append(chance.choice(WORDS))
    if verb in ("train", "compare"):
        command += ["--epochs", "1", "--data", "train.csv", "--label", "status"]
    if verb == "reproduce":
        command += ["--dry-run"]
    shutil.rmtree("played", ignore_errors=True)  # a command may replace what it finds
    shutil.copytree("finished", "played/run")
    for name in ("train.csv", "trusted.csv"):
        shutil.copy(name, "played")
    with contextlib.chdir("played"):
        return f"command lines: exit code {_checked(command, str(command))}"


def _checked(command: Sequence[str], where: str) -> int:
    """The exit code of a command that ends as it should: with 0, or in a line that says why."""
    for left in ("p.csv", "r.html", "r.json", "e.json"):
        Path(left).unlink(missing_ok=True)
    shutil.rmtree("a", ignore_errors=True)
    code, out, error = diw(*command)
    if code not in (0, 1, 2):
        raise WrongError(f"{where}: exit code {code}: {error}")
    if "Traceback" in out + error:
        raise WrongError(f"{where}: {error}")
    if code and not (error.strip() or "Usage:" in out):
        raise WrongError(f"{where}: exit code {code} without a word")
    return code


def diw(*command: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in this process."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            main(list(command))
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), error.getvalue()
    raise AssertionError("no exit")


if __name__ == "__main__":
    run_from_command_line(run_soak, str(__doc__), "fuzz", "cases", 4500)
