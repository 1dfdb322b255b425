"""The solvers of the methods that match, and how a spec names them."""

import pytest
import torch

from diw.matching import kmm
from diw.methods import make


@pytest.mark.parametrize("solver", ["exact", "stopped"])
def test_losses_are_matched_by_any_solver(solver: str) -> None:
    generator = torch.Generator().manual_seed(0)
    train = torch.rand(40, generator=generator) * 3
    trusted = torch.rand(30, generator=generator)
    [match] = make("diw", {"solver": solver}).solve([(train, trusted)])
    assert torch.equal(match.weights, kmm(train, trusted, solver=solver).weights)
    assert match.weights.dtype == torch.float32


def test_specs_keep_the_old_word_of_the_exact_solver() -> None:
    """Kept runs are found by a hash of it."""
    for fields in ({}, {"solver": "diw"}, {"solver": "exact"}):
        method = make("diw", fields)
        assert method.solver == "exact"
        assert method.fields()["solver"] == "diw"
    assert make("diw", {"solver": "stopped"}).fields()["solver"] == "stopped"
    assert make("adiw", {}).fields()["solver"] == "pgd"
    assert make("adiw", make("adiw", {}).fields()).solver == "pgd"
