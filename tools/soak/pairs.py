"""Start commands two at a time on one folder: no corruption, and each is told the truth.

    python -m tools.soak.pairs [--pairs 50] [--folder .soak/pairs] [--seed 0]

A pair is twice the same command, two with different settings, one with --fresh, or a report while
the other trains, the second a random moment after the first. Afterwards the run must be one of the
two that were asked for, whole and bitwise as if alone, and a command that was refused must say why.
"""

import random
import shutil
import time
from pathlib import Path

from tools.soak.cases import go_through, run_from_command_line
from tools.soak.kill import COMMANDS, results, start, wait

from diw.runs import Run
from tests.own_data import write_csv

ONE = COMMANDS["dynamic"]
OTHER = (*ONE, "--seed", "1")
REPORT = ("report", "run")
PAIRS = (
    (ONE, ONE),
    (ONE, OTHER),
    (ONE, (*ONE, "--fresh")),
    (ONE, (*OTHER, "--fresh")),
    (ONE, REPORT),
)


def run_soak(folder: Path, pairs: int, seed: int) -> None:
    """Start so many pairs, one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "alone").exists():
        write_csv(folder / "train.csv", 400, 1)
        write_csv(folder / "trusted.csv", 40, 2)
        for number, command in enumerate((ONE, OTHER)):
            assert wait(start(folder, command, folder / f"alone {number}")) == 0
        (folder / "alone").touch()
    alone = [results(folder / f"alone {number}") for number in range(2)]

    def case(number: int) -> str:
        chance = random.Random(f"{seed} {number}")
        shutil.rmtree(folder / "run", ignore_errors=True)
        first, second = PAIRS[number % len(PAIRS)]
        begun = start(folder, first, folder / "run")
        time.sleep(chance.choice([0, chance.uniform(0, 1)]))
        out = folder / ("page.html" if second == REPORT else "run")
        second_code, first_code = wait(start(folder, second, out)), wait(begun)
        codes = f"exit codes {first_code}, {second_code}"
        assert {first_code, second_code} <= {0, 2}, codes
        assert Run(folder / "run").verify()
        assert results(folder / "run") in alone, "the run is neither of the two"
        refused = [first_code, second_code].count(2)
        # Without --fresh one of two different commands is refused, whichever came first. With it,
        # the first is refused if it came too late. A report is, while nothing is finished.
        allowed = {OTHER: {1}, PAIRS[3][1]: {0, 1}, REPORT: {0, 1}}.get(second, {0})
        assert refused in allowed, codes
        return "with one refused" if refused else "both done"

    go_through(folder, "pairs", pairs, case)


if __name__ == "__main__":
    run_from_command_line(run_soak, str(__doc__), "pairs", "pairs", 50)
