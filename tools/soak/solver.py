"""Hold the solver against an independent one on very many random problems.

    python -m tools.soak.solver [--problems 100000] [--folder .soak/solver]

Most problems are small, one in ten goes up to 500 samples, one in five hundred to 2,000. Ours must
be feasible, not above the other's optimum, and within the error bound that it states. Every problem
is determined by its number; the number reached is kept, so that a stopped soak goes on.
"""

from pathlib import Path

import numpy as np
from tools.soak.cases import WrongError, go_through, run_from_command_line

from diw.matching import kmm
from tests.matching.oracles import ORACLES, Exact, compare
from tests.matching.random_problems import random_problem

LARGE_ORACLES = ("piqp", "cvxopt")
"""Beyond 700 samples an active set takes too long."""


def check(number: int) -> str:
    """Solve the problem of that number: "agreed", or "unanswered" where no other solver can."""
    largest = 2000 if number % 500 == 499 else 500 if number % 10 == 9 else 120
    train, trusted, options = random_problem(number, largest=largest)
    match = kmm(train, trusted, **options)
    w, n, ridge = match.weights, len(train), options["ridge"]
    exact = Exact.of(train, trusted, **(options | {"gamma": match.gamma}))
    value = exact.objective(w)
    misreported = abs(match.objective - value) / max(abs(value), 1e-2 * float(w @ w), 1e-12)
    wrong: list[str] = []
    if not match.is_optimal(1e-8):
        wrong.append(match.explanation())
    if not np.isfinite(w).all() or exact.violation(w) > 1e-14:
        wrong.append(f"violates its constraints by {exact.violation(w):.1e}")
    if misreported > 1e-9:
        wrong.append(f"objective {match.objective} is {value}")
    gaps = compare(exact, w, *(ORACLES if n <= 700 else LARGE_ORACLES))
    if gaps is not None:
        if gaps.objective > 1e-9 + 10 * gaps.infeasible:
            wrong.append(f"worse than the other solver: {gaps}")
        elif abs(gaps.objective) <= 1e-9:
            theirs = 1e-4 + n**0.5 * 1e-10 / ridge  # what the other's own tolerance allows
            if gaps.weights > match.error_bound + theirs:
                wrong.append(f"error bound {match.error_bound:.1e} too small: {gaps}")
            if ridge >= 1e-3 and gaps.weights > 1e-4:
                wrong.append(f"other weights: {gaps}")
    if wrong:
        raise WrongError("; ".join(wrong))
    return "unanswered" if gaps is None else "agreed"


def run_soak(folder: Path, problems: int, seed: int) -> None:
    """Solve so many problems, one after the other; they are the same for every seed."""
    folder.mkdir(parents=True, exist_ok=True)
    go_through(folder, "problems", problems, check)


if __name__ == "__main__":
    run_from_command_line(run_soak, str(__doc__), "solver", "problems", 100_000)
