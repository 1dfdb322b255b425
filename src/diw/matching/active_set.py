"""An active-set method for the dense problem, which works on the free weights alone.

At the optimum of a full-rank problem most weights are 0 (or B) and few are free.
From w = 0 the method frees the weights that pull hardest, half as many as are
free already, minimises over the free ones by Newton's step

    (K + ωI)_FF d = −g_F,   g = (K + ωI)w − k + λ,

and follows it along the arc clip(w + t·d, 0, B), which may put many weights back
at once. The objective falls in every step, so no set of free weights comes twice; a
step factors a matrix of the size of the free part, never of n.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from diw.matching.arrays import Array, Arrays, largest
from diw.matching.dense import Dense
from diw.matching.positive import plus_diagonal, positive
from diw.matching.problem import Problem
from diw.matching.solution import Solution

FEWEST = 64  # so many weights are freed at once whatever is free
ROUNDS = 60  # of freeing weights before a path of falling ridges is tried
STEPS = 4  # of Newton's method before more weights are freed
HALVINGS = 12
CG_STEPS = 100
TINY = 1e-300
ROUNDING = 1e-14  # of the gradient's parts: a smaller pull is not one


@dataclass
class _Point:
    """Weights, the gradient there, and what the steps have found on the way."""

    w: Array
    g: Array
    """(n,) (K + ωI)w − k + λ."""
    multiplier: float
    """λ, of the sum."""
    iterations: int = 0


@dataclass(frozen=True)
class _Box:
    """minimise ½wᵀ(K+ωI)w − (k−λ)ᵀw over 0 ≤ w ≤ B, for a λ that moves."""

    xp: Arrays
    K: Array
    k: Array
    ridge: float
    bound: float
    nearly_diagonal: bool
    """Whether the rest of every row of K is so small that conjugate gradients take few steps."""

    def gradient(self, w: Array, multiplier: float) -> Array:
        return self.K @ w + self.ridge * w - self.k + multiplier

    def pulls(self, point: _Point) -> Array:
        """(n,) how hard the gradient pulls each weight off the bound it is at; 0 of free ones."""
        floats = self.xp.floats
        return point.g * (floats(point.w >= self.bound) - floats(point.w <= 0))

    def free(self, w: Array) -> Array:
        return (w > 0) & (w < self.bound)

    def part(self, rows: Array) -> Array:
        """(K + ωI) of some weights."""
        H = self.xp.submatrix(self.K, rows)
        self.xp.add_to_diagonal(H, self.ridge)
        return H


def active_set(problem: Problem, form: Dense, *, max_iterations: int) -> Solution:
    """The optimum; without the band first, and where that leaves it at its nearer end."""
    xp, K, k = problem.xp, form.K, form.pull
    rest = float(K.sum(1).max()) - 1.0
    box = _Box(xp, K, k, problem.ridge, problem.bound, nearly_diagonal=rest < 0.5)
    point = _Point(0.0 * k, -k, 0.0)
    settled = _optimum(box, point, max_iterations)
    total = float(point.w.sum())
    if total < problem.low or total > problem.high:
        end = problem.low if total < problem.low else problem.high
        settled = _reach(box, point, end, max_iterations)
    return Solution(point.w, _residual(box, point), point.multiplier, point.iterations, settled)


def _optimum(box: _Box, point: _Point, max_iterations: int) -> bool:
    """Go down to the optimum for the point's λ; whether it was reached.

    Where the straight way is long, down a path of falling ridges: with a large one
    the problem is easy, and each solution is close to the next.
    """
    if _descend(box, point, min(ROUNDS, max_iterations)):
        return True
    if max_iterations <= ROUNDS:
        return False
    ridge = max(1.0, box.ridge)
    while True:
        level = replace(box, ridge=ridge)
        point.g = level.gradient(point.w, point.multiplier)
        settled = _descend(level, point, max_iterations)
        if ridge <= box.ridge:
            return settled
        ridge = max(0.1 * ridge, box.ridge)


def _descend(box: _Box, point: _Point, max_iterations: int) -> bool:
    """Free weights and minimise over them in turn; whether that came to an end."""
    xp, one = box.xp, False
    for _ in range(max_iterations):
        small = ROUNDING * (largest(box.k) + abs(point.multiplier))
        pulls, free = box.pulls(point), box.free(point.w)
        strongest = float(pulls.max())
        if strongest <= small and largest(point.g * free) <= small:
            point.g = box.gradient(point.w, point.multiplier)  # without what the updates rounded
            pulls = box.pulls(point)
            if float(pulls.max()) <= small:
                return True
        room = 1 if one else max(FEWEST, int(free.sum()) // 2)
        if not box.nearly_diagonal and int((pulls > small).sum()) > room:
            freed = xp.top(pulls, room)
        else:
            freed = xp.places(pulls > small)
        free[freed] = True
        rows = xp.places(free)
        fell = _minimise(box, point, rows)
        if not fell and (one or len(freed) <= 1):
            point.g = box.gradient(point.w, point.multiplier)
            return True  # no descent is left but in rounding
        one = not fell
    return False


def _minimise(box: _Box, point: _Point, rows: Array) -> bool:
    """A few of Newton's steps over the weights at `rows`; whether the objective fell."""
    fell = False
    for _ in range(STEPS):
        H = box.part(rows)
        w, g = point.w[rows], point.g[rows]
        point.iterations += 1
        d = -_solver(box, H)(g)
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


def _along(box: _Box, H: Array, w: Array, g: Array, d: Array) -> tuple[Array, float]:
    """The best of some points on the arc clip(w + t·d, 0, B), and by how much it is lower.

    Up to the first bound the arc is the straight line to the minimum, so its
    points get better; there the search ends at the latest.
    """
    best, least, t, first = w, 0.0, 1.0, None
    for halving in range(HALVINGS):
        aim = w + t * d
        new = box.xp.clip(aim, box.bound)
        s = new - w
        change = float(g @ s) + 0.5 * float(s @ (H @ s))
        if change < least:
            best, least = new, change
        elif least < 0:
            break
        if first is None:
            if box.xp.same(new, aim):
                break
            first = box.xp.first_bound(w, d, box.bound) * (1 + 1e-15)
        if t <= first:
            if first > 0 and least == 0:  # a fall that rounding hides, but it meets a bound
                best, least = new, -TINY
            break
        t = first if halving == HALVINGS - 2 else max(0.5 * t, first)
    return best, least


def _solver(box: _Box, H: Array) -> Callable[[Array], Array]:
    """A function that solves with a free part of K + ωI."""
    if not box.nearly_diagonal:
        return positive(box.xp, lambda jitter: plus_diagonal(box.xp, H + 0.0, jitter))

    def conjugate_gradients(right: Array) -> Array:
        x, p, residual = 0.0 * right, right, right
        size = float(right @ right)
        target = 1e-32 * size
        for _ in range(CG_STEPS):
            if size <= target:
                break
            q = H @ p
            step = size / float(p @ q)
            x, residual = x + step * p, residual - step * q
            before, size = size, float(residual @ residual)
            p = residual + (size / before) * p
        return x

    return conjugate_gradients


def _reach(box: _Box, point: _Point, total: float, max_iterations: int) -> bool:
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
            slope = float(_solver(box, box.part(rows))(xp.full(len(rows), 1.0)).sum())
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
        settled = _optimum(box, point, max_iterations)
    return False


def _residual(box: _Box, point: _Point) -> Array:
    """(n,) what is left of the gradient where the bounds do not hold it."""
    floor = box.xp.floor
    held_low, held_high = point.w <= 0, point.w >= box.bound
    g = point.g - floor(point.g, 0.0) * held_low
    return g + floor(-g, 0.0) * held_high
