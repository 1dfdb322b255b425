"""Which solver, in which order: what wins by measurement (docs/matching.md)."""

from diw.matching.interior_point import interior_point
from diw.matching.newton import Solution, newton, path
from diw.matching.system import System

NEWTON_RANK = 40  # up to this rank Newton's path wins most of the time
NEWTON_STEPS = 30  # and when it has not ended by then it will not soon
SHORT_PATH = 2  # levels of Newton's path when K is well conditioned, or a start is known
SAMPLE = 20_000  # columns of the problem that a very large one starts from


def solve(system: System, *, max_iterations: int) -> Solution:
    """The optimum of a system; its `residual` says how well it was reached."""
    spent = 0
    if system.size > 4 * SAMPLE:
        small = solve(system.thinned(system.size // SAMPLE), max_iterations=max_iterations)
        start, eta, levels = small.y, small.eta, [system.ridge]
    else:
        start, eta, levels = system.b * 0.0, 0.0, path(system)
    if len(system.V) <= NEWTON_RANK or len(levels) <= SHORT_PATH:
        found = newton(system, start, eta, levels, max_iterations=min(NEWTON_STEPS, max_iterations))
        if found.done:
            return found
        spent = found.iterations
    w, multiplier, iterations = interior_point(system, max_iterations=max_iterations)
    y = (system.b - system.V @ w) / system.ridge
    eta = -multiplier / system.ridge
    found = newton(system, y, eta, [system.ridge], max_iterations=max_iterations)
    return found.after(iterations + spent)
