"""One training step as a weighting method sees it."""

from diw.step.batch import Batch, Criterion, LossFunction, Outputs, Weights
from diw.step.criteria import cross_entropy
from diw.step.probe import Tap, outputs_in_pieces
from diw.step.step import Step

__all__ = [
    "Batch",
    "Criterion",
    "LossFunction",
    "Outputs",
    "Step",
    "Tap",
    "Weights",
    "cross_entropy",
    "outputs_in_pieces",
]
