"""How a network is trained: the optimiser, its schedule, batches and epochs."""

from dataclasses import dataclass
from typing import Literal

from diw.errors import UsageError


@dataclass(frozen=True)
class Recipe:
    """One training protocol.

    The defaults are those of `diw compare`: short, yet long enough that plain training
    memorises wrong labels (on the embedded data at 0.4 symmetric noise, tuned on seeds
    100 and 101, which no default uses).
    """

    epochs: int = 45
    """Passes over the training data (for `clean`, over the trusted data)."""
    batch_size: int = 256
    """Training samples a step."""
    trusted_batch_size: int = 256
    """Trusted samples a step, at most."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """SGD, or Adam with its default moments."""
    lr: float = 2e-4
    """Learning rate at the start."""
    momentum: float = 0.9
    """SGD's momentum; the paper uses none and ten times the epochs."""
    weight_decay: float = 1e-4
    """L2 penalty of the optimiser."""
    schedule: str = "step:40:0.1"
    """"constant", "step:EPOCHS:FACTOR" or "exponential:FACTOR", applied epoch by epoch."""
    ramp: int = 4
    """Epochs over which the learning rate rises to what the schedule says, from a part of it."""
    reduction: Literal["mean", "sum"] = "sum"
    """Whether weighted losses are averaged or, as in the paper's experiments, summed."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "trusted_batch_size"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: must be at least 1, and is {getattr(self, name)}")
        if not 0 < self.lr < float("inf"):
            raise UsageError(f"lr: must be positive and finite, and is {self.lr}")
        for name in ("momentum", "weight_decay", "ramp"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name}: must not be negative, and is {getattr(self, name)}")
        if self.optimizer not in ("sgd", "adam"):
            raise UsageError(f"optimizer: choose sgd or adam, not {self.optimizer!r}")
        if self.reduction not in ("mean", "sum"):
            raise UsageError(f"reduction: choose mean or sum, not {self.reduction!r}")
        self.learning_rate(1)

    def learning_rate(self, epoch: int) -> float:
        """The learning rate in epoch `epoch` (from 1): a function of the epoch, so no state."""
        return self._scheduled(epoch) * min(1.0, epoch / (self.ramp + 1))

    def _scheduled(self, epoch: int) -> float:
        kind, *numbers = self.schedule.split(":")
        try:
            if kind == "constant" and not numbers:
                return self.lr
            if kind == "step":
                every, factor = int(numbers[0]), float(numbers[1])
                return self.lr * factor ** ((epoch - 1) // every)
            if kind == "exponential":
                (factor,) = map(float, numbers)
                return self.lr * factor ** (epoch - 1)
        except (ValueError, IndexError, ZeroDivisionError):
            pass
        raise UsageError(
            f"schedule: cannot read {self.schedule!r}; "
            "write constant, step:EPOCHS:FACTOR or exponential:FACTOR"
        )
