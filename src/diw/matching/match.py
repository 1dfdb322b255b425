"""The result of a match: from what a solver found to weights with a certificate.

A solver returns a `Solution`; `certify` corrects the last rounding error of its
weights, measures how far they are from optimal, and makes a `Match` of them.
"""

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from diw.alerts import warn
from diw.brief import in_a_line
from diw.errors import MatchingError
from diw.matching.gram import EPSILON, Factor, FloatArray, Gram, clip, magnitude
from diw.matching.problem import Problem

Values = Any
"""What a caller gives and gets: a NumPy array, a tensor, or nested lists of numbers."""


@dataclass(frozen=True)
class Match:
    """The outcome of a matching problem: minimise ½wᵀ(K+ωI)w − kᵀw, 0 ≤ w ≤ B, |mean(w) − 1| ≤ ε.

    The numbers are those of the float64 solution, whatever the precision of
    `weights`. With multipliers λ of the mean, s ≥ 0 of w ≥ 0 and t ≥ 0 of w ≤ B:
    """

    __repr__ = in_a_line

    weights: Values
    """(n,) the weights, of the kind, precision and device of the training values."""
    status: str
    """`"optimal"`; `"approximate"` when the kernel was cut at a rank cap; for the solvers that
    stop early, their rule, as in `"stopped at relative gap 1e-6"`; otherwise what went wrong."""
    iterations: int
    """Steps of the solvers."""
    gamma: float
    """The kernel's γ; 0 when all training values are equal and a rule had to find it."""
    rank: int
    """Rank of the kernel's factor."""
    objective: float
    """½wᵀ(K+ωI)w − kᵀw."""
    primal_residual: float
    """Largest violation of 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε."""
    dual_residual: float
    """max|(K+ωI)w − k + λ − s + t| / max(|Kw|, |k|, min(1, B))."""
    complementarity: float
    """(|λ|·(distance of Σw to the end of its band) + s·w + t·(B − w))/|objective|."""
    trace_error: float
    """trace(K − VᵀV)/n, what the factor leaves out of the kernel: between 0 and 1."""
    error_bound: float
    """A bound on ‖w − w*‖₂ by strong convexity, the factor's error included."""

    def is_optimal(self, tol: float = 1e-8) -> bool:
        """Whether every residual is at most `tol` and nothing was cut from the kernel."""
        worst = max(self.primal_residual, self.dual_residual, self.complementarity)
        return worst <= tol and not self.status.startswith("approximate")

    def explanation(self) -> str:
        """The status with the residuals, in one line."""
        return (
            f"{self.status} (residuals: primal {self.primal_residual:.1e}, "
            f"dual {self.dual_residual:.1e}, complementarity {self.complementarity:.1e}; "
            f"rank {self.rank}, gamma {self.gamma:g})"
        )


@dataclass(frozen=True)
class Solution:
    """What every solver returns: weights in [0, B], and how far they are from optimal."""

    weights: FloatArray
    """(n,)"""
    residual: FloatArray
    """(n,) δ: the weights solve the problem with k + δ instead of k, up to `gap`."""
    multiplier: float
    """λ of the sum of the weights; 0 where the band does not bind."""
    iterations: int
    gap: float = 0.0
    """s·w + t·(B − w): 0 but for an interior point that stops early."""
    status: str | None = None
    """How a solver ended that stops by a rule of its own instead of `tol`."""
    solved: bool = True
    """Whether that rule was met."""


def certify(
    problem: Problem, gram: Gram, found: Solution, z_train: Values, tol: float
) -> tuple[Match, bool]:
    """The match of a solution, and whether it counts as solved.

    The weights found solve, exactly, a problem whose k differs by δ: by the
    residual of the optimality conditions, by what a factor leaves out
    of K and k, by the last correction of the weights, and by rounding: of the kernel values, of
    the factor (at most ε per row and entry of K) and of the sums. The
    objective is ω-strongly convex, so ω‖w − w*‖² ≤ ‖δ‖·‖w − w*‖ + gap; without a gap
    ‖w − w*‖ ≤ ‖δ‖/ω. What is left out is positive semidefinite, E, with
    |E_ij| ≤ √(E_ii E_jj), so that ‖Ew‖ ≤ √trace(E) · Σ_j √E_jj w_j, and the same for k.
    """
    w = into_band(problem, found.weights)
    n, ridge, k = problem.n, problem.ridge, gram.k
    Kw = gram.apply(w)
    total, square = float(w.sum()), float(w @ w)
    objective = 0.5 * (float(Kw @ w) + ridge * square) - float(k @ w)
    scale = max(magnitude(k), magnitude(Kw), min(1.0, problem.bound))
    residual = found.residual
    moved = w - found.weights
    if magnitude(moved) > 0:
        residual = residual + gram.apply(moved) + ridge * moved
    left_out, trace = 0.0, 0.0
    each = problem.rounding  # of an entry of K
    if isinstance(gram, Factor):
        each += gram.rank * EPSILON
        trace = float(gram.left.sum())
        left_out = math.sqrt(trace) * (float(gram.left**0.5 @ w) + gram.left_trusted)
        if gram.capped:  # the model keeps the diagonal: E is left out but for that
            kept = gram.left * w
            objective += 0.5 * float(kept @ w)
            left_out += math.sqrt(float(kept @ kept))
    delta = math.sqrt(float(residual @ residual)) + left_out
    band = min(abs(total - problem.low), abs(total - problem.high))
    violations = (
        0.0, -float(w.min()), float(w.max()) - problem.bound,
        (problem.low - total) / n, (total - problem.high) / n,
    )  # fmt: skip
    dual_residual = magnitude(residual) / scale
    complementarity = (abs(found.multiplier) * band + found.gap) / max(abs(objective), scale)
    status, solved = found.status or "optimal", found.solved
    if found.status is None:
        solved = max(dual_residual, complementarity) <= tol
        if not solved:
            status = f"not solved to tol={tol:g} in {found.iterations} iterations"
    if solved and gram.capped:
        status = "approximate" if found.status is None else f"approximate, {status}"
    match = Match(
        weights=like(z_train, w, problem.bound),
        status=status,
        iterations=found.iterations,
        gamma=problem.given_gamma,
        rank=gram.rank,
        objective=objective,
        primal_residual=max(violations),
        dual_residual=dual_residual,
        complementarity=complementarity,
        trace_error=trace / n,
        error_bound=distance_bound(delta, each, n, total, scale, ridge, found.gap),
    )
    return match, solved


def distance_bound(
    delta: float, each: float, n: int, total: float, scale: float, ridge: float, gap: float = 0.0
) -> float:
    """A bound on ‖w − w*‖₂ (see `certify`), with rounding counted in.

    Args:
        delta: ‖δ‖ but for rounding.
        each: The rounding of an entry of K.
        n: Samples.
        total: Σw.
        scale: The size of the gradient's terms.
        ridge: ω.
        gap: s·w + t·(B − w).
    """
    delta += math.sqrt(n) * (each * (total + n) + 8 * EPSILON * scale)
    return 0.5 * (delta + math.hypot(delta, 2 * math.sqrt(ridge * gap))) / ridge


def settle(solved: bool, failure: str, on_failure: str) -> None:
    """Raise or warn, as `on_failure` says, where a problem is not solved."""
    if solved:
        return
    if on_failure == "raise":
        raise MatchingError(failure)
    warn(failure)


def like(z: Values, w: FloatArray, bound: float = math.inf) -> Values:
    """`w` with the kind, device and precision of `z`; rounding never lifts a weight above B."""
    tensor = hasattr(z, "detach")  # asked without importing torch
    if tensor:
        single = z.is_floating_point() and z.itemsize < 8
    else:
        dtype = getattr(z, "dtype", None)
        single = dtype is not None and dtype.kind == "f" and dtype.itemsize < 8
    most = np.float32(bound)
    if float(most) > bound:
        most = np.nextafter(most, np.float32(0))
    weights: Any = np.minimum(w.astype(np.float32), most) if single else w
    return import_module("torch").from_numpy(weights).to(z.device) if tensor else weights


def into_band(problem: Problem, w: FloatArray) -> FloatArray:
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
            w = clip(w + room * min(share, 1.0), bound)
    return w
