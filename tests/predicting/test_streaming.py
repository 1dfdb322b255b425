"""Data larger than memory: rows are read batch by batch, only when they are needed."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from diw.data import Bundle, Dataset, Encoding
from diw.data.encoding import NumberColumn, TableRows
from diw.data.split import make_split
from diw.predicting import Predictor, write_predictions
from diw.records import Recipe, Run
from diw.training import Training
from diw.weighting import make

ROWS, BATCH = 1000, 64
ENCODING = Encoding(("a", "b"), TableRows((NumberColumn("0", 0, 1), NumberColumn("1", 0, 1))))


@dataclass
class Counted:
    """Rows made on demand, that keeps account of what was asked for."""

    rows: int
    asked: list[int] = field(default_factory=list)
    shape: tuple[int, ...] = (2,)

    def __len__(self) -> int:
        return self.rows

    def take(self, index: Tensor) -> Tensor:
        self.asked.append(len(index))
        return torch.stack([index % 2 * 2.0 - 1, torch.ones(len(index))], 1)


def predictor() -> Predictor:
    torch.manual_seed(0)
    return Predictor(nn.Linear(2, 2).eval(), ENCODING, torch.device("cpu"))


def test_predictions_read_each_row_once_and_no_batch_ahead() -> None:
    inputs = Counted(ROWS)
    batches = predictor().probabilities(inputs, BATCH)
    assert inputs.asked == []
    next(batches)
    assert inputs.asked == [BATCH]
    rest = sum(len(batch) for batch in batches)
    assert rest == ROWS - BATCH
    assert sum(inputs.asked) == ROWS
    assert max(inputs.asked) == BATCH


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_take_batches_as_they_come(ending, tmp_path: Path) -> None:
    inputs = Counted(ROWS)
    counts = write_predictions(
        tmp_path / f"p.{ending}", predictor().probabilities(inputs, BATCH), ENCODING.classes
    )
    assert counts.sum() == ROWS
    assert max(inputs.asked) == BATCH


def test_a_failure_midway_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("old")

    def failing():
        yield np.full((2, 2), 0.5, np.float32)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        write_predictions(tmp_path / "p.csv", failing(), ENCODING.classes)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == "old"


def test_training_reads_each_row_once_an_epoch_in_batches(tmp_path: Path) -> None:
    inputs, epochs = Counted(ROWS), 3
    clean = torch.ones(ROWS, dtype=torch.bool)
    bundle = Bundle(
        "counted",
        "table",
        Dataset(inputs, torch.arange(ROWS) % 2, ENCODING.classes),
        Dataset(Counted(10), torch.arange(10) % 2, ENCODING.classes),
        clean=clean,
    )
    split = make_split(bundle, trusted=BATCH, seed=0)
    inputs.asked.clear()
    Training(
        split=split,
        make_model=lambda: nn.Sequential(nn.Linear(2, 2)),
        method=make("diw"),
        recipe=Recipe(epochs=epochs, batch_size=BATCH, trusted_batch_size=BATCH),
        run=Run.create(tmp_path, {}),
        seed=0,
        device=torch.device("cpu"),
    ).finish()
    steps = epochs * -(-ROWS // BATCH)
    assert max(inputs.asked) == BATCH
    # Each training row once an epoch, and at most one trusted batch a step.
    assert epochs * ROWS < sum(inputs.asked) <= epochs * ROWS + steps * BATCH
