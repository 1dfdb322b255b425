"""One training step as a weighting method sees it."""

from diw.step.batch import Batch, Criterion, Outputs, Weights
from diw.step.criteria import cross_entropy
from diw.step.look import Tap, outputs_in_pieces
from diw.step.step import Horizon, Step

__all__ = [
    "Batch",
    "Criterion",
    "Horizon",
    "Outputs",
    "Step",
    "Tap",
    "Weights",
    "cross_entropy",
    "outputs_in_pieces",
]
