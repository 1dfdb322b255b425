"""An active-set method for the dense problem, which works on the free weights alone.

At the optimum of a full-rank problem most weights are 0 (or B) and few are free.
From w = 0 the method frees the weights that pull hardest, half as many as are
free already, and minimises over the free ones (`diw.matching.descent`). A step
factors a matrix of the size of the free part, never of n.
"""

from diw.matching.box import Box, Point
from diw.matching.dense import Dense
from diw.matching.descent import optimum
from diw.matching.problem import Problem
from diw.matching.solution import Solution


def active_set(problem: Problem, form: Dense, *, max_iterations: int) -> Solution:
    """The optimum; without the band first, and where that leaves it at its nearer end."""
    xp, K, k = problem.xp, form.K, form.pull
    rest = float(K.sum(1).max()) - 1.0
    box = Box(xp, K, k, problem.ridge, problem.bound, nearly_diagonal=rest < 0.5)
    point = Point(0.0 * k, -k, 0.0)
    settled = optimum(box, point, max_iterations)
    total = float(point.w.sum())
    if total < problem.low or total > problem.high:
        end = problem.low if total < problem.low else problem.high
        settled = _reach(box, point, end, max_iterations)
    return Solution(point.w, box.residual(point), point.multiplier, point.iterations, settled)


def _reach(box: Box, point: Point, total: float, max_iterations: int) -> bool:
    """Move λ until the weights have a sum; whether they have it.

    The sum is a falling, piecewise linear function of λ: Newton's method with a bracket.
    """
    xp, settled = box.xp, True
    low, high = -float("inf"), float("inf")  # λ whose sums are too large and too small
    for _ in range(max_iterations):
        excess = float(point.w.sum()) - total
        if abs(excess) <= 1e-12 * total:
            return settled
        if excess > 0:
            low = point.multiplier
        else:
            high = point.multiplier
        rows = xp.places(box.free(point.w))
        if len(rows):
            slope = float(box.solver(box.part(rows))(xp.full(len(rows), 1.0)).sum())
            step = excess / slope
        else:  # the sum stands still until a weight leaves its bound; a little beyond, it moves
            at = point.w >= box.bound if excess > 0 else point.w <= 0
            step = float(abs(point.g[at]).min()) + box.ridge * abs(excess) / len(point.w)
            step = step if excess > 0 else -step
        aim = point.multiplier + step
        if not low < aim < high:
            aim = 0.5 * (low + high)
            if not low < aim < high:
                return settled  # no number is left between
        point.g = point.g + (aim - point.multiplier)
        point.multiplier = aim
        settled = optimum(box, point, max_iterations)
    return False
