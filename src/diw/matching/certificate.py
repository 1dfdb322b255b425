"""What is known about a solution: objective, residuals and a bound on its error."""

import math
from dataclasses import dataclass

from diw.matching.arrays import Array, largest
from diw.matching.factor import EPSILON, Factor
from diw.matching.newton import Solution
from diw.matching.problem import Problem


@dataclass(frozen=True)
class Certificate:
    """The numbers of `Match` that judge the weights; see there for each one's formula."""

    objective: float
    primal_residual: float
    dual_residual: float
    complementarity: float
    trace_error: float
    error_bound: float


def certify(problem: Problem, factor: Factor, found: Solution, w: Array) -> Certificate:
    """Judge feasible weights `w` that came from a solution.

    The weights found solve, exactly, a problem whose k differs by δ: by the
    residual VᵀF of the optimality conditions, by what the factor leaves out
    of K and k, by the last correction of the weights, and by rounding. The
    objective is ω-strongly convex, so ‖w − w*‖ ≤ ‖δ‖/ω. What is left out is positive
    semidefinite, E, with |E_ij| ≤ √(E_ii E_jj), so that
    ‖Ew‖ ≤ √trace(E) · Σ_j √E_jj w_j, and the same for k.
    """
    V, b, n, ridge = factor.V, factor.b, problem.n, problem.ridge
    a = V @ w
    pull = b @ V
    weight = a @ V
    total, spread = float(w.sum()), float(w @ w)
    objective = 0.5 * float(a @ a) - float(b @ a) + 0.5 * (ridge - factor.shift) * spread
    scale = max(largest(pull), largest(weight), min(1.0, problem.bound))
    residual = found.residual @ V
    moved = w - found.weights
    if largest(moved) > 0:
        residual = residual + (V @ moved) @ V + ridge * moved
    left_out, trace = 0.0, 0.0
    if factor.left is not None:
        trace = float(factor.left.sum())
        left_out = math.sqrt(trace) * (float(factor.left**0.5 @ w) + factor.left_trusted)
        if factor.capped:  # the model keeps the diagonal: E is left out but for that
            kept = factor.left * w
            objective += 0.5 * float(kept @ w)
            left_out += math.sqrt(float(kept @ kept))
    rounding = 8 * EPSILON * math.sqrt(n) * scale
    error = (math.sqrt(float(residual @ residual)) + left_out + rounding) / ridge
    multiplier = -found.eta * (ridge - factor.shift)
    band = min(abs(total - problem.low), abs(total - problem.high))
    return Certificate(
        objective=objective,
        primal_residual=max(
            0.0, -float(w.min()), float(w.max()) - problem.bound,
            (problem.low - total) / n, (total - problem.high) / n,
        ),
        dual_residual=largest(residual) / scale,
        complementarity=abs(multiplier) * band / max(abs(objective), scale),
        trace_error=trace / n,
        error_bound=error,
    )  # fmt: skip
