"""Matching of values that do not fit into memory: in parts, of which only small sums are kept.

The solution of a match is w = clip((Vᵀy + η)·ω/d, 0, B) for r + 1 numbers y and η (newton.py), and
column i of the factor V depends on sample i and r pivots alone. So nothing of the size of the
data is ever held or sent: for a dual point each part gives Vw (r,), V diag(s) Vᵀ (r, r) and a few
numbers, wherever it is, and the sum over the parts is all that Newton's method needs.

The pivots come from a sample. One number per sample needs few of them, and values that the sample
has missed are found and added until the factor is as exact as in memory. Of (n, d) values the
rank is capped, and the result says what is left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diw.errors import MatchingError
from diw.matching.gram import (
    EPSILON,
    LOSS_RANK_CAP,
    RANK_CAP,
    FloatArray,
    gaussian,
    pivoted_cholesky,
    positive_solver,
    rounding,
)
from diw.matching.kmm import Options
from diw.matching.newton import LINE_SEARCH, NEWTON_STEPS, System, solve_system
from diw.matching.parts import (
    Basis,
    Part,
    Sums,
    along,
    as_matrix,
    drawn,
    finish,
    missed,
    squares,
    sums_of,
)
from diw.matching.problem import FEATURE_RULE, LOSS_RULE, width

SAMPLE = 20_000
"""Training values among which pivots are chosen."""
START_ENTRIES = 1 << 24
"""Of the factor of the sample whose solution Newton's method starts from: 128 MiB."""
WIDTH_SAMPLE = 200_000
"""Training values from which a rule for γ is computed."""
TRUSTED_SAMPLE = 5_000
"""Trusted values among which pivots are chosen."""
ENOUGH = 1e-10
"""What the factor may leave of the worst value's diagonal entry, of one; the same in the mean over
all values is far less, and the error bound counts it."""
ROUNDS = 6
"""Of looking for missed values; after these the rank counts as capped."""
CONTINUATION = (1e5, 1e4, 1e3, 1e2, 1e1)
"""Times the ridge, where Newton's method finds no short way without."""
CAPPED_ACCURACY = 1e-10
ACCURACY = 1e-12
"""A residual, relative to b, at which Newton's method ends."""


Spread = Callable[..., "list[Any]"]
"""(function, parts, *arguments) → function(part, *arguments) for each part, in their order."""


def one_by_one(function: Callable[..., Any], parts: Sequence[Part], *arguments: Any) -> list[Any]:
    """The parts in this process, one after the other."""
    return [function(part, *arguments) for part in parts]


@dataclass(frozen=True)
class Streamed:
    """What is known of a match in parts; the weights themselves are where the parts put them."""

    rows: int
    status: str
    gamma: float
    rank: int
    iterations: int
    passes: int
    """How often all parts were read."""
    objective: float
    dual_residual: float
    """A bound of the residual, relative as in a `Match`."""
    error_bound: float
    """Of ‖w − w*‖, as in a `Match`."""
    trace_error: float
    mean: float
    effective_sample_size: float
    largest: float
    share_at_zero: float
    share_at_bound: float


def kmm_in_parts(
    parts: Sequence[Part], z_trusted: FloatArray, options: Options, spread: Spread = one_by_one
) -> Streamed:
    """`kmm` for training values that are read, part by part, as often as they are needed.

    A rule for γ is computed from a sample of 200,000 values.

    Args:
        parts: The training values; each also takes its weights.
        z_trusted: (m,) or (m, d) trusted values, in memory.
        options: As for `kmm`; the solver is `"diw"`.
        spread: How a function is applied to all parts: here, or on a cluster.

    Raises:
        MatchingError: The problem was not solved to `tol`.
    """
    solver = _Solver(parts, as_matrix(np.asarray(z_trusted, dtype=np.float64)), options, spread)
    return solver.run()


class _Solver:
    def __init__(
        self, parts: Sequence[Part], trusted: FloatArray, options: Options, spread: Spread
    ) -> None:
        self.parts, self.trusted, self.options, self.spread = parts, trusted, options, spread
        self.n = sum(part.rows for part in parts)
        self.passes = 0

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        self.passes += 1
        return self.spread(function, self.parts, *arguments)

    def run(self) -> Streamed:
        options, n = self.options, self.n
        share = min(1.0, WIDTH_SAMPLE / n)
        sample = np.concatenate(self.each(drawn, share))
        rule = options.gamma
        if rule is None:
            rule = LOSS_RULE if sample.shape[1] == 1 else FEATURE_RULE
        gamma = width(sample, rule) if isinstance(rule, str) else float(rule)  # pyright: ignore
        slack = options.slack
        slack = (math.sqrt(n) - 1.0) / math.sqrt(n) if slack is None else slack
        few = sample[:: max(1, len(sample) // SAMPLE)]
        basis = self.basis(few, gamma)
        V = basis.columns(self.trusted)
        b = V.sum(1) * (n / len(self.trusted))
        left_trusted = float(np.sqrt(np.maximum(1 - (V * V).sum(0), 0)).sum()) * n / V.shape[1]
        y, eta, steps, here = self.solve(basis, b, sample, None)
        total = here.total
        low, high = n * (1 - slack), n * (1 + slack)
        if not low <= total <= high:  # the nearer end binds, by convexity
            end = low if total < low else high
            y, eta, more, here = self.solve(basis, b, sample, end)
            steps += more
        return self.certified(basis, b, y, eta, here.Vw, steps, left_trusted)

    def basis(self, sample: FloatArray, gamma: float) -> Basis:
        """Pivots from a sample; where the rank is not capped, as good for all values as for it."""
        options, loss = self.options, sample.shape[1] == 1
        cap = options.rank or (LOSS_RANK_CAP if loss else RANK_CAP)
        some = self.trusted[:: max(1, len(self.trusted) // TRUSTED_SAMPLE)]
        turn = 0
        while True:
            z = np.concatenate([sample, some])
            factor = pivoted_cholesky(
                z[:, 0] if loss else z, len(sample), gamma, float(options.ridge), min(cap, len(z))
            )
            pivots = z[list(factor.pivots)]
            inverse = _inverse(gaussian(pivots, pivots, gamma))  # pyright: ignore
            basis = Basis(pivots, inverse, gamma, factor.capped, options.ridge, options.bound)
            if factor.capped:
                return basis
            found = self.each(missed, basis)
            if max(worst for _, worst in found) <= ENOUGH:
                return basis
            if turn == ROUNDS:
                return replace(basis, capped=True)
            turn += 1
            sample = np.concatenate([sample, *(values for values, _ in found)])

    def sums(self, basis: Basis, y: FloatArray, eta: float) -> Sums:
        first, *others = self.each(sums_of, basis, y, eta)
        for other in others:
            first = first + other
        return first

    def solve(
        self, basis: Basis, b: FloatArray, sample: FloatArray, total: float | None
    ) -> tuple[FloatArray, float, int, Sums]:
        """y, η, the number of steps and their sums: Newton's method from a sample's solution."""
        omega = basis.ridge
        sample = sample[:: max(1, len(sample) * basis.rank // START_ENTRIES)]
        share = len(sample) / self.n
        V = basis.columns(sample)
        extra = np.maximum(1 - (V * V).sum(0), 0) * share if basis.capped else None
        thinned: Any = System(
            V, b * share, omega * share, basis.bound,  # pyright: ignore
            None if total is None else total * share, extra,  # pyright: ignore
        )  # fmt: skip
        start, _ = solve_system(thinned, self.options.max_iterations)
        first = np.asarray(start.y), float(start.eta)
        y, eta, steps, done, here = self.newton(basis, b, *first, total, NEWTON_STEPS)
        if not done:  # a larger ridge has a shorter way; its solution is the next one's start
            y, eta = first
            for factor in (*CONTINUATION, 1.0):
                larger = replace(basis, ridge=factor * basis.ridge)
                y, eta, more, _, here = self.newton(larger, b, y, eta, total, NEWTON_STEPS)
                steps += more
        return y, eta, steps, here

    def newton(
        self, basis: Basis, b: FloatArray, y: FloatArray, eta: float, total: float | None,
        most: int,
    ) -> tuple[FloatArray, float, int, bool, Sums]:  # fmt: skip
        """The last dual point, the steps, whether what is left is rounding, and the sums."""
        omega, scale = basis.ridge, max(float(np.abs(b).max()), 1.0)
        enough = CAPPED_ACCURACY if basis.capped else ACCURACY
        here, smallest = self.sums(basis, y, eta), math.inf
        for steps in range(most + 1):
            F, excess = omega * y - b + here.Vw, 0.0 if total is None else here.total - total
            size = max(float(np.abs(F).max()), abs(excess))
            stalled = size >= 0.5 * smallest and size <= 1e3 * ACCURACY * scale
            if size <= enough * scale or stalled:
                return y, eta, steps, True, here
            if steps == most:
                break
            smallest = min(smallest, size)
            dy, deta = _direction(here, F, excess, omega, total)
            first = float(F @ dy) + deta * excess
            ahead = self.sums(basis, y + dy, eta + deta)
            slope = _slope(ahead, y + dy, dy, deta, b, total, omega)
            length = 1.0
            if abs(slope) > LINE_SEARCH * abs(first) and first < 0 < slope:
                length = self.line(basis, y, eta, dy, deta, b, total, first)
                ahead = self.sums(basis, y + length * dy, eta + length * deta)
            y, eta, here = y + length * dy, eta + length * deta, ahead
        return y, eta, most, False, here

    def line(
        self, basis: Basis, y: FloatArray, eta: float, dy: FloatArray, deta: float, b: FloatArray,
        total: float | None, first: float,
    ) -> float:  # fmt: skip
        """The step at which the slope, an increasing function, is about zero: one more pass."""
        lengths = np.linspace(0, 1, 33)[1:]
        pushed = np.sum(self.each(along, basis, y, eta, dy, deta, lengths), axis=0)
        slopes = basis.ridge * (y @ dy + lengths * (dy @ dy)) - b @ dy + pushed
        if total is not None:
            slopes -= deta * total
        slopes, lengths = np.append(first, slopes), np.append(0.0, lengths)
        after = int(np.argmax(slopes >= 0))
        low, high = slopes[after - 1], slopes[after]
        return float(lengths[after - 1] + (0 - low) / (high - low) / len(slopes[1:]))

    def certified(
        self, basis: Basis, b: FloatArray, y: FloatArray, eta: float, Vw: FloatArray, steps: int,
        left_trusted: float,
    ) -> Streamed:  # fmt: skip
        """Let the parts take their weights, and compute residuals and a bound of the error."""
        found = self.each(finish, basis, y, eta, b, Vw)
        sums = {name: sum(part[name] for part in found) for name in found[0]}
        highest = {name: max(part[name] for part in found) for name in found[0]}
        n, omega = self.n, float(self.options.ridge)
        F = omega * y - b + Vw
        scale = max(highest["k"], highest["Kw"], min(1.0, basis.bound))
        objective = 0.5 * (float(Vw @ Vw) + omega * sums["square"]) - float(b @ Vw)
        left_out = math.sqrt(sums["left"]) * (sums["root"] + left_trusted)
        if basis.capped:
            objective += 0.5 * sums["kept"]
            left_out += math.sqrt(sums["kept_square"])
        residual = float(np.linalg.norm(F))  # ‖V_i‖ ≤ 1, so that |F·V_i| is at most this
        # As in match.py; but V is L⁻¹k, of which each row rounds by ε per pivot.
        far, columns = max(highest["far"], squares(self.trusted)), basis.pivots.shape[1]
        each = rounding(basis.gamma, far, columns) + basis.rank**2 * EPSILON
        rounded = math.sqrt(n) * (each * (sums["total"] + n) + 8 * EPSILON * scale)
        delta = residual * math.sqrt(n) + left_out + rounded
        if residual / scale > self.options.tol:
            raise MatchingError(
                f"kernel mean matching in parts: not solved to tol={self.options.tol:g} in {steps} "
                f"iterations; the residual is {residual / scale:.1e}"
            )
        return Streamed(
            rows=n,
            status="approximate" if basis.capped else "optimal",
            gamma=basis.gamma,
            rank=basis.rank,
            iterations=steps,
            passes=self.passes,
            objective=objective,
            dual_residual=residual / scale,
            error_bound=delta / omega,
            trace_error=sums["left"] / n,
            mean=sums["total"] / n,
            effective_sample_size=sums["total"] ** 2 / max(n * sums["square"], 1e-300),
            largest=highest["largest"],
            share_at_zero=sums["zeros"] / n,
            share_at_bound=sums["bounds"] / n,
        )


def _slope(
    at: Sums, y: FloatArray, dy: FloatArray, deta: float, b: FloatArray, total: float | None,
    omega: float,
) -> float:  # fmt: skip
    """Of the dual function along a direction, at a point."""
    excess = 0.0 if total is None else at.total - total
    return float((omega * y - b + at.Vw) @ dy) + deta * excess


def _inverse(kernel: Any) -> FloatArray:
    """L⁻¹ for LLᵀ = kernel: in the order of the pivots it is stable."""
    matrix: FloatArray = np.asarray(kernel, dtype=np.float64)
    L = np.linalg.cholesky(matrix + 1e-15 * np.eye(len(matrix)))
    return np.asarray(np.linalg.inv(L), dtype=np.float64)


def _direction(
    at: Sums, F: FloatArray, excess: float, omega: float, total: float | None
) -> tuple[FloatArray, float]:
    """Newton's direction in y and η, as in newton.py."""
    solve: Any = positive_solver(lambda: at.gram.copy(), omega)  # pyright: ignore
    x = solve(F)
    if total is None:
        return -x, 0.0
    g = solve(at.Vs)
    curvature = at.free - float(g @ at.Vs)
    if not curvature > 0:
        return 0.0 * x, -1.0 if excess > 0 else 1.0
    deta = (float(at.Vs @ x) - excess) / curvature
    return -(x + g * deta), deta
