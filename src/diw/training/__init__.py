"""Training: the loop, runs that are recorded, many of them, their scores and their time."""

from diw.training.loop import Epoch, Training, make_optimizer
from diw.training.many import Stopwatch, run_all, try_all
from diw.training.recorded import OBSERVERS, Observer, execute, make_observers, with_method
from diw.training.scores import Scores, evaluate

__all__ = [
    "OBSERVERS",
    "Epoch",
    "Observer",
    "Scores",
    "Stopwatch",
    "Training",
    "evaluate",
    "execute",
    "make_observers",
    "make_optimizer",
    "run_all",
    "try_all",
    "with_method",
]
