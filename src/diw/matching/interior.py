"""The interior point: to the end for a match whose Newton path is long, and stopped early.

Mehrotra's predictor–corrector for the quadratic program

    minimise ½wᵀPw − kᵀw   subject to   Gw + s = h, s ≥ 0,      P = K + ωI,

where Gw ≤ h says w ≥ 0, w ≤ B and, where asked, Σw ≤ high and −Σw ≤ −low, with multipliers z ≥ 0.
It starts at the least-squares point and takes 0.99 of the step to the boundary (Vandenberghe 2010,
"The CVXOPT linear and quadratic cone program solvers"). It takes twelve to eighteen iterations
whatever the ridge and the rank. Each solves with P + GᵀDG = K + a diagonal + a multiple of
11ᵀ: by Woodbury's identity on a factor of K, by conjugate gradients where K is nearly diagonal, and
by Cholesky's factorisation otherwise. To the end, it comes near the optimum, never on it: other
solvers take the last steps.

The paper's results were made with cvxopt at its default tolerance. On losses the objective
is so flat that the weights there are smoother than at the optimum: no weight is at a bound, and
samples with nearly the same loss have nearly the same weight. Some of the paper's results
depend on that, so `stopped` follows the same path to the same end, without cvxopt and at
a fraction of its cost. cvxopt itself is there to reproduce and to compare; it is GPL, so it is
an extra of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from diw.errors import MatchingError
from diw.matching.gram import (
    Dense,
    FloatArray,
    Gram,
    Solve,
    add_to_diagonal,
    clip,
    conjugate_gradients,
    positive_solver,
    woodbury,
)
from diw.matching.match import Solution
from diw.matching.problem import Problem

TO_BOUNDARY = 0.99

STATUS = "stopped at relative gap 1e-6"
CVXOPT_STATUS = "optimal to cvxopt's default tolerance"

NEARLY_DIAGONAL = 4.0  # largest sum of a row's off-diagonal entries for conjugate gradients
CG_STEPS = 60
CG_ACCURACY = 1e-13


@dataclass(frozen=True)
class Interior:
    """Where the interior point ended."""

    w: FloatArray
    """(n,)"""
    z: FloatArray
    """(2n + q,) the multipliers, in the order of `Program.h`."""
    guess: FloatArray
    """(n,) the weights, those at a bound that are nearer to it than their multiplier to 0."""
    shift: float
    """λ, the multiplier of the sum."""
    iterations: int
    met: bool
    """Whether the gap is as small as asked."""


def interior(
    program: "Program",
    max_iterations: int,
    relative_gap: float = 1e-12,
    infeasibility: float = 1e-9,
) -> Interior:
    """Iterate until the duality gap is at most so much of the objective (or a tenth of that).

    Rounding may win before, or nothing may be left to gain: the point before it stands.
    """
    h, k = program.h, program.gram.k
    w, s, z = before = _start(program, k)
    scale_h, scale_k = max(1.0, _norm(h)), max(1.0, _norm(k))
    met, iteration = False, 0
    for iteration in range(max_iterations + 1):
        Pw = program.P(w)
        dual = Pw - k + program.Gt(z)
        primal = s - h + program.G(w, float(w.sum()))
        gap, objective = float(s @ z), 0.5 * float(w @ Pw) - float(k @ w)
        bound = objective + float(z @ primal) - gap  # the dual objective
        size = -objective if objective < 0 else max(bound, 0.0)
        feasible = max(_norm(primal) / scale_h, _norm(dual) / scale_k) <= infeasibility
        met = feasible and (gap <= 0.1 * relative_gap or gap <= relative_gap * size)
        if not math.isfinite(gap):  # rounding won; the point before it stands
            w, s, z = before
        if met or iteration == max_iterations or not math.isfinite(gap):
            break
        solve = program.solver(z / s)
        step = _direction(program, solve, (s, z, primal, dual), s * z)
        t = _longest(s, z, step, 1.0)
        centring = min(max(1.0 - t + float(step.s @ step.z) / gap * t * t, 0.0), 1.0) ** 3
        wanted = s * z - centring * gap / len(s) + step.s * step.z
        step = _direction(program, solve, (s, z, primal, dual), wanted)
        t = _longest(s, z, step, TO_BOUNDARY)
        before = w, s, z
        w, s, z = w + t * step.w, s + t * step.s, z + t * step.z
    n = len(w)
    bound = h[n : 2 * n]
    high = np.where(z[n : 2 * n] > bound - w, bound, w)
    guess = clip(np.where(z[:n] > w, 0.0, high), float(bound[0]))
    return Interior(w, z, guess, float(program.signs @ z[2 * n :]), iteration, met)


def stopped(problem: Problem, gram: Gram, max_iterations: int) -> Solution:
    """Iterate until the duality gap is at most 1e-6 of the objective (or 1e-7)."""
    program = Program.of(gram, problem.ridge, problem.bound, high=problem.high, low=problem.low)
    found = interior(program, max_iterations, 1e-6, 1e-7)
    w = clip(found.w, problem.bound)
    room = program.h - program.G(w, float(w.sum()))
    return Solution(
        weights=w,
        residual=program.P(w) - gram.k + program.Gt(found.z),
        multiplier=0.0,
        iterations=found.iterations,
        gap=max(float(room @ found.z), 0.0),
        status=STATUS if found.met else f"not stopped in {found.iterations} iterations",
        solved=found.met,
    )


@dataclass(frozen=True)
class Program:
    """The quadratic program and the linear algebra of one iteration."""

    gram: Gram
    ridge: FloatArray
    """(n,) what is added to K's diagonal: ω, and what a capped factor leaves out."""
    h: FloatArray
    """(2n + q,): of w ≥ 0, of w ≤ B, then of the limits of the sum."""
    signs: FloatArray
    """(q,) 1 for Σw ≤ high, −1 for −Σw ≤ −low."""
    nearly_diagonal: bool

    @classmethod
    def of(
        cls,
        gram: Gram,
        ridge: float,
        bound: float,
        high: float | None = None,
        low: float | None = None,
    ) -> "Program":
        """The program; a limit of the sum that is None is left out."""
        n = len(gram.k)
        limits = [(1.0, high)] * (high is not None) + [(-1.0, low)] * (low is not None)
        signs = np.array([sign for sign, _ in limits])
        ends = [sign * (end or 0.0) for sign, end in limits]
        h = np.concatenate([np.zeros(n), np.full(n, bound), ends])
        if isinstance(gram, Dense):
            rest = float(gram.K.sum(1).max()) - 1.0
            return cls(gram, np.full(n, ridge), h, signs, rest < NEARLY_DIAGONAL)
        return cls(gram, ridge + (gram.left if gram.capped else np.zeros(n)), h, signs, False)

    def P(self, w: FloatArray) -> FloatArray:
        """(n,) Pw."""
        return self.gram.apply(w) + self.ridge * w

    def G(self, w: FloatArray, total: float) -> FloatArray:
        """(2n + q,) Gw, of weights whose sum is `total`."""
        return np.concatenate([-w, w, self.signs * total])

    def Gt(self, v: FloatArray) -> FloatArray:
        """(n,) Gᵀv."""
        n = len(self.ridge)
        return v[n : 2 * n] - v[:n] + float(self.signs @ v[2 * n :])

    def solver(self, D: FloatArray) -> Callable[[FloatArray], tuple[FloatArray, float]]:
        """A solver for P + Gᵀ diag(D) G, which gives the solution and its sum.

        Where the band binds, D is so large that the sum of the rounded solution would be
        nothing but rounding; by Sherman and Morrison's formula the sum is accurate.
        """
        n = len(self.ridge)
        solve = self._diagonal_solver(self.ridge + D[:n] + D[n : 2 * n])
        ones, c = solve(np.full(n, 1.0)), float(D[2 * n :].sum())
        scale = 1.0 + c * float(ones.sum())

        def sherman_morrison(right: FloatArray) -> tuple[FloatArray, float]:
            x = solve(right)
            total = float(x.sum()) / scale
            return x - ones * (c * total), total

        return sherman_morrison

    def _diagonal_solver(self, d: FloatArray) -> Solve:
        """A solver for K + diag(d)."""
        gram = self.gram
        if not isinstance(gram, Dense):
            return woodbury(gram.V, d)
        factor: list[Solve] = []

        def solve(right: FloatArray) -> FloatArray:
            if self.nearly_diagonal and not factor:
                x, accuracy = conjugate_gradients(
                    lambda p: gram.K @ p + d * p, right, 1.0 / (1.0 + d), CG_ACCURACY, CG_STEPS
                )
                if accuracy <= CG_ACCURACY:
                    return x
            if not factor:
                factor.append(positive_solver(lambda: add_to_diagonal(gram.K + 0.0, d)))
            return factor[0](right)

        return solve


@dataclass(frozen=True)
class _Step:
    w: FloatArray
    s: FloatArray
    z: FloatArray


def _start(program: Program, k: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The point that minimises ½wᵀPw − kᵀw + ½‖s‖², with s and z moved into the interior."""
    h = program.h
    w, total = program.solver(0.0 * h + 1.0)(k + program.Gt(h))
    s = h - program.G(w, total)
    return w, _interior(s), _interior(-s)


def _interior(v: FloatArray) -> FloatArray:
    least = float(v.min())
    return v + (1.0 - least) if least <= 1e-8 * max(_norm(v), 1.0) else v


def _direction(
    program: Program,
    solve: Callable[[FloatArray], tuple[FloatArray, float]],
    at: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    products: FloatArray,
) -> _Step:
    """The step that takes the residuals to zero and s∘z down by `products`, to first order."""
    s, z, primal, dual = at
    dw, total = solve(program.Gt((products - z * primal) / s) - dual)
    ds = -primal - program.G(dw, total)
    return _Step(dw, ds, -(products + z * ds) / s)


def _longest(s: FloatArray, z: FloatArray, step: _Step, share: float) -> float:
    """`share` of the step that keeps s and z positive, at most 1."""
    steepest = max(-float((step.s / s).min()), -float((step.z / z).min()))
    return min(1.0, share / steepest) if steepest > 0 else 1.0


def _norm(v: FloatArray) -> float:
    return math.sqrt(float(v @ v))


def solve_by_cvxopt(problem: Problem, gram: Dense) -> Solution:
    """Solve with `cvxopt.solvers.qp` on the full kernel matrix; weights are clipped to [0, B]."""
    try:
        cvxopt: Any = import_module("cvxopt")
    except ModuleNotFoundError as error:
        raise ValueError("solver: 'cvxopt' needs cvxopt, pip install 'diw[released]'") from error
    matrix, n, bound = cvxopt.matrix, problem.n, problem.bound
    K, k = gram.K + problem.ridge * np.eye(n), gram.k
    h = np.concatenate([[problem.high, -problem.low], np.full(n, bound), np.zeros(n)])
    ones, eye = np.ones((1, n)), np.eye(n)
    G = cvxopt.sparse(matrix(np.concatenate([ones, -ones, eye, -eye])))
    arguments = (matrix(K), matrix(-k), G, matrix(h))
    try:
        answer: Any = cvxopt.solvers.qp(*arguments, options={"show_progress": False})
    except (ArithmeticError, ValueError) as error:
        raise MatchingError(f"kernel mean matching: cvxopt failed: {error}") from error
    w = np.clip(np.array(answer["x"])[:, 0], 0.0, bound)
    above, below, at_bound, at_zero = np.split(np.array(answer["z"])[:, 0], [1, 2, 2 + n])
    solved = answer["status"] == "optimal"
    return Solution(
        weights=w,
        residual=K @ w - k + above - below + at_bound - at_zero,
        multiplier=0.0,
        iterations=int(answer["iterations"]),
        gap=max(float(answer["gap"]), 0.0),
        status=CVXOPT_STATUS if solved else f"cvxopt: {answer['status']}",
        solved=solved,
    )
