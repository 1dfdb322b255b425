import warnings

import pytest
import torch
from torch import nn

import diw
from diw.errors import DIWWarning

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
