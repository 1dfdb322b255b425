"""The ledger of losses: what it holds."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diw.runs import Recipe, Run, RunSpec
from diw.training.recorded import make_recorded, with_method

SPEC = with_method(
    RunSpec(
        train_samples=200,
        trusted=30,
        test_samples=50,
        shift="symmetric:0.4",
        model="lenet5",
        recipe=Recipe(epochs=2, batch_size=64),
    ),
    "uniform",
)


def run_at(folder: Path, spec: RunSpec = SPEC) -> Run:
    run = Run.create(folder, spec.as_json())
    make_recorded(spec, run).finish()
    return run


def test_a_loss_is_that_of_the_step_that_used_the_sample(tmp_path: Path) -> None:
    spec = replace(SPEC, recipe=replace(SPEC.recipe, epochs=1, batch_size=1000))
    losses = run_at(tmp_path / "run", spec).losses()
    fresh = make_recorded(spec, Run.create(tmp_path / "fresh", spec.as_json()))
    inputs, targets = fresh.split.train.take(torch.arange(len(fresh.split.train)))
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(fresh.model(inputs), targets, reduction="none")
    assert losses.shape == (1, len(targets))
    assert losses[0] == pytest.approx(expected.numpy(), abs=2e-3)


def test_a_method_without_training_data_has_none(tmp_path: Path) -> None:
    assert run_at(tmp_path / "run", with_method(SPEC, "clean")).losses().shape == (0, 0)
