"""Which epoch's network is kept: that of the lowest held-out trusted loss, smoothed.

The losses are those of trusted samples that are neither trained on nor matched with; test samples
are never looked at. Training and reports use the same rule, so a table names the epoch that
predictions use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SMOOTHED_OVER = 3
"""Epochs over which the loss is averaged: that of few samples is noisy."""


def kept_epoch(losses: Sequence[float]) -> int:
    """The epoch, from 1, whose mean loss over itself and the two before it is lowest.

    Args:
        losses: The held-out trusted loss after each epoch, at least one.
    """
    smooth = [
        sum(window) / len(window)
        for end in range(1, len(losses) + 1)
        if (window := losses[max(0, end - SMOOTHED_OVER) : end])
    ]
    return min(range(len(smooth)), key=lambda place: smooth[place]) + 1


def is_over(losses: Sequence[float], patience: int) -> bool:
    """Whether the last `patience` epochs brought no better one."""
    return bool(losses) and len(losses) - kept_epoch(losses) >= patience


def chosen_epoch(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The epoch, from 1, that was kept for its held-out trusted loss; None for the last.

    Args:
        rows: The metrics of each epoch.
    """
    held_out = [float(loss) for row in rows if (loss := row.get("selection_loss")) is not None]
    return kept_epoch(held_out) if held_out else None
