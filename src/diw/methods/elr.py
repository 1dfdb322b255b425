"""Early-learning regularisation (Liu et al. 2020): a reference that needs no trusted samples."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from diw.config import check_fields
from diw.methods.base import Method, Need
from diw.step.batch import Batch, Criterion, Outputs, Weights
from diw.step.criteria import logits_of
from diw.step.step import Step

LEAST = 1e-4
"""Probabilities are kept this far from 0 and 1."""
PREDICTIONS = "predictions"


@dataclass(kw_only=True)
class Elr(Method):
    """Holds the network to what it said early, before it learned wrong labels by heart.

    Liu et al. 2020, Eq. (6): ℓ = −log p_ỹ + λ log(1 − ⟨p, t⟩), where t is a moving average of the
    sample's own predictions, t ← β t + (1 − β) p. All weights are one, and the trusted samples are
    not used: what a method gains over this, it gains from them.

    Attributes:
        strength: λ, how strongly the network is held.
        memory: β, the share of the old average in the new one.
    """

    name: ClassVar[str] = "elr"
    needs: ClassVar[frozenset[Need]] = frozenset({"index"})

    strength: float = 3.0
    memory: float = 0.7

    _averages: Tensor = field(default_factory=lambda: torch.empty(0, 0), init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, "strength", least=0, of=self.name)
        check_fields(self, "memory", least=0, below=1, of=self.name)

    def weigh(self, step: Step) -> Weights:
        """Ones, (n,), after the averages of the batch have moved; they start from zero."""
        p = _probabilities(step.train_detached).cpu().float()
        now = p / p.sum(dim=1, keepdim=True)
        old = step.memory.read(PREDICTIONS, step.train.index, like=now).nan_to_num(0.0)
        self._averages = self.memory * old + (1 - self.memory) * now
        step.memory.write(PREDICTIONS, step.train.index, self._averages)
        return Weights(step.ones())

    def losses(
        self, outputs: Outputs, batch: Batch, targets: Tensor | None, criterion: Criterion
    ) -> Tensor:
        """The regularised losses (n,)."""
        p = _probabilities(outputs)
        agreement = (p * self._averages.to(p)).sum(dim=1)
        plain = super().losses(outputs, batch, targets, criterion)
        return plain + self.strength * (1 - agreement).clamp(min=LEAST).log()


def _probabilities(outputs: Outputs) -> Tensor:
    """(n, k), not quite 0 or 1."""
    return logits_of(outputs.values).softmax(dim=1).clamp(LEAST, 1 - LEAST)
