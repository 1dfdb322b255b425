"""Down to the optimum of a box: free the weights that pull, minimise over the free ones, again.

Newton's step over the free weights F,

    (K + ωI)_FF d = −g_F,   g = (K + ωI)w − k + λ,

is followed along the arc clip(w + t·d, 0, B), which may put many weights back at
once. The objective falls in every step, so no set of free weights comes twice.
"""

from dataclasses import replace

from diw.matching.backend import Array, largest
from diw.matching.box import Box, Point

FEWEST = 64  # so many weights are freed at once whatever is free
ROUNDS = 60  # of freeing weights before a path of falling ridges is tried
STEPS = 4  # of Newton's method before more weights are freed
HALVINGS = 12
TINY = 1e-300
ROUNDING = 1e-14  # of the gradient's parts: a smaller pull is not one


def optimum(box: Box, point: Point, max_iterations: int) -> bool:
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


def _descend(box: Box, point: Point, max_iterations: int) -> bool:
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


def _minimise(box: Box, point: Point, rows: Array) -> bool:
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
