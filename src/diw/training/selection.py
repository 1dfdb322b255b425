"""Keeping the best epoch's network, by the loss of trusted samples that are held out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from diw.data import Dataset
from diw.runs import Row
from diw.runs.selection import is_over, kept_epoch
from diw.step.probe import outputs_in_pieces


def brier(logits: Tensor, targets: Tensor | None) -> Tensor:
    """Squared distance of predicted probabilities from the truth, (n,), in [0, 2] (Brier 1950).

    As the cross entropy it is lowest for the true probabilities. But it is bounded: a few samples
    of which a network is wrongly sure do not outweigh all others, so it chooses epochs better.
    """
    assert targets is not None
    probabilities = logits.float().softmax(1)
    truth = torch.nn.functional.one_hot(targets, logits.shape[1])
    return (probabilities - truth).square().sum(1)


@dataclass
class Selection:
    """Watches the held-out trusted loss; see `diw.runs.selection` for the rule.

    Attributes:
        data: Trusted samples that are neither trained on nor matched with.
        patience: Epochs without a better one after which training ends.
    """

    data: Dataset
    patience: int
    losses: list[float] = field(default_factory=list[float])
    kept: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Parameters and buffers of the best epoch so far."""

    def after_epoch(self, model: nn.Module) -> Row:
        """Look at the network after an epoch, keep a copy if it is the best; the epoch's loss."""
        pieces = outputs_in_pieces(model, self.data)
        total = sum(float(brier(outputs.values, batch.targets).sum()) for batch, outputs in pieces)
        self.losses.append(total / len(self.data))
        if kept_epoch(self.losses) == len(self.losses):
            state = model.state_dict()
            self.kept = {name: tensor.detach().clone() for name, tensor in state.items()}
        return {"selection_loss": self.losses[-1]}

    @property
    def over(self) -> bool:
        """Whether training may end."""
        return is_over(self.losses, self.patience)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"losses": list(self.losses), "kept": self.kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.losses, self.kept = list(state["losses"]), dict(state["kept"])
