"""Dynamic importance weighting: weights re-estimated in every mini-batch (the paper's methods)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from diw.batch import Weights, first_tensor
from diw.errors import UsageError
from diw.matching import kmm
from diw.step import Step
from diw.transforms import LossValue, Transform
from diw.weighting.base import Weighting, normalised


@dataclass(kw_only=True)
class DynamicMatching(Weighting):
    """Kernel mean matching of each mini-batch to a trusted one (Fang et al. 2020, Algorithm 1)."""

    gamma: float | str | None = None
    """Width of the kernel exp(−γ‖z−z'‖²): a number, a rule such as "quantile:0.01" (the paper's
    1% for label noise) or "median", or None for the rule of the transformation."""
    bound: float = 50.0
    """B, the largest weight the match may give (the paper: 50, 10 or 100)."""
    slack: float | None = None
    """ε, how far the mean weight may be from one; None is (√n−1)/√n."""
    ridge: float = 1e-5
    """ω, added to the kernel's diagonal."""
    momentum: float = 0.0
    """Share of a sample's weight of the last epoch in its new one (the paper's footnote 1)."""
    warmup: int = 1
    """Epochs at the start without weights."""

    transform: ClassVar[Transform]

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise UsageError(f"{self.name}.momentum: must be in [0, 1), not {self.momentum}")
        if self.warmup < 0:
            raise UsageError(f"{self.name}.warmup: must not be negative, and is {self.warmup}")

    def weigh(self, step: Step) -> Weights:
        """The matched weights, (n,), blended with the last epoch's where `momentum` asks for it."""
        if step.epoch <= self.warmup:
            device = first_tensor(step.train.inputs).device
            return Weights(torch.ones(len(step.train), device=device))
        weights, diagnostics = self.match(step)
        if self.momentum:
            weights = self._blend(step, normalised(weights))
        return Weights(weights, diagnostics=diagnostics)

    def match(self, step: Step) -> tuple[Tensor, dict[str, float]]:
        """The weights of one matching problem over the whole batch, and what the solver says."""
        z_train = self.transform(step.train, step.probe_train)
        z_trusted = self.transform(step.trusted, step.probe_trusted)
        match = kmm(
            z_train,
            z_trusted,
            gamma=self.gamma,
            bound=self.bound,
            slack=self.slack,
            ridge=self.ridge,
        )
        weights = match.weights
        assert isinstance(weights, Tensor)
        at_bound = float((weights >= self.bound * (1 - 1e-9)).double().mean())
        return weights, {"share_bound": at_bound, "iterations": float(match.iterations)}

    def _blend(self, step: Step, new: Tensor) -> Tensor:
        old = step.memory.read("weights", step.train.index).to(new)
        blended = torch.where(old.isnan(), new, self.momentum * old + (1 - self.momentum) * new)
        step.memory.write("weights", step.train.index, blended)
        return blended


@dataclass(kw_only=True)
class DIW(DynamicMatching):
    """Matches the loss values of the network being trained itself; what the paper calls DIW.

    Fang et al. 2020, Algorithm 1 with π = ℓ: the network starts from its random
    initialisation, its first epoch is unweighted.
    """

    name: ClassVar[str] = "diw"
    aliases: ClassVar[tuple[str, ...]] = ("diw2-l",)
    transform: ClassVar[Transform] = LossValue()
