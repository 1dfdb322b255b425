"""One training step as a weighting method sees it."""

from diw.step.batch import Batch, Criterion, LossFunction, Outputs, Weights
from diw.step.criteria import cross_entropy
from diw.step.step import Step

__all__ = [
    "Batch",
    "Criterion",
    "LossFunction",
    "Outputs",
    "Step",
    "Weights",
    "cross_entropy",
]
