"""Training one network: the loop, its scores, and observers that watch it."""

from diw.training.evaluate import Scores, evaluate
from diw.training.loop import Training
from diw.training.observers import OBSERVERS, Observer, make_observers
from diw.training.optimizing import make_optimizer

__all__ = [
    "OBSERVERS",
    "Observer",
    "Scores",
    "Training",
    "evaluate",
    "make_observers",
    "make_optimizer",
]
