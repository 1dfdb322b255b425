"""Ratios as kernel models: r(z) = Σ_l α_l k(z, c_l), α ≥ 0, with trusted values as centres c.

    "ulsif"  least squares (Kanamori, Hido & Sugiyama 2009): α = max(0, (H + λI)⁻¹ h) with
             H = (1/n) Σ κ(z_i)κ(z_i)ᵀ over training and h = (1/m) Σ κ(z'_j) over trusted values,
             κ(z) = (k(z, c_1), …). γ and λ minimise the squared error with one pair left out.
    "kliep"  likelihood (Sugiyama et al. 2008): maximise (1/m) Σ log r(z'_j) with mean r(z_i) = 1.
             γ is the widest whose likelihood of folds left out is not clearly below the best.

The weights are r at the training values, at most B. Unlike a match, the model also has
a ratio between the values.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diw.matching.backend import NUMPY, FloatArray, Values, like, to_numpy
from diw.matching.kernel import distances_for
from diw.matching.match import Match
from diw.matching.options import Options
from diw.matching.problem import Problem
from diw.seeding import numpy_generator

CENTRES = 50
CANDIDATES = 10_000  # trusted values, at most, that centres are chosen from
EQUAL = 1e-14  # the part of squared norms that a distance must exceed not to be rounding
LEFT_OUT = 1000  # pairs at most
FOLDS = 5
WIDTHS = tuple(10.0 ** (x / 2) for x in range(-2, 4))
"""Where least squares look for γ, in units of the median rule's."""
PENALTIES = tuple(10.0 ** (x / 2) for x in range(-6, 3))
"""Where λ is looked for."""
NARROWER = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Where the likelihood looks for γ."""
SURE = 2.5
"""Standard errors by which a narrower kernel must be likelier: 5% for four of them together."""
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
    centres: NDArray[np.int64]
    """(b,) which trusted values are the centres."""


def _features(problem: Problem, factors: Sequence[float]) -> Iterator[Features]:
    """κ for γ times each factor."""
    z, n = problem.z, problem.n
    z = z[:, None] if z.ndim == 1 else z
    centres = spread_out(to_numpy(z[n:]), CENTRES)
    gammas = [problem.gamma * factor for factor in factors]
    squares = to_numpy(distances_for(z, z[n:][centres], min(gammas), max(gammas)))
    for factor, gamma in zip(factors, gammas, strict=True):
        k = np.exp(-gamma * squares)
        yield Features(factor, k[:n], k[n:], centres)


def spread_out(values: FloatArray, count: int, candidates: int = CANDIDATES) -> NDArray[np.int64]:
    """Up to `count` of the values (m, d), each the furthest from those before it (Gonzalez 1985).

    The first is the one nearest to the mean. Fifty such centres do what three hundred drawn
    ones do: the ratio is largest at the rim, which a draw of fifty misses.
    """
    order = numpy_generator(0, "centres of a ratio").permutation(len(values))[:candidates]
    order.sort()
    some = values[order]
    some -= some.mean(0)
    norms = np.einsum("ij,ij->i", some, some) * (1.0 - EQUAL)
    chosen, distance = [int(norms.argmin())], np.full(len(some), math.inf)
    while len(chosen) < count:
        last = chosen[-1]
        np.minimum(distance, some @ (-2.0 * some[last]) + (norms + norms[last]), out=distance)
        furthest = int(distance.argmax())
        if not distance[furthest] > 0:
            break
        chosen.append(furthest)
    return np.sort(order[chosen])


def ulsif(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """Unconstrained least-squares importance fitting, γ and λ by leaving one out."""
    factors = WIDTHS if options.gamma is None else (1.0,)
    penalties = PENALTIES if options.penalty is None else (float(options.penalty),)
    part, penalty, least = None, penalties[0], math.inf
    for new in _features(problem, factors):
        errors = left_out_errors(new.train, new.trusted, penalties)
        best = int(np.argmin(errors))
        if part is None or errors[best] < least:
            part, penalty, least = new, penalties[best], errors[best]
    assert part is not None
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
        iterations=len(factors) * len(penalties),
        objective=objective + 0.5 * penalty * float(alpha @ alpha),
        dual_residual=float(np.abs(missing).max()) / max(float(h.max()), 1e-100),
        error_bound=math.sqrt(part.train.size) * float(np.linalg.norm(missing)) / penalty,
        penalty=penalty,
    )
    return match, True


def left_out_errors(
    train: FloatArray, trusted: FloatArray, penalties: Sequence[float]
) -> FloatArray:
    """½ mean r(z_i)² − mean r(z'_i), each with the model fitted without the pair (z_i, z'_i).

    Kanamori, Hido & Sugiyama 2009, Sec. 3: the matrix without a sample differs from the whole
    one by rank one, so that Sherman and Morrison's formula gives all models at once, and the
    eigenvectors of H give it for all penalties. `train` is (n, b), `trusted` (m, b); one error
    per penalty.
    """
    n, m = len(train), len(trusted)
    count = min(n, m, LEFT_OUT)
    if count < 2 or len(penalties) < 2:
        return np.zeros(len(penalties))
    generator = numpy_generator(0, "pairs left out")
    X = train[generator.permutation(n)[:count]]  # (count, b)
    Y = trusted[generator.permutation(m)[:count]]
    values, vectors = np.linalg.eigh(train.T @ train / n)
    u, v, h = X @ vectors, Y @ vectors, trusted.mean(0) @ vectors
    errors: list[float] = []
    for penalty in penalties:
        shrunk = 1.0 / (values + penalty * (n - 1) / n)
        room = n - u**2 @ shrunk
        missing = m * (u @ (shrunk * h)) - (u * v) @ shrunk
        rotated = (m * h - v + u * (missing / room)[:, None]) * shrunk
        alpha = np.maximum((n - 1) / (n * (m - 1)) * (rotated @ vectors.T), 0.0)
        at_train, at_trusted = (X * alpha).sum(1), (Y * alpha).sum(1)
        errors.append(float(0.5 * (at_train**2).mean() - at_trusted.mean()))
    return np.array(errors)


def kliep(problem: Problem, options: Options, z_train: Values) -> tuple[Match, bool]:
    """The Kullback–Leibler importance estimation procedure, γ by likelihood left out."""
    looked_for = options.gamma is None and len(problem.z) - problem.n >= FOLDS
    parts = list(_features(problem, NARROWER if looked_for else (1.0,)))
    part = _widest(parts) if looked_for else parts[0]
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


def _widest(parts: Sequence[Features]) -> Features:
    """The widest kernel that the likeliest one does not surpass by more than chance."""
    scores = [left_out_likelihoods(part) for part in parts]
    best = max(scores, key=lambda score: float(score.mean()))
    for part, score in zip(parts, scores, strict=True):
        lead = best - score
        if lead.mean() <= SURE * lead.std() / math.sqrt(len(lead)):
            return part
    return parts[-1]


def left_out_likelihoods(part: Features) -> FloatArray:
    """(m,) the log-likelihood of each trusted value under a model that did not see it.

    Nor is it a centre of that model: a kernel on the very value that is left out would
    make narrow ones look likely.
    """
    m = len(part.trusted)
    fold = numpy_generator(0, "folds").permutation(m) % FOLDS
    scores: FloatArray = np.zeros(m)
    for i in range(FOLDS):
        seen, others = fold != i, fold[part.centres] != i
        if not others.any():
            others = ~others
        alpha, *_ = largest_likelihood(
            part.train[:, others], part.trusted[np.ix_(seen, others)], tolerance=1e-5
        )
        held = part.trusted[np.ix_(~seen, others)] @ alpha
        scores[~seen] = np.log(np.maximum(held, 1e-300))
    return scores


def largest_likelihood(
    train: FloatArray, trusted: FloatArray, tolerance: float = 1e-11
) -> tuple[FloatArray, int, float, float]:
    """α ≥ 0 of largest (1/m) Σ log(κ(z'_j)ᵀα) with (1/n) Σ κ(z_i)ᵀα = 1.

    With β_l = α_l · mean κ_l it is: minimise −mean log(Lβ) + Σβ over β ≥ 0, whose optimum has
    sum one. A primal–dual interior point on b unknowns, which ends at a gap of `tolerance`.

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
    while steps < STEPS and not point.is_optimal(L, tolerance):
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

    def is_optimal(self, L: FloatArray, tolerance: float) -> bool:
        missing = 1.0 - (L / (L @ self.beta)[:, None]).mean(0) - self.z
        gap = float(self.beta @ self.z)
        return gap <= tolerance and float(np.abs(missing).max()) <= 10 * tolerance

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
