"""The dense problem, where the kernel has full rank, and many small ones side by side.

    minimise ½wᵀ(K+ωI)w − kᵀw   over   0 ≤ w ≤ B  (and Σw = total, where the band binds).

At the optimum most weights are 0 (or B) and few are free.

*Exchanges*, the primal–dual active-set method (Hintermüller, Ito & Kunisch 2002): guess which
weights are at 0 and at B, solve for the free ones, and exchange at once all that are wrong. When
nothing is wrong, the point is the optimum. That takes about a dozen factorisations of the free part
of K + ωI from almost any start, and their number does not grow with n. The first guess of a large
problem is the solution on a factor of small rank. Nothing guarantees that exchanges end: where
they do not, an interior point does (interior.py), and its bounds are the next guess.

*Side by side*: a small problem takes microseconds to solve and hundreds of them in calls. So the
classes of a mini-batch are padded to one size, stacked, and solved by exchanges; those that have
not settled after some rounds, or whose sum leaves the band, are solved one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diw.matching.gram import (
    Dense,
    FloatArray,
    Gram,
    Solve,
    add_to_diagonal,
    clip,
    conjugate_gradients,
    magnitude,
    pivoted_cholesky,
    positive_solver,
)
from diw.matching.interior import Program, interior
from diw.matching.match import Solution
from diw.matching.problem import Problem

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

ROUNDING = 1e-14  # relative to the gradient's terms: a smaller multiplier is rounding
START_RANK = 50
SMALL = 200  # samples up to which any guess will do: all weights free
ROUNDS = 60  # of exchanges
PATIENCE = 6  # rounds without fewer wrong weights before giving up
SETTLED = 1e-12  # the residual, relative to the gradient's terms, that needs no other way
WEAK_COUPLING = 4.0  # largest row sum of K off its diagonal for conjugate gradients
CG_STEPS = 60
CG_ACCURACY = 1e-15

BATCH_ROUNDS = 12
LARGEST = 64  # samples of a problem that is worth padding


@dataclass(frozen=True)
class Point:
    """Weights in [0, B] with what is left of the conditions of optimality."""

    w: FloatArray
    multiplier: float
    """λ, of the sum."""
    residual: FloatArray
    """(n,) the gradient (K + ωI)w − k + λ that no multiplier of a bound balances."""


@dataclass(frozen=True)
class Box:
    """The problem itself."""

    K: FloatArray
    k: FloatArray
    ridge: float
    bound: float

    def point(self, w: FloatArray, multiplier: float) -> Point:
        """Weights, cut to their bounds, with their residual."""
        w = clip(w, self.bound)
        g = self.gradient(w, multiplier)
        held = ((w <= 0) & (g > 0)) | ((w >= self.bound) & (g < 0))
        return Point(w, multiplier, np.where(held, 0.0, g))

    def gradient(self, w: FloatArray, multiplier: float) -> FloatArray:
        """(n,) (K + ωI)w − k + λ."""
        return self.K @ w + self.ridge * w - self.k + multiplier

    def minimum(
        self, free: Mask, high: Mask, total: float | None, weak: bool
    ) -> tuple[FloatArray, float]:
        """(n,) weights that minimise over the free ones, the others at 0 or at B; and λ."""
        w = high.astype(np.float64) * self.bound
        rows = free.nonzero()[0]
        if not len(rows):
            return w, 0.0
        right, missing = self.k, 0.0 if total is None else total - float(w.sum())
        if high.any():
            right = right - self.K @ w
        solve = _solver(add_to_diagonal(self.K[np.ix_(rows, rows)], self.ridge), weak)
        w[rows] = solve(right[rows])
        if total is None:
            return w, 0.0
        ones = solve(np.full(len(rows), 1.0))
        multiplier = (float(w[rows].sum()) - missing) / float(ones.sum())
        w[rows] -= multiplier * ones
        return w, multiplier


def active_set(problem: Problem, gram: Dense, max_iterations: int) -> Solution:
    """Solve without the band first; if the sum leaves it, with the sum at the band's nearer end."""
    box = Box(gram.K, gram.k, problem.ridge, problem.bound)
    point, iterations = _optimum(box, first_guess(problem, max_iterations), None, max_iterations)
    total = float(point.w.sum())
    if not problem.low <= total <= problem.high:
        end = (problem.low, True) if total < problem.low else (problem.high, False)
        point, more = _optimum(box, point.w, end, max_iterations)
        iterations += more
    return Solution(point.w, point.residual, point.multiplier, iterations)


def first_guess(problem: Problem, max_iterations: int) -> FloatArray:
    """(n,) weights of the problem on a factor of small rank, with the diagonal of K kept."""
    if problem.n <= SMALL:
        return np.full(problem.n, 0.5 * problem.bound)
    rank = min(START_RANK, problem.n)
    factor = pivoted_cholesky(problem.z, problem.n, problem.gamma, problem.ridge, rank)
    near = interior(Program.of(factor, problem.ridge, problem.bound), max_iterations, 1e-9)
    return near.guess


def _optimum(
    box: Box, guess: FloatArray, end: tuple[float, bool] | None, max_iterations: int
) -> tuple[Point, int]:
    """The best point of exchanges and, where these do not end, of an interior point.

    Args:
        box: The problem.
        guess: (n,) weights whose bounds come first.
        end: What the sum must be, and whether it would be less otherwise.
        max_iterations: Of exchanges, and of the interior point.
    """
    total, scale = None if end is None else end[0], max(magnitude(box.k), 1e-300)

    def error(point: Point) -> float:
        excess = 0.0 if total is None else float(point.w.sum()) / total - 1.0
        return max(magnitude(point.residual) / scale, abs(excess))

    point, iterations = exchange(box, guess, total, min(ROUNDS, max_iterations))
    if error(point) <= SETTLED:
        return point, iterations
    limit = {} if end is None else {"low" if end[1] else "high": end[0]}
    program = Program.of(Dense(box.K, box.k), box.ridge, box.bound, **limit)
    near = interior(program, max_iterations)
    other, more = exchange(box, near.guess, total, min(ROUNDS, max_iterations))
    points = (point, other, box.point(near.guess, near.shift))
    return min(points, key=error), iterations + near.iterations + more


def exchange(
    box: Box, guess: FloatArray, total: float | None, max_iterations: int
) -> tuple[Point, int]:
    """Exchange until no weight is wrong, beginning with the bounds that `guess` is at.

    Returns:
        The point with the fewest wrong weights, cut to its bounds, and the number of rounds.
    """
    bound, weak = box.bound, float(box.K.sum(1).max()) - 1.0 < WEAK_COUPLING
    free, high = (guess > 0) & (guess < bound), guess >= bound
    best, fewest, since, count = (guess, 0.0), len(guess) + 1, 0, 0
    while count < max_iterations:
        count += 1
        if total is not None and not free.any():  # nothing could make up the sum
            free, high = np.full(len(guess), True), np.full(len(guess), False)
        w, multiplier = box.minimum(free, high, total, weak)
        g = box.gradient(w, multiplier)
        small = ROUNDING * (magnitude(box.k) + abs(multiplier))
        below, above = free & (w < 0), free & (w > bound)
        rise = (w <= 0) & (g < -small) & ~free
        fall = high & (g > small)
        wrong = int((below | above | rise | fall).sum())
        since = 0 if wrong < fewest else since + 1
        if wrong < fewest:
            best, fewest = (w, multiplier), wrong
        if wrong == 0 or since == PATIENCE:
            break
        free = (free & ~(below | above)) | rise | fall
        high = (high & ~fall) | above
    return box.point(*best), count


def _solver(H: FloatArray, weak: bool) -> Solve:
    """A solver with a part of K + ωI: conjugate gradients where they are quick."""

    def by_gradients(right: FloatArray) -> FloatArray:
        x, accuracy = conjugate_gradients(H.__matmul__, right, 1.0, CG_ACCURACY, CG_STEPS)
        return x if accuracy <= CG_ACCURACY else positive_solver(lambda: H + 0.0)(right)

    return by_gradients if weak else positive_solver(lambda: H + 0.0)


def solve_batched(problems: Sequence[Problem], grams: Sequence[Gram]) -> list[Solution | None]:
    """The solutions of the small problems among these, where they were found; else None."""
    found: list[Solution | None] = [None] * len(problems)
    places = [
        i
        for i, (problem, gram) in enumerate(zip(problems, grams, strict=True))
        if isinstance(gram, Dense) and problem.n <= LARGEST
    ]
    if len(places) < 2:
        return found
    sizes = [problems[i].n for i in places]
    count, size = len(places), max(sizes)
    ridge, bound = problems[places[0]].ridge, problems[places[0]].bound
    # A padding sample is similar to no other and has k = 0: its weight is 0.
    eye = np.eye(size)
    H = np.repeat(eye[None], count, 0)
    k = np.zeros((count, size))
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        gram = grams[i]
        assert isinstance(gram, Dense)
        H[row, :n, :n], k[row, :n] = gram.K + ridge * eye[:n, :n], gram.k
    w, g, settled, rounds = _settle(H, k, bound, eye)
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        weights = w[row, :n]
        if settled[row] and problems[i].low <= weights.sum() <= problems[i].high:
            residual = g[row, :n]
            held = ((weights <= 0) & (residual > 0)) | ((weights >= bound) & (residual < 0))
            residual = np.where(held, 0.0, residual)
            found[i] = Solution(weights.copy(), residual, 0.0, int(rounds[row]))
    return found


def _settle(
    H: FloatArray, k: FloatArray, bound: float, eye: FloatArray
) -> tuple[FloatArray, FloatArray, Mask, Rows]:
    """Weights (c, n), gradients, whether the free weights settled, and the rounds it took."""
    low, high = np.zeros(k.shape, bool), np.zeros(k.shape, bool)
    settled = np.zeros(len(k), bool)
    rounds = np.full(len(k), BATCH_ROUNDS)
    w = g = k
    for count in range(BATCH_ROUNDS):
        free = ~(low | high)
        fixed = bound * high
        A = np.where(free[:, :, None] & free[:, None, :], H, eye)
        right = np.where(free, k - (H @ fixed[:, :, None])[:, :, 0], fixed)
        w = np.linalg.solve(A, right[:, :, None])[:, :, 0]
        g = (H @ w[:, :, None])[:, :, 0] - k
        aim = np.where(free, w, w - g)
        low_now, high_now = aim <= 0, aim >= bound
        same = ((low_now == low) & (high_now == high)).all(1)
        rounds[same & ~settled] = count + 1
        settled |= same
        if settled.all():
            break
        low, high = low_now, high_now
    return w, g, settled, rounds
