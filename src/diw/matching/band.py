"""The last correction: the sum of the weights exactly inside its band."""

from diw.matching.backend import Array
from diw.matching.problem import Problem


def into_band(problem: Problem, w: Array) -> Array:
    """Weights in [0, B] whose sum a rounding error (or a failed solver) left outside its band.

    The free weights take the correction, so that weights at 0 and at B stay
    there; where that cannot be, all of them do.
    """
    low, high, bound = problem.low, problem.high, problem.bound
    for attempt in range(8):
        total = float(w.sum())
        if low <= total <= high:
            return w
        movable = (w > 0) * (w < bound) if attempt < 4 else w >= 0
        if total > high:
            room = w * movable
            share = (total - high) * (1 + attempt * 1e-15) / max(float(room.sum()), 1e-300)
            w = w - room * min(share, 1.0)
        else:
            room = (bound - w) * movable
            share = (low - total) * (1 + attempt * 1e-15) / max(float(room.sum()), 1e-300)
            w = problem.xp.clip(w + room * min(share, 1.0), bound)
    return w
