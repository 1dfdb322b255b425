"""Which solver, in which order: what wins by measurement (docs/matching.md)."""

from diw.matching.interior_point import interior_point
from diw.matching.newton import Solution, newton
from diw.matching.system import System

NEWTON_RANK = 40  # up to this rank Newton's method alone wins most of the time
NEWTON_STEPS = 30  # and when it has not ended by then it will not soon
SAMPLE = 20_000  # samples of the problem that a very large one starts from


def solve(system: System, *, max_iterations: int) -> Solution:
    """The optimum of a system; its `residual` says how well it was reached."""
    start, eta, spent = system.b * 0.0, 0.0, 0
    large = system.size > 4 * SAMPLE
    if large:
        small = solve(system.thinned(system.size // SAMPLE), max_iterations=max_iterations)
        start, eta = small.y, small.eta
    if large or len(system.V) <= NEWTON_RANK or system.nearly_diagonal:
        found = newton(system, start, eta, max_iterations=min(NEWTON_STEPS, max_iterations))
        if found.done:
            return found
        spent = found.iterations
    w, multiplier, iterations = interior_point(system, max_iterations=max_iterations)
    y, eta = (system.b - system.V @ w) / system.ridge, -multiplier / system.ridge
    found = newton(system, y, eta, max_iterations=max_iterations)
    return found.after(iterations + spent)
