"""Weights that match up to a penalty: entropy and least squares.

With MMD(w) = ‖(1/n) Σ w_i φ(z_i) − (1/m) Σ φ(z'_j)‖, the distance of the kernel means,

    minimise  ½ MMD²(w) + (ν/n) Σ p(w_i)   over  0 ≤ w ≤ B.

Both penalties p keep weights near one where the data do not say otherwise. On a factor K ≈ VᵀV with
c the trusted mean (r,), the optimum is a function of y = c − Vw/n alone: p'(w_i) = v_iᵀy/ν, so that
w_i is an increasing function of u_i = v_iᵀy/ν, cut at 0 and B, and y solves

    y − c + (1/n) V w(Vᵀy/ν) = 0,

r equations, the gradient of a convex function: those of newton.py with another link of w to u.

ν is given, or follows from the discrepancy principle: the largest ν at which MMD² is at most what
the means are expected to be off by themselves, (1 − ‖c‖²)·(1/m + ½ mean(w²)/n). Half of the
training side: without it, weights of few training values follow their noise; all of it leaves more
unmatched than weighted fits can bear (docs/estimators.md). MMD² grows with ν. No weights have MMD²
below A²/‖y‖², where A = cᵀy − (B/n) Σ max(v_iᵀy, 0) > 0, for any y. Where that proves the
discrepancy out of reach, 1.1 times the bound is added to what is asked, and the status says so.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from diw.matching.estimators import Estimator
from diw.matching.gram import (
    EPSILON,
    Basis,
    FloatArray,
    magnitude,
    pivoted_cholesky,
    positive_solver,
)
from diw.matching.kmm import (
    OnFailure,
    as_values,
    check_choice,
    check_gamma,
    check_positive,
    check_whole,
)
from diw.matching.match import Values, settle
from diw.matching.newton import DualPoint, Link, System, newton
from diw.matching.problem import make_problem

FEW = 512  # values whose factor may have full rank
RANK = 256  # of more: 512 rows change the error to the true ratio by less than its spread
STEPS = 100  # of Newton's method
SMALLEST, LARGEST = 1e-8, 1e6  # of ν, where the discrepancy principle looks
ACCURACY = 1e-6  # relative, of the MMD² that the discrepancy principle asks for
TRAINED = 0.5  # the share of the weighted training mean's error that it allows for
NEAR, ROUGHLY = 1.1, 0.02  # where that is out of reach: times the bound, and the accuracy


@dataclass(kw_only=True, eq=False, repr=False)
class Penalised(Estimator):
    """What `Entropy` and `Chi2` share.

    Attributes:
        penalty_: ν.
        gamma_: γ of the kernel.
        mmd_: MMD of the weights.
        error_bound_: A bound on ‖w − w*‖₂, where the kernel's rank was not cut.
    """

    gamma: float | str | None = None
    """Width of the kernel, as in `kmm`."""
    bound: float = 50.0
    """B, the largest weight."""
    penalty: float | None = None
    """ν; None is the discrepancy principle."""
    rank: int | None = None
    """The largest rank of the kernel's factor; None is 256 of more than 512 values. A cut makes the
    status "approximate"."""
    tol: float = 1e-8
    """The largest relative residual that counts as solved."""
    on_failure: OnFailure = "raise"
    """What to do where that is not reached: "raise" or "warn"."""

    @abstractmethod
    def _weights(self, u: FloatArray) -> FloatArray:
        """w(u), the inverse of p', cut at 0 and B."""

    @abstractmethod
    def _slopes(self, w: FloatArray) -> FloatArray:
        """w'(u) as a function of w, 0 where a weight is cut."""

    @abstractmethod
    def _curvature(self) -> float:
        """The smallest p'' on (0, B]."""

    def _check(self) -> None:
        check_gamma(self.gamma)
        check_positive("bound", self.bound)
        if self.penalty is not None:
            check_positive("penalty", self.penalty)
        if self.rank is not None:
            check_whole("rank", self.rank)
        check_positive("tol", self.tol)
        check_choice("on_failure", self.on_failure, ("raise", "warn"))

    def _fit(self, train: Values, trusted: Values) -> tuple[FloatArray, str]:
        ours, theirs = as_values("train", train), as_values("trusted", trusted)
        problem = make_problem(ours, theirs, gamma=self.gamma, bound=self.bound, slack=1.0)
        n, size = problem.n, len(problem.z)
        rank = min(self.rank or (RANK if size > FEW else size), size)
        factor = pivoted_cholesky(problem.z, n, problem.gamma, problem.ridge, rank)
        link = Link(self._weights, self._slopes)
        system = System(factor.V, factor.b, n, self._most, link=link)
        start = _Solved(1.0, system, system.point(0.0 * factor.b, 0.0))
        wanted, lower = 0.0, 0.0
        if self.penalty is not None:
            found = start.at(float(self.penalty))
        else:
            spread = max(1.0 - float(factor.b @ factor.b) / n**2, 0.0)
            found, lower, wanted = _by_discrepancy(start, spread, size - n)
        point = found.point
        residual = magnitude(point.F) / max(magnitude(factor.b), 1e-100)
        status = "approximate" if factor.capped else "optimal"
        if lower > wanted:
            status += f": no weights come closer than MMD² {lower:.1e}, asked was {wanted:.1e}"
        if residual > self.tol:
            status = f"not solved to tol={self.tol:g}"
        failure = f"{type(self).__name__}: {status}, the residual is {residual:.1e}"
        settle(residual <= self.tol, failure, self.on_failure)
        self.penalty_, self.gamma_ = found.nu, problem.given_gamma
        self.mmd_ = math.sqrt(found.mmd)
        self._problem, self._y = problem, point.y
        self._basis = Basis.of(problem.columns[list(factor.pivots)], problem.gamma)
        # n times the gradient of the objective at w is VᵀF, up to what the factor leaves out and
        # rounding; the objective times n is ν·min p''-strongly convex.
        left_out = float(np.sqrt(factor.left) @ point.w) + factor.left_trusted
        each = problem.rounding + factor.rank * EPSILON
        rounded = math.sqrt(n) * (each * (float(point.w.mean()) + 1.0) + 8 * EPSILON)
        delta = float(np.linalg.norm(point.F @ factor.V)) / n + rounded
        delta += math.sqrt(float(factor.left.sum())) * left_out / n
        self.error_bound_ = delta / (found.nu * self._curvature())
        return point.w, status

    def _predict(self, z: FloatArray) -> FloatArray:
        return self._weights(self._y @ self._basis.columns(self._problem.placed(z))[0])


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Entropy(Penalised):
    """Weights by entropy: minimise ½MMD² + ν·mean(w log w − w + 1) over 0 ≤ w ≤ B.

    They are as even as the distance that is asked for allows, and positive.
    """

    def _weights(self, u: FloatArray) -> FloatArray:
        most = math.log(self.bound)  # from here on exactly B: that tells which weights are cut
        return np.where(u < most, np.exp(np.minimum(u, most)), self._most)

    def _slopes(self, w: FloatArray) -> FloatArray:
        return w * (w < self.bound)

    def _curvature(self) -> float:
        return 1.0 / self.bound


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Chi2(Penalised):
    """Weights by least squares: minimise ½MMD² + (ν/2)·mean((w − 1)²) over 0 ≤ w ≤ B.

    Kernel mean matching with a ridge that draws weights to one, as strong as the trusted samples
    allow.
    """

    def _weights(self, u: FloatArray) -> FloatArray:
        return np.clip(1.0 + u, 0.0, self._most)

    def _slopes(self, w: FloatArray) -> FloatArray:
        return ((w > 0) & (w < self.bound)).astype(np.float64)

    def _curvature(self) -> float:
        return 1.0


@dataclass(frozen=True)
class _Solved:
    """The optimum for one ν, on a factor: the problem of newton.py with ω = nν and b = n·c."""

    nu: float
    system: System
    point: DualPoint
    """With y/ν in the notation of this file as its y."""

    @property
    def mmd(self) -> float:
        """MMD² of the weights."""
        missing = (self.system.ridge * self.point.y - self.point.F) / self.system.size
        return float(missing @ missing)

    @property
    def lower(self) -> float:
        """What MMD² no weights are below, by duality."""
        system, y = self.system, self.point.y
        largest = system.bound * float(np.maximum(self.point.u, 0.0).mean())
        A = float(system.b @ y) / system.size - largest
        return A * A / float(y @ y) if A > 0 else 0.0

    @property
    def along(self) -> FloatArray:
        """(r,) the derivative of y by log ν."""
        gram = self.system.hessian(self.point).gram
        return -positive_solver(gram, self.system.ridge)(self.system.ridge * self.point.y)

    def at(self, nu: float, *starts: FloatArray, accuracy: float = 1e-13) -> "_Solved":
        """The optimum for another ν, from the best of some starts (r,)."""
        system = replace(self.system, ridge=nu * self.system.size, accuracy=accuracy)
        points = [system.point(y, 0.0) for y in starts or (self.point.y,)]
        best = min(points, key=lambda point: float(point.F @ point.F))
        return _Solved(nu, system, newton(system, best, STEPS)[0])


def _by_discrepancy(start: _Solved, spread: float, trusted: int) -> tuple[_Solved, float, float]:
    """The largest ν whose MMD² is allowed, what MMD² no weights are below, and what was asked.

    Newton's method on log MMD² over log ν, with a bracket.

    Args:
        start: To begin with.
        spread: 1 − ‖c‖², the expected squared distance of a value from the mean.
        trusted: m.
    """

    def allowed(found: _Solved) -> float:
        squares = float((found.point.w**2).mean())
        return spread * (1.0 / trusted + TRAINED * squares / found.system.size)

    found, lower = start.at(LARGEST), 0.0
    if found.mmd <= allowed(found):  # equal weights will do
        return found, 0.0, allowed(found)
    found = start.at(1e-2, accuracy=1e-3)
    low, high = math.log(SMALLEST), math.log(LARGEST)
    for _ in range(60):
        lower, goal = max(lower, found.lower), allowed(found)
        beyond = lower > goal
        if beyond:
            goal, high = goal + NEAR * lower, math.log(LARGEST)
        ratio = math.log(max(found.mmd, 1e-300) / max(goal, 1e-300))
        here, y = math.log(found.nu), found.point.y
        if -(ROUGHLY if beyond else ACCURACY) <= ratio <= 0 or high - low <= 1e-9:
            break
        low, high = (low, here) if ratio > 0 else (here, high)
        dy = found.along
        grows = 2.0 * (1.0 + float(y @ dy) / max(float(y @ y), 1e-300))  # D log MMD² / d log ν
        aim = here - (ratio + 0.5 * ACCURACY) / grows if grows > 1e-12 else math.inf
        if not low < aim < high:
            aim = 0.5 * (low + high)
        found = found.at(math.exp(aim), y, y + (aim - here) * dy, accuracy=1e-5)
    found = found.at(found.nu)
    return found, lower, allowed(found)
