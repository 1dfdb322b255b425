"""Every estimator is a solver of every method that matches."""

from typing import get_args

import pytest
import torch

from diw.matching import Solver, kmm
from diw.methods import make

OTHERS = [name for name in get_args(Solver) if name != "cvxopt"]


@pytest.mark.parametrize("solver", OTHERS)
def test_losses_are_matched_by_any_solver(solver: str) -> None:
    generator = torch.Generator().manual_seed(0)
    train = torch.rand(40, generator=generator) * 3
    trusted = torch.rand(30, generator=generator)
    [match] = make("diw", {"solver": solver}).solve([(train, trusted)])
    assert torch.equal(match.weights, kmm(train, trusted, solver=solver).weights)
    assert match.weights.dtype == torch.float32


def test_a_penalty_reaches_the_solver_and_the_spec_only_when_set() -> None:
    train, trusted = torch.rand(40), torch.rand(30) * 0.5
    [match] = make("diw", {"solver": "el", "penalty": 0.25}).solve([(train, trusted)])
    assert match.penalty == 0.25
    assert "penalty" not in make("diw", {"solver": "el"}).fields()
    assert make("diw", {"penalty": 0.25}).fields()["penalty"] == 0.25
