"""A multilayer perceptron, the default for tables."""

from itertools import pairwise
from math import prod
from typing import ClassVar, final

from torch import Tensor, nn


@final
class MLP(nn.Module):
    """Two hidden layers of ReLU units over the flattened input.

    Args:
        shape: The shape of one input.
        num_classes: k, the width of the output.
        hidden: The widths of the hidden layers.
    """

    mode_free: ClassVar[bool] = True
    """Training and evaluation are the same arithmetic, so one forward serves both."""

    def __init__(
        self, shape: tuple[int, ...], num_classes: int, hidden: tuple[int, ...] = (128, 128)
    ) -> None:
        super().__init__()
        widths = (prod(shape), *hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(widths[-1], num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (b, num_classes) of inputs (b, *shape)."""
        return self.classifier(self.features(inputs))
