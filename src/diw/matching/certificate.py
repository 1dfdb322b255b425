"""What is known about a solution: objective, residuals and a bound on its error."""

import math
from dataclasses import dataclass

from diw.matching.backend import Array, largest
from diw.matching.dense import Dense
from diw.matching.gram import Factor
from diw.matching.problem import Problem
from diw.matching.solution import Solution

EPSILON = 2.3e-16


@dataclass(frozen=True)
class Certificate:
    """The numbers of `Match` that judge the weights; see there for each one's formula."""

    objective: float
    primal_residual: float
    dual_residual: float
    complementarity: float
    trace_error: float
    error_bound: float


def certify(problem: Problem, form: Factor | Dense, found: Solution, w: Array) -> Certificate:
    """Judge feasible weights `w` that came from a solution.

    The weights found solve, exactly, a problem whose k differs by δ: by the
    residual of the optimality conditions, by what a factor leaves out
    of K and k, by the last correction of the weights, and by rounding. The
    objective is ω-strongly convex, so ‖w − w*‖ ≤ ‖δ‖/ω. What is left out is positive
    semidefinite, E, with |E_ij| ≤ √(E_ii E_jj), so that
    ‖Ew‖ ≤ √trace(E) · Σ_j √E_jj w_j, and the same for k.
    """
    n, ridge, pull = problem.n, problem.ridge, form.pull
    image = form.apply(w)
    total, spread = float(w.sum()), float(w @ w)
    objective = 0.5 * (float(image @ w) + ridge * spread) - float(pull @ w)
    scale = max(largest(pull), largest(image), min(1.0, problem.bound))
    residual = found.residual
    moved = w - found.weights
    if largest(moved) > 0:
        residual = residual + form.apply(moved) + ridge * moved
    left_out, trace = 0.0, 0.0
    if isinstance(form, Factor):
        trace = float(form.left.sum())
        left_out = math.sqrt(trace) * (float(form.left**0.5 @ w) + form.left_trusted)
        if form.capped:  # the model keeps the diagonal: E is left out but for that
            kept = form.left * w
            objective += 0.5 * float(kept @ w)
            left_out += math.sqrt(float(kept @ kept))
    rounding = 8 * EPSILON * math.sqrt(n) * scale
    error = (math.sqrt(float(residual @ residual)) + left_out + rounding) / ridge
    band = min(abs(total - problem.low), abs(total - problem.high))
    return Certificate(
        objective=objective,
        primal_residual=max(
            0.0, -float(w.min()), float(w.max()) - problem.bound,
            (problem.low - total) / n, (total - problem.high) / n,
        ),
        dual_residual=largest(residual) / scale,
        complementarity=abs(found.multiplier) * band / max(abs(objective), scale),
        trace_error=trace / n,
        error_bound=error,
    )  # fmt: skip
