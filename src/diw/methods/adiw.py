"""ADIW: the match followed from visit to visit, a few gradient steps at a time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from diw.config import check_fields
from diw.matching.gram import FloatArray, clip, gram_of
from diw.matching.match import into_band, like
from diw.matching.problem import Problem, make_problem
from diw.methods.by_class import share_at_bound
from diw.methods.matched import EachBatch, LossValues, Trained
from diw.step.step import Step

WEIGHTS = "weights"
HALVINGS = 100  # of the projection


@dataclass(kw_only=True)
class Adiw(LossValues, Trained, EachBatch):
    """Matches losses by a few projected gradient steps from the weights of the last visit.

    The authors' successor of DIW (arXiv 2605.25499): instead of solving the match of every
    mini-batch, w ← Π(w − (rate/n)·((K + ωI)w − k)), starting from what the samples weighed when
    they were last seen. Cheaper than a solved match, and approximate; the steps of several epochs
    add up. The settings are those seen in public use.

    Attributes:
        gamma: Width of the kernel, as in `diw`; here the 50% quantile of the distances.
        steps: Gradient steps at each visit.
        rate: Their length; up to 2 the objective of the match never grows.
    """

    name: ClassVar[str] = "adiw"
    solvers: ClassVar[tuple[str, ...]] = ("pgd",)

    gamma: float | str | None = "quantile:0.5"
    solver: ClassVar[str] = "pgd"  # pyright: ignore[reportIncompatibleVariableOverride]
    steps: int = 1
    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "steps", least=1, of=self.name)
        check_fields(self, "rate", positive=True, of=self.name)

    def match(self, step: Step) -> tuple[Tensor, dict[str, float]]:
        """The weights (n,) after this visit's steps; they are kept for the next."""
        z_train, z_trusted = map(self.finite, self.values(step))
        (z_train, mine), (z_trusted, _) = step.world.gather(z_train), step.world.gather(z_trusted)
        start: FloatArray | None = None
        if step.train.index is not None:
            kept = step.memory.read(WEIGHTS, step.train.index).nan_to_num(1.0)
            start = step.world.gather(kept)[0].double().cpu().numpy()
        problem = make_problem(
            z_train.double().cpu().numpy(),
            z_trusted.double().cpu().numpy(),
            gamma=self.gamma,
            ridge=self.ridge,
            bound=self.bound,
            slack=self.slack,
        )
        moved = projected_steps(problem, start, self.steps, self.rate)
        weights = torch.as_tensor(like(z_train, moved, self.bound))[mine]
        if step.train.index is not None:
            step.memory.write(WEIGHTS, step.train.index, weights)
        return weights, {
            "share_bound": share_at_bound(weights, self.bound),
            "iterations": float(self.steps),
        }


def projected_steps(
    problem: Problem, start: FloatArray | None = None, steps: int = 1, rate: float = 1.0
) -> FloatArray:
    """Weights (n,) after some steps w ← Π(w − (rate/n)·((K + ωI)w − k)) on a matching problem.

    Π projects onto 0 ≤ w ≤ B, |mean(w) − 1| ≤ ε. The largest eigenvalue of K/n is at most one, so
    that at rates up to 2 the objective never grows. One step costs one product with K.

    Args:
        problem: From `diw.matching.problem.make_problem`.
        start: (n,) the weights of the last visit; None is one each.
        steps: How many.
        rate: Their length.
    """
    gram = gram_of(problem.z, problem.n, problem.gamma, problem.ridge)
    w = _projected(problem, np.ones(problem.n) if start is None else start)
    for _ in range(steps):
        gradient = gram.apply(w) + problem.ridge * w - gram.k
        w = _projected(problem, w - (rate / problem.n) * gradient)
    return into_band(problem, w)


def _projected(problem: Problem, w: FloatArray) -> FloatArray:
    """The nearest weights in [0, B] whose sum is in its band: clip(w + τ) for one number τ."""
    bound, inside = problem.bound, clip(w, problem.bound)
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
