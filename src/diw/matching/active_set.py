"""An active-set method for the dense problem, which works on the free weights alone.

Large problems come from exchange.py, mostly with the optimum. The rest descends.
At the optimum of a full-rank problem most weights are 0 (or B) and few are free.
From w = 0 the method frees the weights with the largest multipliers of the wrong sign,
half as many as are free already, and minimises over the free ones: Newton's step over
the free set F,

    (K + ωI)_FF d = −g_F,   g = (K + ωI)w − k + λ,

is followed along the arc clip(w + t·d, 0, B), which may put many weights back to a bound at
once. The objective falls in every step, so no free set comes twice. A step
factors a matrix of the size of the free set, never of n.
"""

from dataclasses import replace

from diw.matching.backend import Array, magnitude
from diw.matching.box import ROUNDING, Box, Iterate
from diw.matching.exchange import exchange, first_guess
from diw.matching.gram import Dense
from diw.matching.match import Solution
from diw.matching.problem import Problem

EXCHANGE_ROWS = 512  # beyond this size exchanges come first: descent would take hundreds of steps
FEWEST = 64  # so many weights are freed at once whatever is free
ROUNDS = 60  # of freeing weights before ridge continuation is tried
STEPS = 4  # of Newton's method before more weights are freed
HALVINGS = 12
TINY = 1e-300


def active_set(problem: Problem, gram: Dense, max_iterations: int) -> Solution:
    """Solve without the band first; if the sum leaves it, with the sum at the band's nearer end."""
    K, k = gram.K, gram.k
    row_sum = float(K.sum(1).max()) - 1.0
    box = Box(problem.xp, K, k, problem.ridge, problem.bound, row_sum)
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
    xp = box.xp
    low, high = -float("inf"), float("inf")  # λ whose sums are too large and too small
    for _ in range(max_iterations):
        excess = float(point.w.sum()) - total
        if abs(excess) <= 1e-12 * total:
            return
        if excess > 0:
            low = point.multiplier
        else:
            high = point.multiplier
        rows = xp.where(box.free(point.w))[0]
        if len(rows):
            slope = float(box.solver(box.part(rows))(xp.full(len(rows), 1.0)).sum())
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


def _optimum(box: Box, point: Iterate, guess: Array, max_iterations: int) -> None:
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


def _descend(box: Box, point: Iterate, max_iterations: int) -> bool:
    """Free weights and minimise over the free set, in turn; whether the optimum was reached."""
    xp, one = box.xp, False
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
            freed = xp.largest(violations, room)
        else:
            freed = xp.where(violations > small)[0]
        free[freed] = True
        rows = xp.where(free)[0]
        fell = _minimise(box, point, rows)
        if not fell and (one or len(freed) <= 1):
            point.g = box.gradient(point.w, point.multiplier)
            return True  # no descent is left but in rounding
        one = not fell
    return False


def _minimise(box: Box, point: Iterate, rows: Array) -> bool:
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


def _along(box: Box, H: Array, w: Array, g: Array, d: Array) -> tuple[Array, float]:
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
