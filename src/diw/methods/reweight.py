"""Learning to reweight (Ren et al. 2018): weights from gradients instead of matching."""

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from diw.alerts import warn
from diw.methods.base import Method
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
