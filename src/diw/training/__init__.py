"""Training: the loop, runs that are recorded, many of them, their scores and their time."""

from typing import TYPE_CHECKING

from diw._lazy import names_from

if TYPE_CHECKING:
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

__getattr__ = names_from(
    __name__,
    {
        "scores": "Scores evaluate",
        "loop": "Epoch Training make_optimizer",
        "many": "Stopwatch run_all try_all",
        "recorded": "OBSERVERS Observer execute make_observers with_method",
    },
)
