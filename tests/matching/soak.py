"""Hold the solver against an independent one on very many random problems.

    python -m tests.matching.soak --problems 100000

It may be stopped at any time: the state is kept in soak/state.json, and the same
command goes on from there (`--fresh` starts again). Every problem is determined
by its number, so `--first 489 --problems 490 --fresh` repeats problem 489 alone.
It ends with exit code 1 if any problem failed.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from diw.matching import kmm
from tests.matching.oracles import ORACLES, Exact, compare
from tests.matching.random_problems import random_problem

STATE = Path("soak/state.json")
LARGE_ORACLES = ("piqp", "cvxopt")  # an active set takes too long
REPORT_EVERY = 1000
WORST = ("objective gap", "weight gap at ridge >= 1e-3", "objective misreported", "error bound")


def largest_of(number: int) -> int:
    """Most problems are small, one in ten goes up to 500 samples, one in five hundred to 2,000."""
    return 2000 if number % 500 == 499 else 500 if number % 10 == 9 else 120


def examine(number: int) -> tuple[list[str], dict[str, float], bool]:
    """What is wrong with our solution of one problem, its gaps, and whether the other had one."""
    train, trusted, options = random_problem(number, largest=largest_of(number))
    try:
        match = kmm(train, trusted, **options)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"], {}, True
    w, n, ridge = match.weights, len(train), options["ridge"]
    exact = Exact.of(train, trusted, **(options | {"gamma": match.gamma}))
    value = exact.objective(w)
    found = {
        "objective misreported": abs(match.objective - value)
        / max(abs(value), 1e-2 * float(w @ w), 1e-12),
        "error bound": match.error_bound,
    }
    wrong: list[str] = []
    if not match.is_optimal(1e-8):
        wrong.append(match.explanation())
    if not np.isfinite(w).all() or exact.violation(w) > 1e-14:
        wrong.append(f"violates its constraints by {exact.violation(w):.1e}")
    if found["objective misreported"] > 1e-9:
        wrong.append(f"objective {match.objective} is {value}")
    gaps = compare(exact, w, *(ORACLES if n <= 700 else LARGE_ORACLES))
    if gaps is None:
        return wrong, found, False
    found["objective gap"] = gaps.objective
    if gaps.objective > 1e-9 + 10 * gaps.infeasible:
        wrong.append(f"worse than the other solver: {gaps}")
    if abs(gaps.objective) <= 1e-9:
        theirs = 1e-4 + n**0.5 * 1e-10 / ridge  # what the other's own tolerance allows
        if gaps.weights > match.error_bound + theirs:
            wrong.append(f"error bound {match.error_bound:.1e} too small: {gaps}")
        if ridge >= 1e-3:
            found["weight gap at ridge >= 1e-3"] = gaps.weights
            if gaps.weights > 1e-4:
                wrong.append(f"other weights: {gaps}")
    return wrong, found, True


def load(fresh: bool, first: int) -> dict:
    """The state of an earlier run, or a new one."""
    if STATE.is_file() and not fresh:
        return json.loads(STATE.read_text())
    return {"next": first, "unanswered": 0, "worst": dict.fromkeys(WORST, 0.0), "failures": []}


def save(state: dict) -> None:
    """Write the state; a kill leaves the old or the new one, never half."""
    STATE.parent.mkdir(exist_ok=True)
    part = STATE.with_suffix(".part")
    part.write_text(json.dumps(state, indent=1))
    part.replace(STATE)


def report(state: dict) -> None:
    """One line of progress."""
    worst = ", ".join(f"{name} {value:.1e}" for name, value in state["worst"].items())
    print(
        f"{state['next']:7d} problems, {len(state['failures'])} failed, "
        f"{state['unanswered']} without an answer of the other solver; worst: {worst}",
        flush=True,
    )


def main() -> int:
    """Examine the problems up to the wanted number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000, help="stop before this number")
    parser.add_argument("--first", type=int, default=0, help="begin with this number")
    parser.add_argument("--fresh", action="store_true", help="forget an earlier run")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    state = load(arguments.fresh, arguments.first)
    began = time.monotonic()
    try:
        while state["next"] < arguments.problems:
            number = state["next"]
            wrong, found, answered = examine(number)
            state["unanswered"] += not answered
            for name, value in found.items():
                state["worst"][name] = max(state["worst"][name], value)
            if wrong:
                state["failures"].append(number)
                print(f"problem {number}: {'; '.join(wrong)}", flush=True)
            state["next"] = number + 1
            if state["next"] % REPORT_EVERY == 0:
                report(state)
                save(state)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    save(state)
    report(state)
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if state["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
