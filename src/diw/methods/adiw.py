"""ADIW: the match followed from visit to visit, a few gradient steps at a time."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from diw.errors import UsageError
from diw.matching import pgd
from diw.matching.options import Solver
from diw.methods.by_class import share_at_bound
from diw.methods.dynamic import EachBatch
from diw.methods.matching import LossValues, Together, Trained
from diw.step.step import Step

WEIGHTS = "weights"


@dataclass(kw_only=True)
class Adiw(Together, LossValues, Trained, EachBatch):
    """Matches losses by a few projected gradient steps from the weights of the last visit.

    The authors' successor of DIW (arXiv 2605.25499): instead of solving the match of every
    mini-batch, w ← Π(w − (rate/n)·((K + ωI)w − k)), starting from what the samples weighed when
    they were last seen. Cheaper than a solved match, and approximate; the steps of several epochs
    add up. The settings are those seen in public use.
    """

    name: ClassVar[str] = "adiw"

    solver: Solver = "pgd"
    gamma: float | str | None = "quantile:0.5"
    """Width of the kernel, as in `diw`; here the 50% quantile of the distances."""
    steps: int = 1
    """Gradient steps at each visit."""
    rate: float = 1.0
    """Their length; up to 2 the objective of the match never grows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver != "pgd":
            raise UsageError(f"{self.name}.solver: is pgd; {self.solver} is a solver of diw")
        if self.steps < 1 or not self.rate > 0:
            raise UsageError(f"{self.name}.steps and rate: must be positive")

    def _match(self, step: Step) -> tuple[Tensor, dict[str, float]]:
        """The weights (n,) after this visit's steps; they are kept for the next."""
        seen_train, seen_trusted = self.see(step)
        z_train, z_trusted = seen_train.losses, seen_trusted.losses
        self.refuse_wrong_inputs(step.train, z_train, "training")
        self.refuse_wrong_inputs(step.trusted, z_trusted, "trusted")
        z_train, z_trusted = self._finite(z_train), self._finite(z_trusted)
        (z_train, mine), (z_trusted, _) = step.world.gather(z_train), step.world.gather(z_trusted)
        start: Tensor | None = None
        if step.train.index is not None:
            kept = step.memory.read(WEIGHTS, step.train.index).nan_to_num(1.0)
            start = step.world.gather(kept)[0].double()
        match = pgd(
            z_train,
            z_trusted,
            start=start,
            steps=self.steps,
            rate=self.rate,
            gamma=self.gamma,
            bound=self.bound,
            slack=self.slack,
            ridge=self.ridge,
        )
        weights = torch.as_tensor(match.weights)[mine]
        if step.train.index is not None:
            step.memory.write(WEIGHTS, step.train.index, weights)
        return weights, {
            "share_bound": share_at_bound(weights, self.bound),
            "iterations": float(match.iterations),
        }
