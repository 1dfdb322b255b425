"""Weights that lower the trusted loss: by its gradient in each step, or learned from it.

What a step on each training sample would do to the trusted loss is a product of two gradients,
⟨∇ℓ_i, ∇L_trusted⟩. One directional derivative of the training losses gives all n of them.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from diw.alerts import warn
from diw.config import check_fields
from diw.methods.base import Method, Need
from diw.step.batch import Weights
from diw.step.step import Step


@dataclass(kw_only=True)
class Reweight(Method):
    """Weights samples by how much a step on them would lower the trusted loss.

    Ren et al. 2018, Eq. (12), taken at ε = 0: w_i = max(0, ⟨∇ℓ_i, ∇L_trusted⟩) up to
    scale. One gradient of the trusted loss and one forward-mode directional
    derivative of the training losses give all n weights.
    """

    name: ClassVar[str] = "reweight"

    _forward_mode: bool = field(default=True, init=False, repr=False)

    def weigh(self, step: Step) -> Weights:
        """max(0, ⟨∇ℓ_i, ∇L_trusted⟩), (n,); `forward_mode` says how it was computed."""
        aligned = self._aligned(step, step.trusted_gradient())
        weights = aligned.clamp(min=0).to(step.ones())
        return Weights(weights, metrics={"forward_mode": float(self._forward_mode)})

    def _aligned(self, step: Step, gradient: list[Tensor]) -> Tensor:
        if self._forward_mode:
            try:
                return step.loss_jvp(gradient)
            except (NotImplementedError, RuntimeError) as error:
                if "forward" not in str(error).lower():
                    raise
                self._forward_mode = False
                warn(
                    "reweight: the network has a layer without a forward-mode derivative; "
                    "the double backward is used, at about twice the cost"
                )
        return step.loss_jvp_by_double_backward(gradient)


@dataclass(kw_only=True)
class MwNet(Method):
    """Weighs each sample by a learned function of its loss.

    Shu et al. 2019: w_i = V(ℓ_i; Θ), V a perceptron with one hidden layer. In each step the network
    being trained is moved as the weights would move it, θ' = θ − (α/n) Σ w_i ∇ℓ_i, and Θ goes down
    the gradient of the trusted loss at θ',

        ∂L_trusted(θ')/∂Θ = −(α/n) Σ_i ⟨∇L_trusted(θ'), ∇ℓ_i⟩ ∂w_i/∂Θ.

    All n products come from one directional derivative of the training losses.

    Attributes:
        look_ahead: α, the length of the step that is tried: a learning rate on the mean loss.
        hidden: Width of the hidden layer.
        lr: Learning rate of V, by Adam.
    """

    name: ClassVar[str] = "mwnet"
    needs: ClassVar[frozenset[Need]] = frozenset({"one process"})

    look_ahead: float = 0.05
    hidden: int = 100
    lr: float = 1e-3

    _net: nn.Module = field(init=False, repr=False)
    _adam: torch.optim.Optimizer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, "look_ahead", "hidden", "lr", positive=True, of=self.name)
        with torch.random.fork_rng(devices=()):  # pyright: ignore[reportUnknownMemberType]
            torch.default_generator.manual_seed(0)
            layers = nn.Linear(1, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1), nn.Sigmoid()
            self._net = nn.Sequential(*layers).double()
        self._adam = torch.optim.Adam(self._net.parameters(), lr=self.lr, weight_decay=1e-4)

    def weigh(self, step: Step) -> Weights:
        """V(ℓ), (n,), after V has moved."""
        losses = step.train_detached.losses.detach().cpu().double().unsqueeze(1)
        with torch.enable_grad():
            tried = self._net(losses).squeeze(1)
        moved = step.moved(tried.detach().to(step.ones()) / len(tried), self.look_ahead)
        aligned = step.loss_jvp(step.trusted_gradient(moved)).cpu().double()
        self._adam.zero_grad()
        tried.backward(-self.look_ahead / len(tried) * aligned)
        self._adam.step()
        with torch.no_grad():
            return Weights(self._net(losses).squeeze(1).to(step.ones()))

    def state_dict(self) -> dict[str, Any]:
        """V, and what Adam keeps of it."""
        return deepcopy({"net": self._net.state_dict(), "adam": self._adam.state_dict()})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._net.load_state_dict(state["net"])
        self._adam.load_state_dict(deepcopy(state["adam"]))
