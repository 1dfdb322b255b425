"""Which solver, in which order: what wins by measurement (docs/matching.md)."""

from dataclasses import replace

from diw.matching.arrays import Array
from diw.matching.interior_point import interior_point
from diw.matching.newton import Solution, newton
from diw.matching.system import System

NEWTON_RANK = 40  # up to this rank Newton's method alone wins most of the time
NEWTON_STEPS = 30  # and when it has not ended by then it will not soon
SAMPLE = 20_000  # samples of the problem that a very large one starts from
PATH_START = 250.0  # how far below (an estimate of) the largest eigenvalue a path of ridges begins


def solve(system: System, *, max_iterations: int) -> Solution:
    """The optimum of a system; its `residual` says how well it was reached."""
    y, eta, spent = _start(system, max_iterations)
    large = system.size > 4 * SAMPLE
    if large or system.K is not None or len(system.V) <= NEWTON_RANK:
        found = newton(system, y, eta, max_iterations=min(NEWTON_STEPS, max_iterations))
        spent += found.iterations
        if found.done:
            return replace(found, iterations=spent)
    w, multiplier, iterations = interior_point(system, max_iterations=max_iterations)
    y, eta = (system.b - system.V @ w) / system.ridge, -multiplier / system.ridge
    found = newton(system, y, eta, max_iterations=max_iterations)
    return replace(found, iterations=found.iterations + iterations + spent)


def _start(system: System, max_iterations: int) -> tuple[Array, float, int]:
    """A dual point to begin from, and the steps at full size that it took.

    Zero, in general. A very large problem begins at the solution of a thinned one. With
    a full-rank kernel an interior point is dear (each of its steps factors an
    n × n matrix, Newton's only the free part of it), so there the ridge is halved
    step by step: from one solution to the next Newton's method needs about one step.
    """
    if system.size > 4 * SAMPLE:
        small = solve(system.thinned(system.size // SAMPLE), max_iterations=max_iterations)
        return small.y, small.eta, 0
    y, eta, steps = system.b * 0.0, 0.0, 0
    if system.K is None or system.nearly_diagonal:
        return y, eta, steps
    image = system.V.sum(1)
    level = float(image @ image) / system.size / PATH_START
    while level > 2 * system.ridge and steps < max_iterations:
        found = newton(replace(system, ridge=level), y, eta, max_iterations=1)
        y, eta, steps, level = found.y, found.eta, steps + 1, level / 2
    return y, eta, steps
