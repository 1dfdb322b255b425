"""The dense problem, where the kernel has full rank, and many small ones side by side.

    minimise ½wᵀ(K+ωI)w − (k−λ)ᵀw   over   0 ≤ w ≤ B,

for a multiplier λ of the sum that moves where the band binds. At the optimum most weights
are 0 (or B) and few are free.

*Exchanges*, the primal–dual active-set method (Hintermüller, Ito & Kunisch 2002), come first for a
large problem: guess which weights are at 0 and at B, solve for the free ones, and exchange at
once all that are wrong. When nothing is wrong, the point is the optimum. That takes about a dozen
factorisations of the free part of K + ωI from almost any start, and their number does not grow with
n. The first guess is the solution on a factor of small rank. Nothing guarantees that exchanges end.

*Descent* always ends. From w = 0 it frees the weights with the largest multipliers of the wrong
sign, half as many as are free already, and minimises over the free set F: Newton's step,

    (K + ωI)_FF d = −g_F,   g = (K + ωI)w − k + λ,

is followed along the arc clip(w + t·d, 0, B), which may put many weights back to a bound at
once. The objective falls in every step, so no free set comes twice. A step
factors a matrix of the size of the free set, never of n.

*Side by side*: a small problem takes microseconds to solve and hundreds of them in calls. So the
classes of a mini-batch are padded to one size, stacked, and solved by exchanges; those that have
not settled after some rounds, or whose sum leaves the band, are solved one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from diw.matching.match import Solution
from diw.matching.newton import System, interior_point
from diw.matching.problem import Problem

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

ROUNDING = 1e-14  # relative to the gradient's terms: a smaller multiplier is rounding
NEARLY_DIAGONAL = 0.5  # largest row sum of K off its diagonal: every λ(K) is above ½
CG_STEPS = 100

EXCHANGE_ROWS = 512  # beyond this size exchanges come first: descent would take hundreds of steps
START_RANK = 50
PATIENCE = 6  # rounds without fewer wrong weights before giving up
WEAK_COUPLING = 4.0  # largest row sum of K off its diagonal for conjugate gradients
EXCHANGE_CG_STEPS = 60
CG_ACCURACY = 1e-15

FEWEST = 64  # so many weights are freed at once whatever is free
ROUNDS = 60  # of freeing weights before ridge continuation is tried
STEPS = 4  # of Newton's method before more weights are freed
HALVINGS = 12
TINY = 1e-300

BATCH_ROUNDS = 12
LARGEST = 64  # samples of a problem that is worth padding


@dataclass
class Iterate:
    """The weights of the moment and the gradient there; the steps change it in place."""

    w: FloatArray
    g: FloatArray
    """(n,) (K + ωI)w − k + λ."""
    multiplier: float
    """λ, of the sum."""
    iterations: int = 0


@dataclass(frozen=True)
class Box:
    """The problem itself."""

    K: FloatArray
    k: FloatArray
    ridge: float
    bound: float
    row_sum: float
    """The largest sum of a row's entries off the diagonal of K."""

    @property
    def nearly_diagonal(self) -> bool:
        """Whether conjugate gradients take few steps, whatever the rows: every λ(K) is above ½."""
        return self.row_sum < NEARLY_DIAGONAL

    def gradient(self, w: FloatArray, multiplier: float) -> FloatArray:
        """(n,) (K + ωI)w − k + λ."""
        return self.K @ w + self.ridge * w - self.k + multiplier

    def violations(self, point: Iterate) -> FloatArray:
        """(n,) by how much each active bound's multiplier has the wrong sign; 0 of free weights."""
        high, low = point.w >= self.bound, point.w <= 0
        return point.g * (high.astype(np.float64) - low.astype(np.float64))

    def free(self, w: FloatArray) -> Mask:
        """(n,) mask of the free weights: those at neither bound."""
        return (w > 0) & (w < self.bound)

    def part(self, rows: Rows) -> FloatArray:
        """The given rows and columns of K + ωI."""
        return add_to_diagonal(self.K[np.ix_(rows, rows)], self.ridge)

    def solver(self, H: FloatArray) -> Solve:
        """A solver for a part of K + ωI."""
        if self.nearly_diagonal:
            return lambda right: conjugate_gradients(H.__matmul__, right, 1.0, 1e-16, CG_STEPS)[0]
        return positive_solver(lambda: H + 0.0)

    def residual(self, point: Iterate) -> FloatArray:
        """(n,) the gradient that no multiplier of a bound balances."""
        held_low, held_high = point.w <= 0, point.w >= self.bound
        g = point.g - np.maximum(point.g, 0.0) * held_low
        return g + np.maximum(-g, 0.0) * held_high


def active_set(problem: Problem, gram: Dense, max_iterations: int) -> Solution:
    """Solve without the band first; if the sum leaves it, with the sum at the band's nearer end."""
    K, k = gram.K, gram.k
    row_sum = float(K.sum(1).max()) - 1.0
    box = Box(K, k, problem.ridge, problem.bound, row_sum)
    point = Iterate(0.0 * k, -k, 0.0)
    guess = first_guess(problem, max_iterations) if _exchanges(box) else point.w
    _optimum(box, point, guess, max_iterations)
    total = float(point.w.sum())
    if total < problem.low or total > problem.high:
        end = problem.low if total < problem.low else problem.high
        _reach(box, point, end, max_iterations)
    return Solution(point.w, box.residual(point), point.multiplier, point.iterations)


def _reach(box: Box, point: Iterate, total: float, max_iterations: int) -> None:
    """Move λ until the weights have the given sum.

    The sum is a decreasing, piecewise linear function of λ: Newton's method with a bracket.
    """
    low, high = -float("inf"), float("inf")  # λ whose sums are too large and too small
    for _ in range(max_iterations):
        excess = float(point.w.sum()) - total
        if abs(excess) <= 1e-12 * total:
            return
        if excess > 0:
            low = point.multiplier
        else:
            high = point.multiplier
        rows = (box.free(point.w)).nonzero()[0]
        if len(rows):
            slope = float(box.solver(box.part(rows))(np.full(len(rows), 1.0)).sum())
            step = excess / slope
        else:  # no weight is free: the sum changes only once a weight leaves its bound
            at = point.w >= box.bound if excess > 0 else point.w <= 0
            step = float(abs(point.g[at]).min()) + box.ridge * abs(excess) / len(point.w)
            step = step if excess > 0 else -step
        aim = point.multiplier + step
        if not low < aim < high:
            aim = 0.5 * (low + high)
            if not low < aim < high:
                return  # no number is left between
        point.g = point.g + (aim - point.multiplier)
        point.multiplier = aim
        _optimum(box, point, point.w, max_iterations)


def _exchanges(box: Box) -> bool:
    """Whether exchanges are quicker than descent."""
    return len(box.k) > EXCHANGE_ROWS and not box.nearly_diagonal


def _optimum(box: Box, point: Iterate, guess: FloatArray, max_iterations: int) -> None:
    """Exchange or descend to the optimum for the point's λ.

    Where descent takes too long, ridge continuation helps: with a large ridge
    the problem is easy, and each solution is close to the next.
    """
    if _exchanges(box) and exchange(box, point, guess, min(ROUNDS, max_iterations)):
        return
    if _descend(box, point, min(ROUNDS, max_iterations)) or max_iterations <= ROUNDS:
        return
    ridge = max(1.0, box.ridge)
    while True:
        level = replace(box, ridge=ridge)
        point.g = level.gradient(point.w, point.multiplier)
        _descend(level, point, max_iterations)
        if ridge <= box.ridge:
            return
        ridge = max(0.1 * ridge, box.ridge)


def first_guess(problem: Problem, max_iterations: int) -> FloatArray:
    """(n,) weights of the problem on a factor of small rank, with the diagonal of K kept."""
    rank = min(START_RANK, problem.n)
    factor = pivoted_cholesky(problem.z, problem.n, problem.gamma, problem.ridge, rank)
    system = System(factor.V, factor.b, problem.ridge, problem.bound, extra=factor.left)
    return interior_point(system, max_iterations)[0].w


def exchange(box: Box, point: Iterate, guess: FloatArray, max_iterations: int) -> bool:
    """Exchange until no weight is wrong, beginning with the bounds that `guess` is at.

    The point becomes the one with the fewest wrong weights, clipped to its bounds.

    Returns:
        Whether no weight was wrong: the point is optimal.
    """
    bound = box.bound
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
    point.w = clip(point.w, bound)
    point.g = box.gradient(point.w, point.multiplier)
    return False


def _minimum(box: Box, free: Mask, high: Mask, multiplier: float) -> FloatArray:
    """(n,) weights that minimise over the free ones, the others at 0 or at B; bounds ignored."""
    w = high.astype(np.float64) * box.bound
    rows = free.nonzero()[0]
    if len(rows):
        right = box.k - multiplier
        if bool(high.any()):
            right = right - box.K @ w
        w[rows] = _solver(box, rows)(right[rows])
    return w


def _solver(box: Box, rows: Rows) -> Solve:
    """A solver for the free part of K + ωI: conjugate gradients where they are quick."""
    H = box.part(rows)

    def by_cholesky(right: FloatArray) -> FloatArray:
        return positive_solver(lambda: H + 0.0)(right)

    def by_gradients(right: FloatArray) -> FloatArray:
        x, accuracy = conjugate_gradients(H.__matmul__, right, 1.0, CG_ACCURACY, EXCHANGE_CG_STEPS)
        return x if accuracy <= CG_ACCURACY else by_cholesky(right)

    return by_gradients if box.row_sum < WEAK_COUPLING else by_cholesky


def _descend(box: Box, point: Iterate, max_iterations: int) -> bool:
    """Free weights and minimise over the free set, in turn; whether the optimum was reached."""
    one = False
    for _ in range(max_iterations):
        small = ROUNDING * (magnitude(box.k) + abs(point.multiplier))
        violations, free = box.violations(point), box.free(point.w)
        worst = float(violations.max())
        if worst <= small and magnitude(point.g * free) <= small:
            point.g = box.gradient(point.w, point.multiplier)  # without what the updates rounded
            violations = box.violations(point)
            if float(violations.max()) <= small:
                return True
        room = 1 if one else max(FEWEST, int(free.sum()) // 2)
        if not box.nearly_diagonal and int((violations > small).sum()) > room:
            freed = np.argpartition(violations, -room)[-room:]
        else:
            freed = (violations > small).nonzero()[0]
        free[freed] = True
        rows = (free).nonzero()[0]
        fell = _minimise(box, point, rows)
        if not fell and (one or len(freed) <= 1):
            point.g = box.gradient(point.w, point.multiplier)
            return True  # no descent is left but in rounding
        one = not fell
    return False


def _minimise(box: Box, point: Iterate, rows: Rows) -> bool:
    """A few of Newton's steps over the weights at `rows`; whether the objective fell."""
    fell = False
    for _ in range(STEPS):
        H = box.part(rows)
        w, g = point.w[rows], point.g[rows]
        point.iterations += 1
        d = -box.solver(H)(g)
        new, change = _along(box, H, w, g, d)
        if change < 0:
            fell = True
            s = new - w
            point.w[rows] = new
            point.g += s @ box.K[rows]
            point.g[rows] += box.ridge * s
            stay = box.free(new)
        else:  # no descent, unless weights freed in vain are left where they were
            stay = ((w > 0) | (d > 0)) & ((w < box.bound) | (d < 0))
        if bool(stay.all()) or not bool(stay.any()):
            break
        rows = rows[stay]
    return fell


def _along(
    box: Box, H: FloatArray, w: FloatArray, g: FloatArray, d: FloatArray
) -> tuple[FloatArray, float]:
    """The best of some points on the arc clip(w + t·d, 0, B), and by how much it is lower.

    Up to the first bound the arc is the straight line to the minimum, so its
    points get better; there the search ends at the latest.
    """
    best, least, t, first = w, 0.0, 1.0, None
    for halving in range(HALVINGS):
        aim = w + t * d
        new = clip(aim, box.bound)
        s = new - w
        change = float(g @ s) + 0.5 * float(s @ (H @ s))
        if change < least:
            best, least = new, change
        elif least < 0:
            break
        if first is None:
            if np.array_equal(new, aim):
                break
            first = _first_bound(w, d, box.bound) * (1 + 1e-15)
        if t <= first:
            if first > 0 and least == 0:  # a fall that rounding hides, but it meets a bound
                best, least = new, -TINY
            break
        t = first if halving == HALVINGS - 2 else max(0.5 * t, first)
    return best, least


def _first_bound(w: FloatArray, d: FloatArray, high: float) -> float:
    """The t at which the first entry of w + t·d leaves [0, high]."""
    falls, rises = d < 0, d > 0
    down = float((w[falls] / -d[falls]).min(initial=np.inf))
    return min(down, float(((high - w[rises]) / d[rises]).min(initial=np.inf)))


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
