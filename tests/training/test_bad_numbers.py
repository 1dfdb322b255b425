"""Numbers gone bad: a defined result, or one line with epoch, step and what to try."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from diw.data import Bundle, Dataset
from diw.data.dataset import TensorInputs
from diw.data.split import make_split
from diw.errors import RunError
from diw.methods import make
from diw.objective import Objective
from diw.runs import Recipe, Run
from diw.training.recorded import Recorded
from tests.own_data import done
from tests.problems import tiny_training

METHODS = ("uniform", "diw", "reweight", "siw-l", "remember")


def training_on(
    folder: Path,
    inputs: Tensor,
    targets: Tensor,
    method: str,
    *,
    classes: int = 3,
    network: Callable[[], nn.Module] | None = None,
    **recipe: Any,
) -> Recorded:
    """Two epochs on these rows, of which the first few are trusted."""
    names = tuple(map(str, range(classes)))
    rows = Dataset(TensorInputs(inputs), targets, names)
    bundle = Bundle("bad", "table", rows, rows, clean=torch.ones(len(rows), dtype=torch.bool))
    return Recorded(
        split=make_split(bundle, trusted=recipe.pop("trusted", 10), seed=0),
        make_model=network or (lambda: nn.Linear(inputs.shape[1], classes)),
        method=make(method, {"pretraining": 1} if method == "siw-l" else None),
        recipe=Recipe(**{"epochs": 2, "batch_size": 16, "trusted_batch_size": 8, **recipe}),
        run=Run.create(folder, {}),
        seed=0,
        device=torch.device("cpu"),
    )


def assert_defined(training: Recorded) -> None:
    training.finish()
    for row in training.run.metrics():
        for name, value in row.items():
            assert value is None or math.isfinite(value), (name, value)
    assert training.run.verify()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("inputs", "targets", "more"),
    [
        (torch.ones(40, 4), torch.arange(40) % 3, {}),  # all rows the same
        (torch.zeros(40, 4), torch.arange(40) % 3, {}),
        (torch.randn(40, 4), torch.arange(40) % 3, {"trusted": 1}),
        (torch.randn(40, 4), torch.arange(40) % 3, {"trusted": [0, 3, 6, 9]}),
        (torch.randn(40, 4) * torch.tensor([1.0, 0, 0, 0]), torch.arange(40) % 3, {}),
        (torch.randn(40, 4), torch.arange(40) % 3, {"batch_size": 1, "trusted_batch_size": 1}),
        (torch.randn(33, 4), torch.arange(33) % 3, {}),  # the last batch has one row
        (torch.randn(40, 4), torch.arange(40) % 40, {"classes": 1_000}),
        (1e4 * torch.randn(40, 4), torch.arange(40) % 3, {}),
    ],
    ids=[
        "same",
        "zero",
        "one trusted",
        "one class",
        "constant",
        "batch of one",
        "last of one",
        "classes",
        "large",
    ],
)
def test_odd_data_give_a_defined_result(method, inputs, targets, more, tmp_path) -> None:
    torch.manual_seed(0)
    assert_defined(training_on(tmp_path, inputs, targets, method, **more))


def test_half_precision_in_files_and_in_a_loop(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float16)
    y = (X[:, 0] > 0).astype(int)
    np.savez("train.npz", X=X[:40], y=y[:40])
    np.savez("trusted.npz", X=X[40:], y=y[40:])
    own = ("--data", "train.npz", "--trusted", "trusted.npz", "--model", "mlp", "--device", "cpu")
    done("train", *own, "--epochs", "1", "--method", "diw", "--out", "run")
    assert Run(Path("run")).verify()
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    network = nn.Linear(4, 2).half()
    objective = Objective(network, "diw", (inputs[40:], targets[40:]))
    objective.start_epoch(2)
    result = objective((inputs[:40], targets[:40]))
    assert torch.isfinite(result.loss)
    assert result.weights.dtype == torch.float32
    assert result.weights.mean() == pytest.approx(1)


class Exploding(nn.Module):
    """Gives infinite outputs after some forwards in training mode."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.layer, self.left = nn.Linear(4, 3), after

    def forward(self, inputs: Tensor) -> Tensor:
        self.left -= self.training
        outputs = self.layer(inputs)
        return outputs if self.left > 0 else outputs * torch.inf


def test_a_loss_that_is_not_finite_names_epoch_and_step_and_keeps_the_last_good_state(tmp_path):
    torch.manual_seed(0)
    inputs, targets = torch.randn(40, 4), torch.arange(40) % 3
    network = lambda: Exploding(after=6)  # noqa: E731  (of three steps per epoch)
    training = training_on(tmp_path, inputs, targets, "uniform", epochs=4, network=network)
    words = "the loss is nan in epoch 2 from step 3 on; lower .* the checkpoint of epoch 1 is kept"
    with pytest.raises(RunError, match=words):
        training.finish()
    assert [row["epoch"] for row in training.run.metrics()] == [1]
    assert training.run.untidy


def test_values_that_cannot_be_matched_name_epoch_and_step(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"run: epoch \d, step \d: .*lower the learning rate; the ch"
    ):
        tiny_training(tmp_path / "run", "diw", lr=1e4).finish()


def test_too_large_a_learning_rate_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"in epoch \d from step \d+ on; lower the learning rate"):
        tiny_training(tmp_path, "uniform", lr=1e30).finish()
    assert not Run(tmp_path).finished
