"""From values to a `Match`: check, choose a form, solve, correct, certify."""

import warnings
from collections.abc import Sequence
from typing import Any

from diw.errors import DIWWarning, MatchingError
from diw.matching.band import into_band
from diw.matching.batched import solve_together
from diw.matching.certificate import certify
from diw.matching.cvxopt import STATUS as RELEASED
from diw.matching.cvxopt import solve_released
from diw.matching.dense import Dense
from diw.matching.form import form_of
from diw.matching.gram import Factor
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.output import like
from diw.matching.problem import Problem, problem
from diw.matching.solution import Solution
from diw.matching.solve import solve


def match_all(pairs: Sequence[tuple[Any, Any]], options: Options) -> list[Match]:
    """Match each (z_train, z_trusted) by itself; small problems are solved side by side."""
    tasks = [problem(*pair, options) for pair in pairs]
    if options.solver == "cvxopt":
        found = [_released(task, pair[0]) for task, pair in zip(tasks, pairs, strict=True)]
    else:
        forms = [form_of(task, options.rank) for task in tasks]
        together = solve_together(tasks, forms)
        found = [
            _exact(
                task, form, solution or solve(task, form, options.max_iterations), pair[0], options
            )
            for task, form, solution, pair in zip(tasks, forms, together, pairs, strict=True)
        ]
    for match, solved in found:
        if not solved:
            message = f"kernel mean matching: {match.explanation()}"
            if options.on_failure == "raise":
                raise MatchingError(message)
            warnings.warn(message, DIWWarning, stacklevel=4)
    return [match for match, _ in found]


def _exact(
    task: Problem, form: Factor | Dense, found: Solution, like_z: Any, options: Options
) -> tuple[Match, bool]:
    """The match of a solution, and whether it is one."""
    weights = into_band(task, found.weights)
    numbers = certify(task, form, found, weights)
    solved = max(numbers.dual_residual, numbers.complementarity) <= options.tol
    status = "approximate" if form.capped else "optimal"
    if not solved:
        status = f"not solved to tol={options.tol:g} in {found.iterations} iterations"
    match = Match(
        weights=like(like_z, weights, task.bound),
        status=status,
        iterations=found.iterations,
        gamma=task.given_gamma,
        rank=form.rank,
        **vars(numbers),
    )
    return match, solved


def _released(task: Problem, like_z: Any) -> tuple[Match, bool]:
    """The match by cvxopt, and whether cvxopt says it is one."""
    weights, numbers, iterations, status = solve_released(task)
    match = Match(
        weights=like(like_z, into_band(task, weights), task.bound),
        status=status,
        iterations=iterations,
        gamma=task.given_gamma,
        rank=task.n,
        **vars(numbers),
    )
    return match, status == RELEASED
