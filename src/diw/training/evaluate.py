"""Scoring a network on a data set."""

import torch
from torch import nn

from diw.data import Dataset
from diw.records import Row
from diw.step.probe import outputs_in_pieces


def evaluate(model: nn.Module, data: Dataset) -> Row:
    """Accuracy and balanced accuracy (the mean of the accuracies per class), as fractions.

    The network runs in evaluation mode, on its own device, and is left as it was.
    """
    hits = torch.zeros(data.num_classes, dtype=torch.int64)
    for batch, outputs in outputs_in_pieces(model, data):
        assert batch.targets is not None
        right = outputs.values.argmax(1) == batch.targets
        hits += torch.bincount(batch.targets[right].cpu(), minlength=data.num_classes)
    counts = data.class_counts
    recalls = (hits.double() / counts)[counts > 0]
    return {
        "test_accuracy": int(hits.sum()) / len(data),
        "balanced_accuracy": float(recalls.mean()),
    }
