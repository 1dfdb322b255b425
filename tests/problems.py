"""A small shifted problem for tests of the loop: seconds, not minutes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from diw.data import Bundle, Dataset
from diw.data.dataset import TensorInputs
from diw.data.split import Split, make_split
from diw.methods import make
from diw.runs import Recipe, Row, Run, RunSpec, Writer
from diw.training.recorded import Recorded
from tests.networks import noisy_network, samples

CLASSES = ("a", "b", "c")

TINY = RunSpec(
    shift="symmetric:0.4",
    trusted=50,
    train_samples=200,
    test_samples=50,
    model="mlp",
    recipe=Recipe(epochs=3, batch_size=64, trusted_batch_size=50),
)
"""A run of the embedded data that takes a moment."""


@dataclass
class CountedInputs:
    """Rows of two numbers made on demand, as of a file larger than memory; counts requests."""

    rows: int
    asked: list[int] = field(default_factory=list[int])
    """How many rows each request was for."""
    shape: tuple[int, ...] = (2,)

    def __len__(self) -> int:
        return self.rows

    def take(self, index: Tensor) -> Tensor:
        """The rows `index` (b,): −1 or 1, and 1."""
        self.asked.append(len(index))
        return torch.stack([index % 2 * 2.0 - 1, torch.ones(len(index))], 1)


def tiny_bundle(n: int = 90) -> Bundle:
    """Learnable rows of three classes, all clean."""

    def part(rows: int, seed: int) -> Dataset:
        inputs, targets = samples(rows, seed)
        return Dataset(TensorInputs(inputs), targets, CLASSES)

    clean = torch.ones(n, dtype=torch.bool)
    return Bundle("tiny", "table", part(n, 1), part(40, 2), clean=clean)


def tiny_split(seed: int = 0, shift: str = "symmetric:0.3") -> Split:
    """Ninety rows, some of them mislabelled, twenty trusted."""
    return make_split(tiny_bundle(), shift=shift, trusted=20, seed=seed)


def tiny_training(
    folder: Path,
    method: str = "diw",
    *,
    epochs: int = 4,
    seed: int = 0,
    fields: dict[str, object] | None = None,
    network: Callable[[], nn.Module] = noisy_network,
    **recipe: object,
) -> Recorded:
    """A training of seconds; batches of 32, so that the last one is smaller."""
    settings = {"lr": 0.01, "batch_size": 32, "trusted_batch_size": 16, **recipe}
    return Recorded(
        split=tiny_split(seed),
        make_model=network,
        method=make(method, fields),
        recipe=Recipe(epochs=epochs, **settings),  # type: ignore[arg-type]
        run=Run.create(folder, {"method": method, "seed": seed}),
        seed=seed,
        device=torch.device("cpu"),
    )


def results(training: Recorded) -> tuple[list[Row], list[bytes], dict[str, Tensor]]:
    """What a finished training recorded, but for times; its ledgers; its network."""
    run = training.run
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in run.metrics()]
    return rows, [run.ledger().tobytes(), run.losses().tobytes()], load_file(run.model)


def assert_same(ours: Any, theirs: Any) -> None:
    """Two results are equal, bit for bit."""
    assert ours[:2] == theirs[:2]
    assert all(torch.equal(ours[2][name], theirs[2][name]) for name in theirs[2])


class Killed(BaseException):
    """As sudden as a signal: nothing in the loop may catch it."""


@contextmanager
def killed_at_record(
    monkeypatch: pytest.MonkeyPatch, count: int, moment: Literal["before", "after"] = "before"
) -> Generator[None]:
    """Kill the training inside the block when it records an epoch for the `count`-th time.

    Epochs of a pretraining count too. `moment` says on which side of the record it dies.
    """
    append, calls = Writer.append, 0

    def dying(journal: Writer, row: Row, *ledgers: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == count and moment == "before":
            raise Killed
        append(journal, row, *ledgers)
        if calls == count:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", dying)
        with pytest.raises(Killed):
            yield
