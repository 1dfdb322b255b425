"""Scoring a network, and choosing the epoch whose network is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diw.data import Dataset
from diw.runs import Row
from diw.runs.journal import is_over, kept_epoch
from diw.step.look import outputs_in_pieces
from diw.step.rows import PIECE

BINS = 15
"""Bins of the calibration error, as in Guo et al. 2017."""


@dataclass(frozen=True)
class Scores:
    """Counts of true against predicted classes, and the accuracies that follow.

    Attributes:
        classes: Class names by class number.
        confusion: (k, k) int64; entry (i, j) counts rows of class i predicted as class j.
        calibration_error: See the function of that name.
    """

    classes: tuple[str, ...]
    confusion: NDArray[np.int64]
    calibration_error: float = float("nan")

    def __post_init__(self) -> None:
        k = len(self.classes)
        if self.confusion.shape != (k, k) or not self.confusion.sum():
            raise ValueError(f"confusion: expected counts ({k}, {k}) of at least one row")

    @property
    def counts(self) -> NDArray[np.int64]:
        """(k,) rows of each true class."""
        return self.confusion.sum(axis=1)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of rows predicted correctly."""
        return int(self.confusion.trace()) / self.rows

    @property
    def class_accuracies(self) -> tuple[float | None, ...]:
        """The accuracy per true class; None for a class without rows."""
        right = self.confusion.diagonal().tolist()
        counts = self.counts.tolist()
        return tuple(r / n if n else None for r, n in zip(right, counts, strict=True))

    @property
    def balanced_accuracy(self) -> float:
        """The mean accuracy of the classes that have rows."""
        present = [a for a in self.class_accuracies if a is not None]
        return float(torch.tensor(present, dtype=torch.float64).mean())

    def as_row(self) -> Row:
        """What a run records of an epoch, as fractions."""
        return {
            "test_accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "calibration_error": self.calibration_error,
        }

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values by name."""
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "per_class": [
                {"class": name, "rows": int(n), "accuracy": accuracy}
                for name, n, accuracy in zip(
                    self.classes, self.counts, self.class_accuracies, strict=True
                )
            ],
            "classes": list(self.classes),
            "confusion_matrix": self.confusion.tolist(),
        }


def evaluate(model: nn.Module, data: Dataset, *, piece: int = PIECE) -> Scores:
    """Compare predicted with true classes, in one pass.

    The network runs in evaluation mode, on its own device, and is left as it was.

    Args:
        model: The network.
        data: Labelled rows.
        piece: Rows per forward.
    """
    k = data.num_classes
    counts = torch.zeros(k * k, dtype=torch.int64)
    confidences: list[Tensor] = []
    rights: list[Tensor] = []
    for batch, outputs in outputs_in_pieces(model, data, piece=piece):
        assert batch.targets is not None
        predicted = outputs.values.argmax(1)
        counts += torch.bincount((batch.targets * k + predicted).cpu(), minlength=k * k)
        confidences.append(outputs.values.double().softmax(1).amax(1).nan_to_num().cpu())
        rights.append((predicted == batch.targets).cpu())
    error = calibration_error(torch.cat(confidences), torch.cat(rights))
    return Scores(data.classes, counts.reshape(k, k).numpy(), error)


def calibration_error(confidence: Tensor, right: Tensor) -> float:
    """Expected calibration error: how far stated confidence is from accuracy (Guo et al. 2017).

    Σ_b (n_b / n) |accuracy of b − mean confidence of b| over bins b of equal width on [0, 1].

    Args:
        confidence: (n,) the probability of the predicted class.
        right: (n,) whether the prediction is right.
    """
    place = (confidence * BINS).ceil().long().clamp(1, BINS) - 1
    gaps = torch.zeros(BINS, dtype=torch.float64)
    gaps.index_add_(0, place, right.double() - confidence.double())
    return float(gaps.abs().sum()) / len(confidence)


def brier(logits: Tensor, targets: Tensor | None) -> Tensor:
    """Squared distance of predicted probabilities from the truth, (n,), in [0, 2] (Brier 1950).

    As the cross entropy it is lowest for the true probabilities. But it is bounded: a few samples
    of which a network is wrongly sure do not outweigh all others, so it chooses epochs better.
    """
    assert targets is not None
    probabilities = logits.float().softmax(1)
    truth = torch.nn.functional.one_hot(targets, logits.shape[1])
    return (probabilities - truth).square().sum(1)


@dataclass
class Selection:
    """Watches the held-out trusted loss; see `diw.runs.journal.kept_epoch` for the rule.

    Attributes:
        data: Trusted samples that are neither trained on nor matched with.
        patience: Epochs without a better one after which training ends.
    """

    data: Dataset
    patience: int
    losses: list[float] = field(default_factory=list[float])
    kept: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Parameters and buffers of the best epoch so far."""

    def after_epoch(self, model: nn.Module) -> Row:
        """Look at the network after an epoch, keep a copy if it is the best; the epoch's loss."""
        pieces = outputs_in_pieces(model, self.data)
        total = sum(float(brier(outputs.values, batch.targets).sum()) for batch, outputs in pieces)
        self.losses.append(total / len(self.data))
        if self.improved:
            state = model.state_dict()
            self.kept = {name: tensor.detach().clone() for name, tensor in state.items()}
        return {"selection_loss": self.losses[-1]}

    @property
    def improved(self) -> bool:
        """Whether the latest epoch is the best so far."""
        return kept_epoch(self.losses) == len(self.losses)

    @property
    def over(self) -> bool:
        """Whether training may end."""
        return is_over(self.losses, self.patience)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs."""
        return {"losses": list(self.losses), "kept": self.kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.losses, self.kept = list(state["losses"]), dict(state["kept"])
