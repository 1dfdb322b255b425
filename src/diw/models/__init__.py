"""Networks by name: the paper's two, one for tables, and your own."""

from diw.models.factory import MODELS, default_model, make_model
from diw.models.networks import MLP, LeNet5, ResNet32

__all__ = [
    "MLP",
    "MODELS",
    "LeNet5",
    "ResNet32",
    "default_model",
    "make_model",
]
