"""Mehrotra's predictor–corrector interior point, for problems on which Newton's path is long.

Twelve to eighteen iterations whatever the ridge and the rank, each with one
factorisation of the r × r matrix I + V D⁻¹ Vᵀ (Woodbury). It ends near the
optimum, never on it: Newton's method takes the last steps.
"""

from dataclasses import dataclass

from diw.matching.backend import Array, Solve, magnitude
from diw.matching.newton import DualPoint, System

STOP = 1e-11  # relative to the gradient: then all but a few free weights are known
TO_BOUNDARY = 0.995


@dataclass(frozen=True)
class _Iterate:
    """Weights between their bounds, with the multipliers of the bounds and of the sum."""

    w: Array
    lower: Array
    upper: Array
    multiplier: float

    def moved(self, t: float, step: "_Iterate") -> "_Iterate":
        return _Iterate(
            self.w + t * step.w,
            self.lower + t * step.lower,
            self.upper + t * step.upper,
            self.multiplier + t * step.multiplier,
        )

    def gap(self, bound: float) -> float:
        """The mean product of a multiplier and the distance to its bound."""
        products = self.w @ self.lower + (bound - self.w) @ self.upper
        return float(products) / (2 * len(self.w))


def interior_point(system: System, max_iterations: int) -> tuple[DualPoint, int]:
    """A dual point close to the optimum, and the number of iterations that it took."""
    V, b, bound, n = system.V, system.b, system.bound, system.size
    ridge = system.ridge if system.extra is None else system.ridge + system.extra
    point, scale = _start(system, ridge)
    best, smallest, iteration = point, float("inf"), 0
    for iteration in range(max_iterations + 1):
        w = point.w
        gradient = (V @ w - b) @ V + ridge * w + point.multiplier
        missing = 0.0 if system.total is None else system.total - float(w.sum())
        gap = point.gap(bound)
        size = max(gap, magnitude(gradient - point.lower + point.upper), abs(missing)) / scale
        if not size < float("inf"):
            break  # rounding won; the best point before it stands
        if size < smallest:
            best, smallest = point, size
        if size <= STOP or gap == 0 or iteration == max_iterations:
            break
        by_w, by_room = 1.0 / w, 1.0 / (bound - w)
        solve = system.woodbury(ridge + point.lower * by_w + point.upper * by_room)
        ones = None if system.total is None else solve(system.xp.full(n, 1.0))
        fixed = (point, gradient, missing, by_w, by_room, solve, ones)
        ahead = _step(fixed, 0.0 * w, 0.0 * w)
        reached = point.moved(_longest(point, ahead, by_w, by_room), ahead).gap(bound)
        centre = gap * min((reached / gap) ** 3, 1.0)
        step = _step(
            fixed,
            (centre - ahead.w * ahead.lower) * by_w,
            (centre + ahead.w * ahead.upper) * by_room,
        )
        point = point.moved(TO_BOUNDARY * _longest(point, step, by_w, by_room), step)
    y = (b - V @ best.w) / system.ridge
    return system.point(y, -best.multiplier / system.ridge), iteration


def _start(system: System, ridge: Array | float) -> tuple[_Iterate, float]:
    """Equal weights inside their bounds, multipliers of the gradient's size, and that size."""
    V, b, xp, n, bound = system.V, system.b, system.xp, system.size, system.bound
    mean = 1.0 if system.total is None else system.total / n
    w = xp.full(n, min(max(mean, 1e-3 * bound), 0.5 * bound))
    k = b @ V
    gradient = (V @ w) @ V - k + ridge * w
    away = float(abs(gradient).sum()) / n + 1e-100
    lower, upper = xp.floor(gradient, 0.0) + away, xp.floor(-gradient, 0.0) + away
    return _Iterate(w, lower, upper, 0.0), max(magnitude(k), magnitude(gradient), 1e-100)


_Fixed = tuple[_Iterate, Array, float, Array, Array, Solve, Array | None]
"""What the predictor and the corrector of one iteration share."""


def _step(fixed: _Fixed, to_lower: Array, to_upper: Array) -> _Iterate:
    """The direction that solves the linearised conditions for the wanted products."""
    point, gradient, missing, by_w, by_room, solve, ones = fixed
    dw = solve(to_lower - to_upper - gradient)
    multiplier = 0.0
    if ones is not None:
        multiplier = (float(dw.sum()) - missing) / float(ones.sum())
        dw = dw - multiplier * ones
    return _Iterate(
        dw,
        to_lower - point.lower - point.lower * dw * by_w,
        to_upper - point.upper + point.upper * dw * by_room,
        multiplier,
    )


def _longest(point: _Iterate, step: _Iterate, by_w: Array, by_room: Array) -> float:
    """The step that keeps every variable positive, at most 1."""
    steepest = max(
        -float((step.w * by_w).min()),
        float((step.w * by_room).max()),
        -float((step.lower / point.lower).min()),
        -float((step.upper / point.upper).min()),
        1.0,
    )
    return 1.0 / steepest
