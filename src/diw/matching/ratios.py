"""Ratios as kernel models: r(z) = Σ_l α_l k(z, c_l), α ≥ 0, with trusted values as centres c.

    "ulsif"  least squares (Kanamori, Hido & Sugiyama 2009): α = max(0, (H + λI)⁻¹ h) with
             H = (1/n) Σ κ(z_i)κ(z_i)ᵀ over training and h = (1/m) Σ κ(z'_j) over trusted values,
             κ(z) = (k(z, c_1), …). γ and λ minimise the squared error with one pair left out.
    "kliep"  likelihood (Sugiyama et al. 2008): maximise (1/m) Σ log r(z'_j) with mean r(z_i) = 1.
             γ maximises the likelihood of folds left out.

The weights are r at the training values, at most B. Unlike a match, the model also has
a ratio between the values.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, Values, like, to_numpy
from diw.matching.kernel import gaussian
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem
from diw.seeding import numpy_generator

CENTRES = 100
LEFT_OUT = 1000  # pairs at most
FOLDS = 5
WIDTHS = tuple(10.0 ** (x / 2) for x in range(-4, 5))
"""Where γ is looked for, in units of the median rule's."""
PENALTIES = tuple(10.0 ** (x / 2) for x in range(-6, 3))
"""Where λ is looked for."""
STEPS = 100  # of the interior point


@dataclass(frozen=True)
class Features:
    """κ at the training and at the trusted values, for one γ."""

    factor: float
    """γ in units of the problem's."""
    train: FloatArray
    """(n, b)"""
    trusted: FloatArray
    """(m, b)"""


def _features(problem: Problem, factor: float) -> Features:
    """κ for γ times `factor`."""
    z, n = problem.z, problem.n
    z = z[:, None] if z.ndim == 1 else z
    order = numpy_generator(0, "centres of a ratio").permutation(len(z) - n)
    centres = z[n:][np.sort(order[:CENTRES])]
    k = to_numpy(gaussian(z, centres, problem.gamma * factor))
    return Features(factor, k[:n], k[n:])


def ulsif(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """Unconstrained least-squares importance fitting, γ and λ by leaving one out."""
    factors = WIDTHS if options.gamma is None else (1.0,)
    penalties = PENALTIES if options.penalty is None else (float(options.penalty),)
    tried = len(factors) * len(penalties)
    part, penalty, least = _features(problem, factors[0]), penalties[0], math.inf
    for factor in factors if tried > 1 else ():
        new = _features(problem, factor)
        errors = [left_out_error(new.train, new.trusted, x) for x in penalties]
        best = int(np.argmin(errors))
        if errors[best] < least:
            part, penalty, least = new, penalties[best], errors[best]
    H, h = part.train.T @ part.train / problem.n, part.trusted.mean(0)
    solution = _solve(H + penalty * np.eye(len(h)), h)
    missing = H @ solution + penalty * solution - h
    alpha = np.maximum(solution, 0.0)
    objective = 0.5 * float(alpha @ H @ alpha) - float(h @ alpha)
    match = _match(
        problem,
        part,
        alpha,
        z_train,
        iterations=tried,
        objective=objective + 0.5 * penalty * float(alpha @ alpha),
        dual_residual=float(np.abs(missing).max()) / max(float(h.max()), 1e-100),
        error_bound=math.sqrt(part.train.size) * float(np.linalg.norm(missing)) / penalty,
        penalty=penalty,
    )
    return match, True


def left_out_error(train: FloatArray, trusted: FloatArray, penalty: float) -> float:
    """½ mean r(z_i)² − mean r(z'_i), each with the model fitted without the pair (z_i, z'_i).

    Kanamori, Hido & Sugiyama 2009, Sec. 3: the matrix without a sample differs from the whole
    one by rank one, so that Sherman and Morrison's formula gives all models at once.
    `train` is (n, b), `trusted` (m, b).
    """
    n, m = len(train), len(trusted)
    count = min(n, m, LEFT_OUT)
    if count < 2:
        return 0.0
    generator = numpy_generator(0, "pairs left out")
    X = train[generator.permutation(n)[:count]].T  # (b, count)
    Y = trusted[generator.permutation(m)[:count]].T
    H, h = train.T @ train / n, trusted.mean(0)
    inverse = np.linalg.inv(H + penalty * (n - 1) / n * np.eye(len(h)))
    BX = inverse @ X
    room = n - (X * BX).sum(0)
    by_all = (inverse @ h)[:, None] + BX * ((h @ BX) / room)
    by_one = inverse @ Y + BX * ((Y * BX).sum(0) / room)
    alpha = np.maximum((n - 1) / (n * (m - 1)) * (m * by_all - by_one), 0.0)
    at_train, at_trusted = (X * alpha).sum(0), (Y * alpha).sum(0)
    return float(0.5 * (at_train**2).mean() - at_trusted.mean())


def kliep(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """The Kullback–Leibler importance estimation procedure, γ by likelihood left out."""
    part, most = _features(problem, 1.0), -math.inf
    for factor in WIDTHS if options.gamma is None and len(part.trusted) >= FOLDS else ():
        new = _features(problem, factor)
        likelihood = _left_out_likelihood(new)
        if likelihood > most:
            part, most = new, likelihood
    alpha, steps, dual, gap = largest_likelihood(part.train, part.trusted)
    ratio = part.trusted @ alpha
    solved = max(dual, gap) <= max(options.tol, 1e-8)
    match = _match(
        problem,
        part,
        alpha,
        z_train,
        iterations=steps,
        objective=-float(np.log(np.maximum(ratio, 1e-300)).mean()),
        dual_residual=dual,
        error_bound=math.inf,
        complementarity=gap,
        status="optimal" if solved else f"not solved in {steps} iterations",
    )
    return match, solved


def _left_out_likelihood(part: Features) -> float:
    """The mean log-likelihood of trusted values under models that did not see them."""
    m = len(part.trusted)
    fold = numpy_generator(0, "folds").permutation(m) % FOLDS
    scores: list[float] = []
    for i in range(FOLDS):
        alpha, *_ = largest_likelihood(part.train, part.trusted[fold != i])
        held = part.trusted[fold == i] @ alpha
        scores.append(float(np.log(np.maximum(held, 1e-300)).mean()))
    return float(np.mean(scores))


def largest_likelihood(
    train: FloatArray, trusted: FloatArray
) -> tuple[FloatArray, int, float, float]:
    """α ≥ 0 of largest (1/m) Σ log(κ(z'_j)ᵀα) with (1/n) Σ κ(z_i)ᵀα = 1.

    With β_l = α_l · mean κ_l it is: minimise −mean log(Lβ) + Σβ over β ≥ 0, whose optimum has
    sum one. A primal–dual interior point on b unknowns.

    Returns:
        α (b,), the steps, the largest violation of the dual, and the gap.
    """
    means = train.mean(0)
    near = means > 1e-12  # a centre far from all training values cannot raise any weight
    every: FloatArray = trusted[:, near] / means[near]
    L: FloatArray = every[every.max(1, initial=0.0) > 0]
    alpha = np.zeros(len(means))
    if not L.size:
        return alpha, 0, math.inf, math.inf
    count = int(near.sum())
    ones: FloatArray = np.ones(count)
    point = _Interior(ones / len(ones), ones)
    steps = 0
    while steps < STEPS and not point.is_optimal(L):
        point = point.step(L)
        steps += 1
    beta = point.beta / point.beta.sum()
    slope = (L / (L @ beta)[:, None]).mean(0) - 1.0  # at most 0, and 0 where β is positive
    alpha[near] = beta / means[near]
    return alpha, steps, max(float(slope.max()), 0.0), float(beta @ np.abs(slope))


@dataclass(frozen=True)
class _Interior:
    """β > 0 and the multipliers z > 0 of β ≥ 0: gradient − z = 0 and βz = 0 at the optimum."""

    beta: FloatArray
    z: FloatArray

    def is_optimal(self, L: FloatArray) -> bool:
        missing = 1.0 - (L / (L @ self.beta)[:, None]).mean(0) - self.z
        return float(self.beta @ self.z) <= 1e-11 and float(np.abs(missing).max()) <= 1e-10

    def step(self, L: FloatArray) -> "_Interior":
        """Newton's step towards a tenth of the gap, 0.99 of the way to the boundary."""
        beta, z = self.beta, self.z
        scaled = L / (L @ beta)[:, None]
        hessian = scaled.T @ scaled / len(L) + np.diag(z / beta)
        wanted = 0.1 * float(beta @ z) / len(z) / beta
        d_beta = _solve(hessian, wanted - 1.0 + scaled.mean(0))
        d_z = wanted - z - z / beta * d_beta
        steepest = max(float((-d_beta / beta).max()), float((-d_z / z).max()))
        t = min(1.0, 0.99 / steepest) if steepest > 0 else 1.0
        return _Interior(beta + t * d_beta, z + t * d_z)


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    solution: Any = np.linalg.solve(matrix, right)
    return solution


def _match(
    problem: Problem,
    part: Features,
    alpha: FloatArray,
    z_train: Values,
    *,
    iterations: int,
    objective: float,
    dual_residual: float,
    error_bound: float,
    complementarity: float = 0.0,
    penalty: float = 0.0,
    status: str = "optimal",
) -> Match:
    weights = np.minimum(part.train @ alpha, problem.bound)
    return Match(
        weights=like(z_train, NUMPY.array(weights), problem.bound),
        status=status,
        iterations=iterations,
        gamma=problem.given_gamma * part.factor,
        rank=len(alpha),
        objective=objective,
        primal_residual=0.0,
        dual_residual=dual_residual,
        complementarity=complementarity,
        trace_error=0.0,
        error_bound=error_bound,
        penalty=penalty,
    )
