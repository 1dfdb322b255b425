"""Logistic regression with a penalty: its fit, fits for penalties near by, and values left out.

Features x are (p,), and their first entry is one: the intercept, which is free. For labels y
of 0 and 1

    minimise  Σ log(1 + exp(aᵀx_i)) − Σ y_i aᵀx_i + (λ/2) Σ_{l>0} a_l²

by Newton's method.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, Solve, positive_solver, to_numpy
from diw.matching.features import Features, parts

ENOUGH = 0.5  # of the residual: what a step may leave without a new Hessian
SPARSE = 4  # one in so many values, or more of them, make the first Hessian
ENTRIES, EACH = 1 << 17, 40  # as long as these are so many numbers, and so many a coefficient


@dataclass(frozen=True)
class Fit:
    """The optimum for features of N values and one λ."""

    penalty: float
    a: FloatArray
    """(p,) the intercept and the coefficients."""
    log_odds: FloatArray
    """(N,) aᵀx."""
    p: FloatArray
    """(N,) the probabilities of a label of one."""
    objective: float
    """The penalised likelihood, negative, a value."""
    residual: float
    """The largest entry of the gradient, a label of one."""
    steps: int
    model: "Hessian | None" = None
    """The Hessian, where it is known."""


class _Look(NamedTuple):
    """What Newton's method sees at one place."""

    a: FloatArray
    log_odds: FloatArray
    p: FloatArray
    objective: float
    gradient: FloatArray


def fit(
    X: Features,
    y: FloatArray,
    penalty: float,
    start: FloatArray,
    tolerance: float,
    steps: int,
    model: "Hessian | None" = None,
) -> Fit:
    """Newton's method with step halving, from `start` (p,) to a residual of `tolerance`.

    The Hessian takes most of the time. The first is `model`, where a fit near by has left one;
    else, of many values, that of one in k, which is enough from afar. It is kept as long as its
    steps leave at most `ENOUGH` of the residual, and learns from them by the update of Broyden,
    Fletcher, Goldfarb and Shanno.
    """
    ridge = np.full(len(start), penalty)
    ridge[0] = 0.0

    def look(a: FloatArray) -> _Look:
        """Everything at `a` in one pass over the values, in memory that is no longer needed."""
        objective, gradient = 0.5 * float(ridge @ (a * a)), ridge * a
        log_odds, p = spare.pop()
        for part in parts(len(y)):
            log_odds[part] = X.log_odds(a, part)
            p[part], likelihood = probability(log_odds[part], y[part])
            objective -= float(likelihood.sum())
            gradient += X.total(p[part] - y[part], part)
        return _Look(a, log_odds, p, objective, gradient)

    spare = [(np.empty(len(y)), np.empty(len(y))) for _ in range(2)]
    here, taken, last = look(start), 0, math.inf
    ones, rounding = float(y.sum()), 1e-15 * (len(y) + abs(here.objective))
    every = max(1, min(SPARSE, len(y) // enough(len(start))))
    while True:
        residual = float(np.abs(here.gradient).max()) / ones
        if residual <= tolerance or taken == steps or 1e-8 >= residual > 0.5 * last:
            break  # the last: rounding hides what is left to gain
        if model is None or residual > ENOUGH * last:
            every = every if model is None else 1
            gram = X.gram(here.p * (1.0 - here.p), every) + np.diag(ridge)
            model = Hessian(positive_solver(NUMPY, lambda gram=gram: NUMPY.array(gram.copy())))
        direction = -model.solve(here.gradient)
        slope, t = float(here.gradient @ direction), 1.0
        there = look(here.a + direction)
        while there.objective > here.objective + 1e-4 * t * slope + rounding and t > 1e-9:
            t *= 0.5
            spare.append((there.log_odds, there.p))
            there = look(here.a + t * direction)
        spare.append((here.log_odds, here.p))
        model.learn(there.a - here.a, there.gradient - here.gradient)
        here, taken, last = there, taken + 1, residual
    objective = here.objective / len(y)
    return Fit(penalty, here.a, here.log_odds, here.p, objective, residual, taken)


def enough(p: int) -> int:
    """Values for a Hessian of p coefficients: with less it is poor, or takes no time anyway."""
    return max(ENTRIES // p, EACH * p)


def probability(log_odds: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1/(1 + exp(−x)) and the log-likelihood of y at log-odds x, without overflow."""
    t = np.tanh(0.5 * log_odds)
    return 0.5 + 0.5 * t, np.log(0.5 + 0.5 * np.abs(t)) + y * log_odds - np.maximum(log_odds, 0.0)


class Hessian:
    """One that can be solved with, and what the steps since then tell of it."""

    def __init__(self, first: Solve):
        self.first, self.seen = first, list[tuple[FloatArray, FloatArray]]()

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Take in how a step (p,) changed the gradient."""
        if float(step @ change) > 0:
            self.seen.append((step, change))

    def solve(self, right: FloatArray) -> FloatArray:
        """H⁻¹·right, (p,), by the two loops of Nocedal (1980)."""
        right, shares = right.copy(), list[float]()
        for step, change in reversed(self.seen):
            shares.append(float(step @ right) / float(step @ change))
            right -= shares[-1] * change
        found = to_numpy(self.first(NUMPY.array(right)))
        for step, change in self.seen:
            found += (shares.pop() - float(change @ found) / float(step @ change)) * step
        return found


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
        scaled = self.X - self.centre[:, None]
        scaled *= np.sqrt(weights)
        values, self.vectors = np.linalg.eigh(scaled @ scaled.T)
        self.values = np.maximum(values, 0.0)
        self.squares = np.matmul(self.vectors.T, self.X, out=scaled)  # in its memory
        self.squares -= (self.vectors.T @ self.centre)[:, None]
        self.squares *= self.squares
        missing = found.p - y
        self.slope = self.X @ missing - missing.sum() * self.centre
        """Of the likelihood, along the coefficients."""

    def hessian(self, penalty: float) -> "Hessian":
        """That of the fit, with another λ."""
        turned = self.vectors / (self.values + penalty)

        def solve(right: Any) -> Any:
            along = turned @ (self.vectors.T @ (right[1:] - right[0] * self.centre))
            return np.concatenate([[right[0] / self.total - along @ self.centre], along])

        return Hessian(solve)

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
        log_odds = found.log_odds + step @ self.X
        log_odds += lift - step @ self.centre
        p = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        h = 1.0 / self.total + damped @ self.squares
        left = log_odds + h * (p - y) / (1.0 - np.minimum(p * (1.0 - p) * h, 0.999))
        a = np.concatenate([[found.a[0] + lift - step @ self.centre], found.a[1:] + step])
        return a, probability(left, y)[1]
