"""Which solver, in which order: what wins by measurement (docs/matching.md)."""

from dataclasses import replace

from diw.matching.active_set import active_set
from diw.matching.dense import Dense
from diw.matching.gram import Factor
from diw.matching.interior_point import interior_point
from diw.matching.newton import Dual, newton
from diw.matching.problem import Problem
from diw.matching.solution import Solution
from diw.matching.system import System

NEWTON_RANK = 40  # up to this rank Newton's method alone wins most of the time
NEWTON_STEPS = 30  # and when it has not ended by then it will not soon
SAMPLE = 20_000  # samples of the problem that a very large one starts from


def solve(problem: Problem, form: Factor | Dense, max_iterations: int) -> Solution:
    """The optimum; its `residual` says how well it was reached."""
    if isinstance(form, Dense):
        return active_set(problem, form, max_iterations=max_iterations)
    extra = form.left if form.capped else None
    system = System(problem.xp, form.V, form.b, problem.ridge, problem.bound, extra=extra)
    found = _solve_factored(system, max_iterations)
    total = float(found.weights.sum())
    if not problem.low <= total <= problem.high:  # the band's nearer end binds (convexity)
        end = problem.low if total < problem.low else problem.high
        again = _solve_factored(replace(system, total=end), max_iterations)
        found = replace(again, iterations=again.iterations + found.iterations)
    return Solution(
        found.weights,
        found.residual @ form.V,
        -found.eta * problem.ridge,
        found.iterations,
        found.done,
    )


def _solve_factored(system: System, max_iterations: int) -> Dual:
    """Newton's method; where its path is long, after an interior point."""
    y, eta, spent, large = system.b * 0.0, 0.0, 0, system.size > 4 * SAMPLE
    if large:  # begin at the solution of a thinned problem
        small = _solve_factored(system.thinned(system.size // SAMPLE), max_iterations)
        y, eta = small.y, small.eta
    if large or len(system.V) <= NEWTON_RANK:
        found = newton(system, y, eta, max_iterations=min(NEWTON_STEPS, max_iterations))
        if found.done:
            return found
        spent = found.iterations
    w, multiplier, iterations = interior_point(system, max_iterations=max_iterations)
    y, eta = (system.b - system.V @ w) / system.ridge, -multiplier / system.ridge
    found = newton(system, y, eta, max_iterations=max_iterations)
    return replace(found, iterations=found.iterations + iterations + spent)
