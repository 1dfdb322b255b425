"""Projected gradient steps: weights that follow the match from visit to visit.

The estimator of ADIW: the weights of a sample are kept, and each visit moves them by
a few steps down the gradient of the matching problem,

    w ← Π(w − (rate/n)·((K + ωI)w − k)),

where Π projects onto 0 ≤ w ≤ B, |mean(w) − 1| ≤ ε. The largest eigenvalue of K/n is at most one, so
that at rates up to 2 the objective never grows. One step costs one product with K.
"""

from diw.matching.backend import Array
from diw.matching.gram import Gram
from diw.matching.match import Solution
from diw.matching.options import Options
from diw.matching.problem import Problem

HALVINGS = 100


def projected_gradient(
    problem: Problem, gram: Gram, options: Options, start: Array | None = None
) -> Solution:
    """`options.steps` steps from `start` (n,), by default from equal weights."""
    w = problem.xp.full(problem.n, 1.0) if start is None else start
    w = _projected(problem, w)
    for _ in range(options.steps):
        gradient = gram.apply(w) + problem.ridge * w - gram.k
        w = _projected(problem, w - (options.rate / problem.n) * gradient)
    gradient = gram.apply(w) + problem.ridge * w - gram.k
    floor = problem.xp.floor
    lower, upper = floor(gradient, 0.0), floor(-gradient, 0.0)  # multipliers of the two bounds
    count = f"{options.steps} step" + ("s" if options.steps > 1 else "")
    return Solution(
        weights=w,
        residual=0.0 * w,
        multiplier=0.0,
        iterations=options.steps,
        gap=float(lower @ w) + float(upper @ (problem.bound - w)),
        status=f"stopped after {count}",
    )


def _projected(problem: Problem, w: Array) -> Array:
    """The nearest weights in [0, B] whose sum is in its band: clip(w + τ) for one number τ."""
    clip, bound = problem.xp.clip, problem.bound
    inside = clip(w, bound)
    total = float(inside.sum())
    if problem.low <= total <= problem.high:
        return inside
    end = problem.low if total < problem.low else problem.high
    low, high = -float(w.max()), bound - float(w.min())  # all weights at 0, all at B
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if float(clip(w + middle, bound).sum()) < end:
            low = middle
        else:
            high = middle
    return clip(w + high, bound)
