"""An interior point that stops early, where the authors' solver stops.

The paper's results were made with cvxopt at its default tolerance. On losses the objective
is so flat that the weights there are smoother than at the optimum: no weight is at a bound, and
samples with nearly the same loss have nearly the same weight. Some of the paper's results
depend on that, so this file follows the same path to the same end, without cvxopt and at
a fraction of its cost: Mehrotra's predictor–corrector for the quadratic program

    minimise ½wᵀPw − kᵀw   subject to   Gw + s = h, s ≥ 0,      P = K + ωI,

where Gw ≤ h says w ≥ 0, w ≤ B, Σw ≤ high and −Σw ≤ −low, with multipliers z ≥ 0. It starts at the
least-squares point and takes 0.99 of the step to the boundary (Vandenberghe 2010, "The CVXOPT
linear and quadratic cone program solvers"). An iteration solves with
P + GᵀDG = K + a diagonal + a multiple of 11ᵀ: by Woodbury's identity on a factor of K, by
conjugate gradients where K is nearly diagonal, and by Cholesky's factorisation otherwise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from diw.matching.backend import Array, Backend, Solve, conjugate_gradients, positive_solver
from diw.matching.gram import Dense, Gram
from diw.matching.match import Solution
from diw.matching.newton import System
from diw.matching.problem import Problem

RELATIVE_GAP = 1e-6
GAP = 1e-7
INFEASIBILITY = 1e-7
TO_BOUNDARY = 0.99

STATUS = "stopped at relative gap 1e-6"

NEARLY_DIAGONAL = 4.0  # largest sum of a row's off-diagonal entries for conjugate gradients
CG_STEPS = 60
CG_ACCURACY = 1e-13


def stopped(problem: Problem, gram: Gram, max_iterations: int) -> Solution:
    """Iterate until the duality gap is at most 1e-6 of the objective (or 1e-7)."""
    program = _Program.of(problem, gram)
    h, k = program.h, gram.k
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
        feasible = max(_norm(primal) / scale_h, _norm(dual) / scale_k) <= INFEASIBILITY
        met = feasible and (gap <= GAP or gap <= RELATIVE_GAP * size)
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
    w = problem.xp.clip(w, problem.bound)
    return Solution(
        weights=w,
        residual=program.P(w) - k + program.Gt(z),
        multiplier=0.0,
        iterations=iteration,
        gap=max(float((h - program.G(w, float(w.sum()))) @ z), 0.0),
        status=STATUS if met else f"not stopped in {iteration} iterations",
        solved=met,
    )


@dataclass(frozen=True)
class _Program:
    """The quadratic program and the linear algebra of one iteration."""

    xp: Backend
    gram: Gram
    ridge: Array
    """(n,) what is added to K's diagonal: ω, and what a capped factor leaves out."""
    h: Array
    """(2n + 2,)"""
    nearly_diagonal: bool

    @classmethod
    def of(cls, problem: Problem, gram: Gram) -> "_Program":
        xp, n = problem.xp, problem.n
        h = xp.full(2 * n + 2, 0.0)
        h[n : 2 * n] = problem.bound
        h[2 * n], h[2 * n + 1] = problem.high, -problem.low
        ridge = xp.full(n, problem.ridge)
        if isinstance(gram, Dense):
            rest = float(gram.K.sum(1).max()) - 1.0
            return cls(xp, gram, ridge, h, rest < NEARLY_DIAGONAL)
        return cls(xp, gram, ridge + gram.left if gram.capped else ridge, h, False)

    def P(self, w: Array) -> Array:
        """(n,) Pw."""
        return self.gram.apply(w) + self.ridge * w

    def G(self, w: Array, total: float) -> Array:
        """(2n + 2,) Gw, of weights whose sum is `total`."""
        n = len(w)
        v = self.xp.empty(2 * n + 2)
        v[:n], v[n : 2 * n] = -w, w
        v[2 * n], v[2 * n + 1] = total, -total
        return v

    def Gt(self, v: Array) -> Array:
        """(n,) Gᵀv."""
        n = len(self.ridge)
        return v[n : 2 * n] - v[:n] + (v[2 * n] - v[2 * n + 1])

    def solver(self, D: Array) -> Callable[[Array], tuple[Array, float]]:
        """A solver for P + Gᵀ diag(D) G, which gives the solution and its sum.

        Where the band binds, D is so large that the sum of the rounded solution would be
        nothing but rounding; by Sherman and Morrison's formula the sum is accurate.
        """
        n = len(self.ridge)
        solve = self._diagonal_solver(self.ridge + D[:n] + D[n : 2 * n])
        ones, c = solve(self.xp.full(n, 1.0)), float(D[2 * n] + D[2 * n + 1])
        scale = 1.0 + c * float(ones.sum())

        def sherman_morrison(right: Array) -> tuple[Array, float]:
            x = solve(right)
            total = float(x.sum()) / scale
            return x - ones * (c * total), total

        return sherman_morrison

    def _diagonal_solver(self, d: Array) -> Solve:
        """A solver for K + diag(d)."""
        xp, gram = self.xp, self.gram
        if not isinstance(gram, Dense):
            return System(xp, gram.V, gram.b, 0.0, 0.0).woodbury(d)
        factor: list[Solve] = []

        def solve(right: Array) -> Array:
            if self.nearly_diagonal and not factor:
                x, accuracy = conjugate_gradients(
                    lambda p: gram.K @ p + d * p, right, 1.0 / (1.0 + d), CG_ACCURACY, CG_STEPS
                )
                if accuracy <= CG_ACCURACY:
                    return x
            if not factor:
                factor.append(positive_solver(xp, lambda: xp.add_to_diagonal(gram.K + 0.0, d)))
            return factor[0](right)

        return solve


@dataclass(frozen=True)
class _Step:
    w: Array
    s: Array
    z: Array


def _start(program: _Program, k: Array) -> tuple[Array, Array, Array]:
    """The point that minimises ½wᵀPw − kᵀw + ½‖s‖², with s and z moved into the interior."""
    h = program.h
    w, total = program.solver(0.0 * h + 1.0)(k + program.Gt(h))
    s = h - program.G(w, total)
    return w, _interior(s), _interior(-s)


def _interior(v: Array) -> Array:
    least = float(v.min())
    return v + (1.0 - least) if least <= 1e-8 * max(_norm(v), 1.0) else v


def _direction(
    program: _Program,
    solve: Callable[[Array], tuple[Array, float]],
    at: tuple[Array, Array, Array, Array],
    products: Array,
) -> _Step:
    """The step that takes the residuals to zero and s∘z down by `products`, to first order."""
    s, z, primal, dual = at
    dw, total = solve(program.Gt((products - z * primal) / s) - dual)
    ds = -primal - program.G(dw, total)
    return _Step(dw, ds, -(products + z * ds) / s)


def _longest(s: Array, z: Array, step: _Step, share: float) -> float:
    """`share` of the step that keeps s and z positive, at most 1."""
    steepest = max(-float((step.s / s).min()), -float((step.z / z).min()))
    return min(1.0, share / steepest) if steepest > 0 else 1.0


def _norm(v: Array) -> float:
    return math.sqrt(float(v @ v))
