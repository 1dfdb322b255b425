"""Dynamic importance weighting: weights re-estimated in every mini-batch (the paper's methods)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from diw.errors import UsageError
from diw.methods.base import State, Task, normalised
from diw.methods.by_class import Classwise, share_at_bound
from diw.methods.matching import Matching
from diw.step.batch import Weights
from diw.step.step import Step


@dataclass(kw_only=True)
class EachBatch(Matching):
    """When: each mini-batch is matched to a trusted one (Fang et al. 2020, Algorithm 1)."""

    momentum: float = 0.0
    """Share of a sample's weight of the last epoch in its new one (the paper's footnote 1)."""
    noise: float = 0.0
    """Deviation of a random factor max(0, 1 + noise · N(0, 1)) on each weight, drawn anew for each
    sample in each epoch (in each step, where the loop gives no epochs or no index): a regulariser,
    which the early end of the authors' solver amounts to."""
    normalise: bool = True
    """Bring the weights of a mini-batch to mean one; False leaves their mean where the match has
    it, in 1 ± `slack`, as the authors' released example does."""
    warmup: int = 0
    """Epochs at the start without weights; a loop that never says `start_epoch` has none."""
    warmup_steps: int = 0
    """Optimiser steps at the start without weights, for a loop that has no epochs."""

    _classwise: Classwise | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise UsageError(f"{self.name}.momentum: must be in [0, 1), not {self.momentum}")
        for name in ("noise", "warmup", "warmup_steps"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"{self.name}.{name}: must not be negative, and is {getattr(self, name)}"
                )

    def prepare(self, task: Task) -> State | None:
        """Count the classes, if each is matched alone, and get the network ready."""
        self._classwise = Classwise.of(task, self.name) if self.by_class else None
        return self.begin(task)

    def weigh(self, step: Step) -> Weights:
        """The matched weights, (n,), blended with the last epoch's where `momentum` asks for it."""
        if self._classwise is not None:
            self._classwise.see(step.train)
        if 1 <= step.epoch <= self.warmup or step.t < self.warmup_steps:
            return Weights(step.ones())
        weights, diagnostics = self._match(step)
        weights = weights.to(step.ones())
        if self.noise:
            factors = 1 + self.noise * step.normal("noise on weights")
            weights = weights * factors.clamp(min=0).to(weights)
        if self.momentum:
            every, mine = step.world.gather(weights)
            weights = self._blend(step, normalised(every)[mine] if self.normalise else weights)
        return Weights(weights, diagnostics=diagnostics, normalise=self.normalise)

    def _match(self, step: Step) -> tuple[Tensor, dict[str, float]]:
        """The matched weights of one step, (n,), and what the solver says."""
        seen_train, seen_trusted = self.see(step)
        z_train = self.transform(step.train, seen_train)
        z_trusted = self.transform(step.trusted, seen_trusted)
        self.refuse_wrong_inputs(step.train, z_train, "training")
        self.refuse_wrong_inputs(step.trusted, z_trusted, "trusted")
        if self._classwise is not None:
            if step.world.size > 1:
                raise UsageError(
                    f"world: {self.name} matches each class alone, which one process can only do "
                    "for its own batch; leave world out, or use diw"
                )
            return self._classwise.match(
                step,
                z_train,
                z_trusted,
                solve=self.solve,
                bound=self.bound,
                scale=self.scaled_by_class,
            )
        (z_train, mine), (z_trusted, _) = step.world.gather(z_train), step.world.gather(z_trusted)
        match = self.solve([(z_train, z_trusted)])[0]
        return match.weights[mine], {
            "share_bound": share_at_bound(match.weights, self.bound),
            "iterations": float(match.iterations),
        }

    def _blend(self, step: Step, new: Tensor) -> Tensor:
        old = step.memory.read("weights", step.train.index).to(new)
        blended = torch.where(old.isnan(), new, self.momentum * old + (1 - self.momentum) * new)
        step.memory.write("weights", step.train.index, blended)
        return blended

    def state_dict(self) -> dict[str, Any]:
        """Class counts and trusted values, where classes are matched alone."""
        return {"classwise": None if self._classwise is None else self._classwise.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        kept = state["classwise"]
        self._classwise = None if kept is None else Classwise.from_state_dict(kept, self.name)
