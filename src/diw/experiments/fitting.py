"""A recipe that fits one's own data: its length is in steps and depends on the number of rows.

The paper's protocols count epochs, for data of one size. Two hundred rows need as many steps as ten
thousand, which is many more epochs, and all methods get the same number of them.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

from diw.errors import UsageError
from diw.runs import Recipe

STEPS = 2000
"""Steps of the optimiser, at least."""
PASSES = 5
"""Passes over the training data, at least: more steps where there are many rows."""
EPOCHS = 50
"""Epochs into which a run is divided: how often it is scored, recorded and may be kept."""
PATIENCE = 25
"""Epochs without a better one, by held-out trusted loss, after which a run ends."""
SELECTION = 0.3
"""Share of the trusted rows that is held out to choose the epoch."""
FEWEST = 10
"""Rows below which a held-out loss says too little to choose by."""

FEW_ROWS = 1024
"""Rows below which a table can be small for its columns."""
ROWS_PER_COLUMN = 50
"""Rows per column below which a network learns wrong labels of a small table by heart at once."""
DECAY = 1e-2
"""AdamW's weight decay elsewhere."""
MOST_DECAY = 10.0

RATES = {"adamw": 1e-3, "adam": 1e-3, "sgd": 0.05}
"""Learning rates for the mean of the losses of a batch."""


def fit_recipe(
    rows: int, given: Mapping[str, Any], steps: int | None = None, *, columns: int | None = None
) -> Recipe:
    """AdamW on mean losses with a short warm-up and a cosine to zero, as long as the data need.

    Args:
        rows: Training rows.
        given: Fields of the recipe that the user has set.
        steps: Steps of the optimiser that the user has set.
        columns: Inputs of the network where the data are a table; None for images.
    """
    if steps is not None and "epochs" in given:
        raise UsageError("steps: give either steps or epochs, not both")
    optimizer = str(given.get("optimizer", "adamw"))
    batch_size = int(given.get("batch_size", fit_batch_size(rows)))
    per_pass = ceil(rows / batch_size)
    if "epochs" in given:
        epochs, passes = int(given["epochs"]), 1
    else:
        total = ceil((steps or max(STEPS, PASSES * per_pass)) / per_pass)
        passes = ceil(total / EPOCHS)
        epochs = ceil(total / passes)
    fitted: dict[str, Any] = {
        "epochs": epochs,
        "passes": passes,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "lr": RATES[optimizer],
        "weight_decay": fit_decay(rows, columns) if optimizer == "adamw" else 1e-4,
        "schedule": "cosine",
        "ramp": min(2, epochs // 5),
        "reduction": "mean",
        "patience": PATIENCE,
    }
    return Recipe(**(fitted | dict(given)))


def fit_batch_size(rows: int) -> int:
    """A power of two between 32 and 256, a sixteenth of the rows: small data in small batches."""
    size = 32
    while size < 256 and 32 * size <= rows:
        size *= 2
    return size


def fit_decay(rows: int, columns: int | None) -> float:
    """AdamW's weight decay: strong, 100 columns/rows, on small tables with many columns.

    Weights stay below about 1/decay then. Where there are more rows per column, this would keep
    the network from learning what is not linear.
    """
    if columns is None or rows >= min(FEW_ROWS, ROWS_PER_COLUMN * columns):
        return DECAY
    return min(MOST_DECAY, round(100 * columns / rows, 1))


def held_out_share(trusted: int) -> float:
    """The share of `trusted` rows that is held out to choose the epoch; 0 where there are few."""
    return SELECTION if round(SELECTION * trusted) >= FEWEST else 0.0
