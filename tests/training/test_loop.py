from pathlib import Path

import pytest
import torch

from diw.data import Bundle, Dataset
from diw.data.split import make_split
from diw.methods import make
from diw.runs import Recipe, Run
from diw.step import Horizon
from diw.training import make_optimizer
from diw.training.recorded import Recorded
from tests.problems import CountedInputs, assert_same, killed_at_record, results, tiny_training


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_run_goes_on_bit_for_bit(moment, tmp_path, monkeypatch) -> None:
    """Killed before epoch 3 is recorded, or after that but before its checkpoint."""
    options = {"fields": {"momentum": 0.5}, "momentum": 0.9, "schedule": "step:2:0.1"}
    whole = tiny_training(tmp_path / "whole", **options)
    whole.finish()
    with killed_at_record(monkeypatch, 3, moment):
        tiny_training(tmp_path / "killed", **options).finish()
    torch.rand(17)  # another process has another random state
    with (tmp_path / "killed" / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "train_l')  # a line torn by the kill
    (tmp_path / "killed" / ".checkpoint.pt.999.tmp").write_bytes(b"half")
    resumed = tiny_training(tmp_path / "killed", **options)
    assert not resumed.run.finished
    resumed.finish()
    assert resumed.run.finished
    assert_same(results(resumed), results(whole))


def test_training_leaves_the_global_random_state_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    tiny_training(tmp_path / "run", epochs=1).finish()
    assert torch.equal(before, torch.get_rng_state())


def test_epochs_of_warm_up_are_recorded_as_unweighted(tmp_path: Path) -> None:
    training = tiny_training(tmp_path / "run", fields={"warmup": 2})
    training.finish()
    ledger = training.run.ledger()
    assert (ledger[:2] == 1).all()
    assert not (ledger[2:] == 1).all()
    rows = training.run.metrics()
    assert [row["weighted"] for row in rows] == [False, False, True, True]
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]


def test_trials_of_different_methods_share_data_and_initialisation(tmp_path: Path) -> None:
    first = tiny_training(tmp_path / "a", "uniform")
    second = tiny_training(tmp_path / "b", "diw")
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(first.training.batches(3), second.training.batches(3), strict=True):
        assert torch.equal(a.index, b.index)
    first.finish()
    second.finish()
    # Warm-up is unweighted, so the first epochs are one and the same.
    assert first.run.metrics()[0]["test_accuracy"] == second.run.metrics()[0]["test_accuracy"]
    assert first.run.metrics()[0]["train_loss"] == second.run.metrics()[0]["train_loss"]


def test_an_epoch_of_clean_is_one_pass_over_the_trusted_set(tmp_path: Path) -> None:
    training = tiny_training(tmp_path / "run", "clean", epochs=3)
    training.finish()
    assert (
        training.training.objective.t == 3 * 2
    )  # twenty trusted samples in batches of at most sixteen
    assert training.run.ledger().size == 0


@pytest.mark.parametrize("passes", [None, 2])
def test_methods_are_told_how_long_the_training_is(passes, tmp_path: Path) -> None:
    training = tiny_training(tmp_path / "run", "uniform", epochs=3, passes=passes)
    training.finish()
    objective = training.training.objective
    assert objective.task.horizon == Horizon(objective.t, steps_per_pass=3, batch_size=32)
    assert objective.t == 9 * (passes or 1)  # ninety samples


def test_pretraining_is_a_run_of_its_own_and_resumes(tmp_path: Path) -> None:
    training = tiny_training(tmp_path / "run")
    model = training.training.objective.task.pretrain(2)
    assert (tmp_path / "run" / "pretraining" / "done").exists()
    again = tiny_training(tmp_path / "run").training.objective.task.pretrain(2)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_recipe_decides_the_optimiser() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(1))]
    sgd = make_optimizer(Recipe(lr=0.2, momentum=0.9, weight_decay=0.01), parameters)
    assert isinstance(sgd, torch.optim.SGD)
    settings = {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.01}
    assert {name: sgd.defaults[name] for name in settings} == settings
    adam = make_optimizer(Recipe(optimizer="adam", lr=0.3, weight_decay=0.1), parameters)
    assert isinstance(adam, torch.optim.Adam)
    assert (adam.defaults["lr"], adam.defaults["weight_decay"]) == (0.3, 0.1)


def test_training_reads_each_row_once_per_epoch_in_batches(tmp_path: Path) -> None:
    """So that data larger than memory can be trained on."""
    rows, batch, epochs, classes = 1000, 64, 3, ("a", "b")
    inputs = CountedInputs(rows)
    bundle = Bundle(
        "counted",
        "table",
        Dataset(inputs, torch.arange(rows) % 2, classes),
        Dataset(CountedInputs(10), torch.arange(10) % 2, classes),
        clean=torch.ones(rows, dtype=torch.bool),
    )
    split = make_split(bundle, trusted=batch, seed=0)
    inputs.asked.clear()
    Recorded(
        split=split,
        make_model=lambda: torch.nn.Sequential(torch.nn.Linear(2, 2)),
        method=make("diw"),
        recipe=Recipe(epochs=epochs, batch_size=batch, trusted_batch_size=batch),
        run=Run.create(tmp_path, {}),
        seed=0,
        device=torch.device("cpu"),
    ).finish()
    steps = epochs * -(-rows // batch)
    assert max(inputs.asked) == batch
    # Each training row once per epoch, and at most one trusted batch per step.
    assert epochs * rows < sum(inputs.asked) <= epochs * rows + steps * batch
