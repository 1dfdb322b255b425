"""Networks by name: the paper's two, one for tables, and one's own.

Every one of them ends in a linear layer `classifier` over `features`, which is
what hidden-output methods tap.
"""

from diw.models.factory import MODELS, auto_model, default_model, make_model
from diw.models.lenet import LeNet5
from diw.models.mlp import MLP
from diw.models.networks import ResNet32

__all__ = [
    "MLP",
    "MODELS",
    "LeNet5",
    "ResNet32",
    "auto_model",
    "default_model",
    "make_model",
]
