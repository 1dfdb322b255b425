"""Exchanges: the primal–dual active-set method for a large dense problem.

Guess which weights are at 0 and at B, solve for the free ones, and exchange at once all that
are wrong: free weights that left [0, B] go to the bound that they passed, weights at a bound whose
multiplier has the wrong sign become free (Hintermüller, Ito & Kunisch 2002). When nothing is
wrong, the point is the optimum. That takes about a dozen factorisations of the free part of
K + ωI from almost any start, and their number does not grow with n; descent takes hundreds.
Nothing guarantees that exchanges end, so descent takes over where the number of wrong weights
stops falling.

The first guess is the solution on a factor of small rank.
"""

from diw.matching.backend import Array, Solve, conjugate_gradients, positive_solver
from diw.matching.box import ROUNDING, Box, Iterate
from diw.matching.gram import pivoted_cholesky
from diw.matching.interior_point import interior_point
from diw.matching.newton import System
from diw.matching.problem import Problem

START_RANK = 50
PATIENCE = 6  # rounds without fewer wrong weights before giving up
WEAK_COUPLING = 4.0  # largest row sum of K off its diagonal for conjugate gradients
CG_STEPS = 60
CG_ACCURACY = 1e-15


def first_guess(problem: Problem, max_iterations: int) -> Array:
    """(n,) weights of the problem on a factor of small rank, with the diagonal of K kept."""
    factor = pivoted_cholesky(problem, min(START_RANK, problem.n))
    arrays = problem.xp, factor.V, factor.b, problem.ridge, problem.bound
    return interior_point(System(*arrays, extra=factor.left), max_iterations)[0].w


def exchange(box: Box, point: Iterate, guess: Array, max_iterations: int) -> bool:
    """Exchange until no weight is wrong, beginning with the bounds that `guess` is at.

    The point becomes the one with the fewest wrong weights, clipped to its bounds.

    Returns:
        Whether no weight was wrong: the point is optimal.
    """
    xp, bound = box.xp, box.bound
    small = ROUNDING * (float(abs(box.k).max()) + abs(point.multiplier))
    free, high = box.free(guess), guess >= bound
    fewest, since = len(guess) + 1, 0
    for _ in range(max_iterations):
        point.iterations += 1
        w = _minimum(box, free, high, point.multiplier)
        g = box.gradient(w, point.multiplier)
        below, above = free & (w < 0), free & (w > bound)
        rise = (w <= 0) & (g < -small) & ~free
        fall = high & (g > small)
        wrong = int((below | above | rise | fall).sum())
        if wrong < fewest:
            fewest, since = wrong, 0
            point.w, point.g = w, g
        else:
            since += 1
        if wrong == 0:
            return True
        if since == PATIENCE:
            break
        free = (free & ~(below | above)) | rise | fall
        high = (high & ~fall) | above
    point.w = xp.clip(point.w, bound)
    point.g = box.gradient(point.w, point.multiplier)
    return False


def _minimum(box: Box, free: Array, high: Array, multiplier: float) -> Array:
    """(n,) weights that minimise over the free ones, the others at 0 or at B; bounds ignored."""
    xp = box.xp
    w = xp.floats(high) * box.bound
    rows = xp.where(free)[0]
    if len(rows):
        right = box.k - multiplier
        if bool(high.any()):
            right = right - box.K @ w
        w[rows] = _solver(box, rows)(right[rows])
    return w


def _solver(box: Box, rows: Array) -> Solve:
    """A solver for the free part of K + ωI: conjugate gradients where they are quick."""
    H = box.part(rows)

    def by_cholesky(right: Array) -> Array:
        return positive_solver(box.xp, lambda: H + 0.0)(right)

    def by_gradients(right: Array) -> Array:
        x, accuracy = conjugate_gradients(H.__matmul__, right, 1.0, CG_ACCURACY, CG_STEPS)
        return x if accuracy <= CG_ACCURACY else by_cholesky(right)

    return by_gradients if box.row_sum < WEAK_COUPLING else by_cholesky
