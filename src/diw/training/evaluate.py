"""Scoring a network on a data set."""

import torch
from torch import nn

from diw.data import Dataset
from diw.records import Row

EVALUATION_BATCH = 1000


def evaluate(model: nn.Module, data: Dataset, device: torch.device) -> Row:
    """Accuracy and balanced accuracy (the mean of the classes' accuracies), as fractions."""
    model.eval()
    hits = torch.zeros(data.num_classes, dtype=torch.int64)
    with torch.inference_mode():
        for index in torch.arange(len(data)).split(EVALUATION_BATCH):
            inputs, targets = data.take(index)
            right = model(inputs.to(device)).argmax(1).cpu() == targets
            hits += torch.bincount(targets[right], minlength=data.num_classes)
    counts = data.class_counts
    recalls = (hits.double() / counts)[counts > 0]
    return {
        "test_accuracy": int(hits.sum()) / len(data),
        "balanced_accuracy": float(recalls.mean()),
    }
