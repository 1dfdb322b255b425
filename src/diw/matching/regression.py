"""Logistic regression with a penalty: its fit, fits for penalties near by, and values left out.

Features X are (p, N), one value per column, and their first row is one: the intercept, which
is free. For labels y of 0 and 1

    minimise  Σ log(1 + exp(aᵀx_i)) − Σ y_i aᵀx_i + (λ/2) Σ_{l>0} a_l²

by Newton's method.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, positive_solver, to_numpy, weighted_gram

ENOUGH = 0.1  # of the residual: what a step may leave without a new Hessian
PART = 4096  # values at once


@dataclass(frozen=True)
class Fit:
    """The optimum for features X (p, N) and one λ."""

    penalty: float
    a: FloatArray
    """(p,) the intercept and the coefficients."""
    log_odds: FloatArray
    """(N,) aᵀX."""
    p: FloatArray
    """(N,) the probabilities of a label of one."""
    objective: float
    """The penalised likelihood, negative, a value."""
    residual: float
    """The largest entry of the gradient, a label of one."""
    steps: int


class _Look(NamedTuple):
    """What Newton's method sees at one place."""

    a: FloatArray
    log_odds: FloatArray
    p: FloatArray
    objective: float
    gradient: FloatArray


def fit(
    X: FloatArray, y: FloatArray, penalty: float, start: FloatArray, tolerance: float, steps: int
) -> Fit:
    """Newton's method with step halving, from `start` (p,) to a residual of `tolerance`.

    The Hessian, which takes most of the time, is only computed anew where the last one's step
    left more than `ENOUGH` of the residual.
    """
    ridge = np.full(len(X), penalty)
    ridge[0] = 0.0

    def look(a: FloatArray) -> _Look:
        """Everything at `a` in one pass over the features."""
        objective, gradient = 0.5 * float(ridge @ (a * a)), ridge * a
        log_odds, p = np.empty(len(y)), np.empty(len(y))
        for part in parts(len(y)):
            log_odds[part] = a @ X[:, part]
            p[part], likelihood = probability(log_odds[part], y[part])
            objective -= float(likelihood.sum())
            gradient += X[:, part] @ (p[part] - y[part])
        return _Look(a, log_odds, p, objective, gradient)

    here, taken, last = look(start), 0, math.inf
    ones, rounding = float(y.sum()), 1e-15 * (len(y) + abs(here.objective))
    solve: Callable[[FloatArray], FloatArray] | None = None
    while True:
        residual = float(np.abs(here.gradient).max()) / ones
        if residual <= tolerance or taken == steps or 1e-8 >= residual > 0.5 * last:
            break  # the last: rounding hides what is left to gain
        if solve is None or residual > ENOUGH * last:
            solve = _hessian_solver(X, here.p, ridge)
        direction = -solve(here.gradient)
        slope, t = float(here.gradient @ direction), 1.0
        there = look(here.a + direction)
        while there.objective > here.objective + 1e-4 * t * slope + rounding and t > 1e-9:
            t *= 0.5
            there = look(here.a + t * direction)
        here, taken, last = there, taken + 1, residual
    objective = here.objective / len(y)
    return Fit(penalty, here.a, here.log_odds, here.p, objective, residual, taken)


def probability(log_odds: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1/(1 + exp(−x)) and the log-likelihood of y at log-odds x, without overflow."""
    t = np.tanh(0.5 * log_odds)
    return 0.5 + 0.5 * t, np.log(0.5 + 0.5 * np.abs(t)) + y * log_odds - np.maximum(log_odds, 0.0)


def _hessian_solver(
    X: FloatArray, p: FloatArray, ridge: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """A solver for the Hessian X diag(p(1 − p)) Xᵀ + diag(ridge)."""
    gram = to_numpy(weighted_gram(NUMPY.array(X), NUMPY.array(p * (1.0 - p))))
    solve = positive_solver(NUMPY, lambda: NUMPY.array(gram + np.diag(ridge)))
    return lambda right: to_numpy(solve(NUMPY.array(right)))


def parts(size: int) -> Iterator[slice]:
    """Parts of `size` values that stay in the processor's cache, which is what takes time."""
    return (slice(i, min(i + PART, size)) for i in range(0, size, PART))


class Expansion:
    """The likelihood to second order around a fit.

    One Newton step from there leads close to the fit for another λ, and another to the log-odds of
    a value under the model fitted without it. Both need the Hessian plus λI for many λ, which its
    eigenvectors give at the cost of one. Features are centred by the weights p(1 − p), so that
    the intercept, which has no penalty, stands by itself.
    """

    def __init__(self, X: FloatArray, y: FloatArray, found: Fit):
        self.y, self.found = y, found
        weights = found.p * (1.0 - found.p)
        self.total = max(float(weights.sum()), 1e-300)
        self.centre = X[1:] @ weights / self.total
        self.Z = X[1:] - self.centre[:, None]
        scaled = self.Z * np.sqrt(weights)
        values, self.vectors = np.linalg.eigh(scaled @ scaled.T)
        self.values = np.maximum(values, 0.0)
        self.squares = np.matmul(self.vectors.T, self.Z, out=scaled)  # in its memory
        self.squares *= self.squares
        self.slope = self.Z @ (found.p - y)  # of the likelihood, along the coefficients

    def near(self, penalty: float) -> tuple[FloatArray, FloatArray]:
        """The fit for another λ, and the log-likelihood of each value left out, to first order.

        Without value i its log-odds change by h(p − y)/(1 − p(1 − p)h), where h = xᵀH⁻¹x and H
        is the Hessian (Pregibon 1981).

        Returns:
            (p,) the intercept and the coefficients, and (N,) the log-likelihoods.
        """
        y, found, damped = self.y, self.found, 1.0 / (self.values + penalty)
        gradient = self.slope + penalty * found.a[1:]
        step = -self.vectors @ (damped * (self.vectors.T @ gradient))
        lift = float((y - found.p).sum()) / self.total
        log_odds = found.log_odds + (lift + step @ self.Z)
        p = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        h = 1.0 / self.total + damped @ self.squares
        left = log_odds + h * (p - y) / (1.0 - np.minimum(p * (1.0 - p) * h, 0.999))
        a = np.concatenate([[found.a[0] + lift - step @ self.centre], found.a[1:] + step])
        return a, probability(left, y)[1]
