"""Training one network: the loop, its scores, and observers that watch it."""

from diw.training.evaluate import evaluate
from diw.training.loop import Training
from diw.training.observers import OBSERVERS, Observer, make_observers
from diw.training.optimizing import make_optimizer

__all__ = [
    "OBSERVERS",
    "Observer",
    "Training",
    "evaluate",
    "make_observers",
    "make_optimizer",
]
