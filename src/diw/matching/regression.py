"""Logistic regression with a penalty: its fit, fits for penalties near by, and values left out.

Features X are (p, N), one value per column, and their first row is one: the intercept, which
is free. For labels y of 0 and 1

    minimise  Σ log(1 + exp(aᵀx_i)) − Σ y_i aᵀx_i + (λ/2) Σ_{l>0} a_l²

by Newton's method.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diw.matching.backend import NUMPY, FloatArray, positive_solver, to_numpy, weighted_gram

ENOUGH = 0.5  # of the residual: what a step may leave without a new Hessian
COARSE = 16384  # values, up to twice as many, that stand for all in the first Hessian
RUN = 64  # of these that lie side by side
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

    The Hessian takes most of the time. Of many values the first is that of one in k, which is
    enough from afar. It is kept as long as its steps leave at most `ENOUGH` of the residual, and
    learns from them by the update of Broyden, Fletcher, Goldfarb and Shanno.
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
    every, model = max(1, len(y) // COARSE), None
    while True:
        residual = float(np.abs(here.gradient).max()) / ones
        if residual <= tolerance or taken == steps or 1e-8 >= residual > 0.5 * last:
            break  # the last: rounding hides what is left to gain
        if model is None or residual > ENOUGH * last:
            every = every if model is None else 1
            model = Hessian(one_in(every, X), one_in(every, here.p), ridge, every)
        direction = -model.solve(here.gradient)
        slope, t = float(here.gradient @ direction), 1.0
        there = look(here.a + direction)
        while there.objective > here.objective + 1e-4 * t * slope + rounding and t > 1e-9:
            t *= 0.5
            there = look(here.a + t * direction)
        model.learn(there.a - here.a, there.gradient - here.gradient)
        here, taken, last = there, taken + 1, residual
    objective = here.objective / len(y)
    return Fit(penalty, here.a, here.log_odds, here.p, objective, residual, taken)


def probability(log_odds: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1/(1 + exp(−x)) and the log-likelihood of y at log-odds x, without overflow."""
    t = np.tanh(0.5 * log_odds)
    return 0.5 + 0.5 * t, np.log(0.5 + 0.5 * np.abs(t)) + y * log_odds - np.maximum(log_odds, 0.0)


def one_in(every: int, values: FloatArray) -> FloatArray:
    """One in `every` along the last axis, in runs of `RUN`, which are faster to read."""
    if every == 1:
        return values
    shape, length = values.shape[:-1], every * RUN
    whole = values.shape[-1] // length * length
    return values[..., :whole].reshape(*shape, -1, length)[..., :RUN].reshape(*shape, -1)


class Hessian:
    """every · X diag(p(1 − p)) Xᵀ + diag(ridge), and what the steps since then tell of it."""

    def __init__(self, X: FloatArray, p: FloatArray, ridge: FloatArray, every: int):
        weights = NUMPY.array(every * p * (1.0 - p))
        gram = to_numpy(weighted_gram(NUMPY.array(X), weights))
        self.first = positive_solver(NUMPY, lambda: NUMPY.array(gram + np.diag(ridge)))
        self.seen: list[tuple[FloatArray, FloatArray]] = []

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
