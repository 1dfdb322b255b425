"""Early-learning regularisation (Liu et al. 2020): a reference that needs no trusted samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from diw.errors import UsageError
from diw.methods.base import Method
from diw.step.batch import Batch, Criterion, Weights
from diw.step.criteria import logits_of
from diw.step.step import Step

LEAST = 1e-4
"""Probabilities are kept this far from 0 and 1."""


@dataclass(kw_only=True)
class Elr(Method):
    """Holds the network to what it said early, before it learned wrong labels by heart.

    Liu et al. 2020, Eq. (6): ℓ = −log p_ỹ + λ log(1 − ⟨p, t⟩), where t is a moving average of the
    sample's own predictions, t ← β t + (1 − β) p. All weights are one, and the trusted samples are
    not used: what a method gains over this, it gains from them.
    """

    name: ClassVar[str] = "elr"

    strength: float = 3.0
    """λ, how strongly the network is held."""
    memory: float = 0.7
    """β, the share of the old average in the new one."""

    _targets: Tensor = field(default_factory=lambda: torch.empty(0, 0), init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.strength >= 0:
            raise UsageError(f"elr.strength: must not be negative, and is {self.strength}")
        if not 0 <= self.memory < 1:
            raise UsageError(f"elr.memory: must be in [0, 1), and is {self.memory}")

    def weigh(self, step: Step) -> Weights:
        """Ones, (n,)."""
        if step.world.size > 1:
            raise UsageError(
                "world: elr remembers the samples of one process; leave world out, or use remember"
            )
        return Weights(step.ones())

    def losses(self, values: Any, batch: Batch, criterion: Criterion) -> Tensor:
        """The regularised losses (n,); the plain ones where nothing is trained."""
        plain = super().losses(values, batch, criterion)
        if not torch.is_grad_enabled():
            return plain
        if batch.index is None:
            raise UsageError(
                "batch: elr remembers each sample; yield (inputs, targets, index), index being "
                "the sample's place in the training set"
            )
        p = logits_of(values).softmax(dim=1).clamp(LEAST, 1 - LEAST)
        agreement = (p * self._moved(batch.index.cpu(), p).to(p)).sum(dim=1)
        return plain + self.strength * (1 - agreement).clamp(min=LEAST).log()

    def _moved(self, index: Tensor, p: Tensor) -> Tensor:
        """(n, k) the samples' averages after this visit; one not seen before starts from zero."""
        now = p.detach().cpu().float()
        now = now / now.sum(dim=1, keepdim=True)
        missing = int(index.max()) + 1 - len(self._targets)
        if missing > 0:
            kept = self._targets.reshape(-1, p.shape[1])
            self._targets = torch.cat([kept, torch.zeros(missing, p.shape[1])])
        self._targets[index] = self.memory * self._targets[index] + (1 - self.memory) * now
        return self._targets[index]

    def state_dict(self) -> dict[str, Any]:
        """The averages."""
        return {"targets": self._targets.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._targets = state["targets"].cpu().clone()
