"""Logistic regression with a penalty, by Newton's method, and what a fit tells of others near by.

Features x are the columns of X (p, N), and their first entry is one: the intercept, which is free.
For labels y of 0 and 1

    minimise  Σ log(1 + exp(aᵀx_i)) − Σ y_i aᵀx_i + (λ/2) Σ_{l>0} a_l².
"""

import math
from dataclasses import dataclass

import numpy as np

from diw.matching.gram import FloatArray, Solve, positive_solver, weighted_gram

KEEP = 0.2  # of the residual: what a step may leave without a new Hessian
STEPS = 100


@dataclass(frozen=True)
class Fit:
    """The optimum for one λ."""

    penalty: float
    a: FloatArray
    """(p,) the intercept and the coefficients."""
    log_odds: FloatArray
    """(N,) aᵀx."""
    p: FloatArray
    """(N,) the probabilities of a label of one."""
    residual: float
    """The largest entry of the gradient, a label of one."""


def fit(X: FloatArray, y: FloatArray, penalty: float, start: FloatArray, tolerance: float) -> Fit:
    """Newton's method with step halving, from `start` (p,) to a residual of `tolerance`.

    The Hessian takes most of the time, so that one is kept as long as its steps converge.
    """
    ridge = np.full(len(start), penalty)
    ridge[0] = 0.0
    a, log_odds, ones = start, start @ X, max(float(y.sum()), 1.0)
    p, likelihoods = probability(log_odds, y)
    objective, last, solve = float(ridge @ (a * a)) / 2 - float(likelihoods.sum()), math.inf, None
    for _ in range(STEPS):
        gradient = X @ (p - y) + ridge * a
        residual = float(np.abs(gradient).max()) / ones
        if residual <= tolerance or 1e-8 >= residual > 0.5 * last:
            break  # the latter: rounding hides what is left to gain
        if solve is None or residual > KEEP * last:
            solve = _solver(X, p, ridge)
        step, t = -solve(gradient), 1.0
        slope = float(gradient @ step)
        while True:
            there, log_odds = a + t * step, (a + t * step) @ X
            p, likelihoods = probability(log_odds, y)
            value = float(ridge @ (there * there)) / 2 - float(likelihoods.sum())
            if value <= objective + 1e-4 * t * slope + 1e-15 * (len(y) + abs(objective)):
                break
            t *= 0.5
            if t < 1e-9:
                break
        a, objective, last = there, value, residual
    gradient = X @ (p - y) + ridge * a
    return Fit(penalty, a, log_odds, p, float(np.abs(gradient).max()) / ones)


def _solver(X: FloatArray, p: FloatArray, ridge: FloatArray) -> Solve:
    hessian = weighted_gram(X, p * (1.0 - p)) + np.diag(ridge)
    return positive_solver(hessian.copy)


def probability(log_odds: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1/(1 + exp(−x)) and the log-likelihood of y at log-odds x, without overflow."""
    t = np.tanh(0.5 * log_odds)
    return 0.5 + 0.5 * t, np.log(0.5 + 0.5 * np.abs(t)) + y * log_odds - np.maximum(log_odds, 0.0)


class Expansion:
    """The likelihood to second order around a fit.

    One Newton step from there leads close to the fit for another λ, and another to the log-odds of
    a value under the model fitted without it. Both need the Hessian plus λI for many λ, which its
    eigenvectors give at the cost of one. Features are centred by the weights p(1 − p), so that
    the intercept, which has no penalty, stands by itself.
    """

    def __init__(self, X: FloatArray, y: FloatArray, found: Fit):
        self.X, self.y, self.found = X[1:], y, found
        weights = found.p * (1.0 - found.p)
        self.total = max(float(weights.sum()), 1e-300)
        self.centre = self.X @ weights / self.total
        centred = self.X - self.centre[:, None]
        values, self.vectors = np.linalg.eigh(weighted_gram(centred, weights))
        self.values = np.maximum(values, 0.0)
        self.squares = (self.vectors.T @ centred) ** 2
        missing = found.p - y
        self.slope = self.X @ missing - missing.sum() * self.centre
        """Of the likelihood, along the coefficients."""

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
        lift = float((y - found.p).sum()) / self.total - float(step @ self.centre)
        log_odds = found.log_odds + step @ self.X + lift
        p = probability(log_odds, y)[0]
        h = 1.0 / self.total + damped @ self.squares
        left = log_odds + h * (p - y) / (1.0 - np.minimum(p * (1.0 - p) * h, 0.999))
        a = np.concatenate([[found.a[0] + lift], found.a[1:] + step])
        return a, probability(left, y)[1]
