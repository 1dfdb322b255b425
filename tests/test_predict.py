import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from diw.data import Encoding
from diw.data.encoding import NumberColumn, TableRows
from diw.predict import Predictor, write_predictions
from tests.problems import CountedInputs

CLASSES = ("a", "b")
ENCODING = Encoding(("a", "b"), TableRows((NumberColumn("0", 0, 1), NumberColumn("1", 0, 1))))


def test_predictions_read_each_row_once_and_no_batch_ahead() -> None:
    inputs = CountedInputs(1000)
    torch.manual_seed(0)
    model = nn.Linear(2, 2).eval()
    batches = Predictor(model, ENCODING).probabilities(inputs, 64)
    assert inputs.asked == []
    first = next(batches)
    assert inputs.asked == [64]
    rest = list(batches)
    assert inputs.asked == [64] * 15 + [40]
    with torch.no_grad():
        expected = model(CountedInputs(1000).take(torch.arange(1000))).softmax(1)
    got = torch.cat([torch.from_numpy(batch) for batch in (first, *rest)])
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_batches_become_rows_in_their_order(ending, tmp_path: Path) -> None:
    probabilities = np.linspace(0, 1, 20, dtype=np.float32)
    rows = np.stack([1 - probabilities, probabilities], 1)
    path = tmp_path / f"p.{ending}"
    counts = write_predictions(path, iter(np.split(rows, [7, 14])), CLASSES)
    assert counts.tolist() == [10, 10]
    labels, second = read(path)
    assert labels == ["a"] * 10 + ["b"] * 10
    np.testing.assert_allclose(second, probabilities, rtol=1e-5)


def read(path: Path) -> tuple[list[str], list[float]]:
    """The labels, and the probabilities of class b."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return archive["labels"].tolist(), archive["probabilities"][:, 1].tolist()
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        return table["label"].to_pylist(), table["p_b"].to_pylist()
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert lines[0] == ["label", "p_a", "p_b"]
    return [line[0] for line in lines[1:]], [float(line[2]) for line in lines[1:]]


def test_csv_holds_no_formula(tmp_path: Path) -> None:
    classes = ("=1+2", "-1", "@x", "plain", "+1.5")
    write_predictions(tmp_path / "p.csv", iter([np.eye(5, dtype=np.float32)]), classes)
    with (tmp_path / "p.csv").open() as file:
        labels = [row[0] for row in csv.reader(file)][1:]
    assert labels == ["'=1+2", "-1", "'@x", "plain", "+1.5"]
    write_predictions(tmp_path / "p.npz", iter([np.eye(5, dtype=np.float32)]), classes)
    with np.load(tmp_path / "p.npz") as archive:
        assert tuple(archive["labels"]) == classes


def test_csv_is_written_batch_by_batch(tmp_path: Path) -> None:
    """The file grows while batches are still to come, so no more than one is held."""
    sizes: list[int] = []

    def batches() -> Iterator[np.ndarray]:
        for _ in range(3):
            sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
            yield np.full((20_000, 2), 0.5, np.float32)

    write_predictions(tmp_path / "p.csv", batches(), CLASSES)
    assert 0 == sizes[0] < sizes[1] < sizes[2]


def test_a_failure_midway_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("old")

    def failing() -> Iterator[np.ndarray]:
        yield np.full((2, 2), 0.5, np.float32)
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        write_predictions(tmp_path / "p.csv", failing(), CLASSES, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == "old"
