import warnings

import pytest
import torch
from torch import nn

import diw
from diw.errors import DIWWarning
from diw.step.batch import Batch
from diw.step.rows import TensorRows, as_rows
from diw.step.watch import Overlap

INPUTS = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
TARGETS = (INPUTS[:, 0] > 0).long()


def said(objective: diw.Objective, epochs: int, targets: torch.Tensor = TARGETS) -> list[str]:
    """The warnings of a loop of one's own, with as many epochs; none: 450 steps."""
    optimizer = torch.optim.Adam(objective.network.parameters(), lr=0.02)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DIWWarning)
        for epoch in range(1, epochs + 1 if epochs else 2):
            if epochs:
                objective.start_epoch(epoch)
            for _ in range(5 if epochs else 450):
                optimizer.zero_grad()
                objective((INPUTS, targets, torch.arange(40))).loss.backward()
                optimizer.step()
                objective.after_step()
    return [str(warning.message) for warning in caught]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2))


def one_sample(method: str = "truth") -> diw.Objective:
    """An objective in which a single sample has all the weight."""
    weights = torch.zeros(40)
    weights[3] = 40.0
    return diw.Objective(network(), method, trusted=(INPUTS[:8], TARGETS[:8]), true_weights=weights)


@pytest.mark.parametrize(("epochs", "unit"), [(4, "epoch"), (0, "step")])
def test_unhealthy_weights_are_said_once_each(epochs: int, unit: str) -> None:
    first, second = said(one_sample(), epochs)
    assert first.startswith(f"weights: from {unit} 1: few samples carry the training")
    assert second.startswith(f"weights: from {unit} 1: nine tenths of the weights are zero")
    assert "bound" in first
    assert "--set" not in first


def test_healthy_weights_are_left_in_peace() -> None:
    objective = diw.Objective(network(), "uniform", trusted=(INPUTS[:8], TARGETS[:8]))
    assert said(objective, 4) == []


def test_a_trusted_loss_that_rises_while_labels_are_learnt_by_heart_is_said() -> None:
    wrong = torch.randint(0, 2, (40,), generator=torch.Generator().manual_seed(1))
    trusted = torch.randn(30, 6, generator=torch.Generator().manual_seed(2))
    method = diw.methods.make("diw", {"ridge": 1e3})  # so large that every weight is nearly one
    objective = diw.Objective(network(), method, trusted=(trusted, (trusted[:, 0] > 0).long()))
    words = said(objective, 40, wrong)
    assert sum("learns labels by heart" in line for line in words) == 1


def rows(count: int, seed: int, shape: tuple[int, ...] = (3, 8, 8)) -> torch.Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def seen(*batches: torch.Tensor) -> Overlap:
    overlap = Overlap()
    for inputs in batches:
        overlap.see(Batch(inputs, torch.zeros(len(inputs), dtype=torch.long)))
    return overlap


def trusted(inputs: torch.Tensor) -> TensorRows:
    return TensorRows(inputs, torch.zeros(len(inputs), dtype=torch.long))


def test_it_finds_samples_that_were_trained_on() -> None:
    first, second = rows(40, 1), rows(24, 2)
    assert seen(first, second).found(trusted(second[5:15])) is True
    assert seen(first).found(trusted(second)) is False
    assert seen().found(trusted(second)) is None


def test_one_common_sample_is_enough() -> None:
    train, other = rows(50, 3), rows(30, 4)
    other[17] = train[49]
    assert seen(train[:25], train[25:]).found(trusted(other)) is True


def test_values_of_any_size_and_kind_are_told_apart() -> None:
    large = 1e6 + rows(20, 5, (2000,)).double()
    assert seen(large).found(trusted(large[:3])) is True
    assert seen(large).found(trusted(large[:3] + 1)) is False
    words = torch.randint(0, 1000, (20, 7), generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(20, dtype=torch.long)
    mapping = as_rows({"input_ids": words, "labels": labels})
    overlap = Overlap()
    overlap.see(Batch({"input_ids": words[10:]}, labels[10:]))
    assert overlap.found(mapping) is True


@pytest.mark.parametrize(("first", "words"), [(1000, 1), (0, 0)])
def test_places_of_trusted_samples_that_never_come_up_are_said(first: int, words: int) -> None:
    """All weights stayed one."""
    places = torch.arange(first, first + 8)
    objective = diw.Objective(
        network(), "remember", (INPUTS[:8], TARGETS[:8]), trusted_index=places
    )
    found = [line for line in said(objective, 3) if line.startswith("trusted_index: none of these")]
    assert len(found) == words
