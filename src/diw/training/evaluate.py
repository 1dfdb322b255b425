"""Scoring a network on a data set."""

import torch
from torch import Tensor, nn

from diw.data import Dataset
from diw.runs import Row
from diw.step.probe import outputs_in_pieces

BINS = 15
"""Bins of the calibration error, as in Guo et al. 2017."""


def evaluate(model: nn.Module, data: Dataset) -> Row:
    """Accuracy, balanced accuracy and calibration error, as fractions.

    Balanced accuracy is the mean of the accuracies per class. See `calibration_error` for the
    third. The network runs in evaluation mode, on its own device, and is left as it was.
    """
    hits = torch.zeros(data.num_classes, dtype=torch.int64)
    confidences: list[Tensor] = []
    rights: list[Tensor] = []
    for batch, outputs in outputs_in_pieces(model, data):
        assert batch.targets is not None
        right = outputs.values.argmax(1) == batch.targets
        hits += torch.bincount(batch.targets[right].cpu(), minlength=data.num_classes)
        confidences.append(outputs.values.double().softmax(1).amax(1).nan_to_num().cpu())
        rights.append(right.cpu())
    counts = data.class_counts
    recalls = (hits.double() / counts)[counts > 0]
    return {
        "test_accuracy": int(hits.sum()) / len(data),
        "balanced_accuracy": float(recalls.mean()),
        "calibration_error": calibration_error(torch.cat(confidences), torch.cat(rights)),
    }


def confusion(model: nn.Module, data: Dataset) -> Tensor:
    """(k, k) counts of rows by true and predicted class."""
    k = data.num_classes
    counts = torch.zeros(k * k, dtype=torch.int64)
    for batch, outputs in outputs_in_pieces(model, data):
        assert batch.targets is not None
        pairs = batch.targets * k + outputs.values.argmax(1)
        counts += torch.bincount(pairs.cpu(), minlength=k * k)
    return counts.reshape(k, k)


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
