"""The paper's nine against its equations, written out for a small network."""

import pytest
import torch

import diw
from diw.errors import UsageError
from diw.methods import Diw, Diw1F, SiwF, find, make
from tests.contract.cases import Case, batch, objective_of, pretrained, whole_train
from tests.networks import plain_network, samples

DTYPE = torch.float64
NINE = {
    "iw": ("inputs", "none", True),
    "siw-f": ("hidden", "pretrained", True),
    "siw-l": ("losses", "pretrained", False),
    "diw1-f": ("hidden", "pretrained", True),
    "diw1-l": ("losses", "pretrained", False),
    "diw2-f": ("hidden", "own", True),
    "diw": ("losses", "own", False),
    "diw3-f": ("hidden", "pretrained", True),
    "diw3-l": ("losses", "pretrained", False),
}
"""What is matched, by which network, and whether each class alone."""


def values_of(matched: str, network: torch.nn.Module, data) -> torch.Tensor:
    """What is matched, written out for the plain network of the tests."""
    inputs, targets = data
    with torch.no_grad():
        if matched == "losses":
            return torch.nn.functional.cross_entropy(network(inputs), targets, reduction="none")
        return {"hidden": network[:2], "output": network, "inputs": torch.nn.Identity()}[matched](
            inputs
        )


def expected_weights(z, y, z_trusted, y_trusted, by_class: bool) -> torch.Tensor:
    """Eq. (10) of the paper for all samples, or Eq. (8) class by class; mean one."""
    if by_class:
        weights = torch.zeros(len(y), dtype=DTYPE)
        for label in range(3):
            ours, theirs = y == label, y_trusted == label
            v = diw.kmm(z[ours], z_trusted[theirs]).weights
            weights[ours] = v / v.mean() * theirs.double().mean() / ours.double().mean()
    else:
        weights = diw.kmm(z, z_trusted).weights
    return weights / weights.mean()


CASES = [
    *(Case(name) for name in NINE),
    *(Case(name, {"features": "output"}) for name, (what, *_) in NINE.items() if what == "hidden"),
    *(Case(name, {"partition": False}) for name, (*_, by_class) in NINE.items() if by_class),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_weights_are_those_of_the_papers_equations(case) -> None:
    matched, network, by_class = NINE[case.method]
    looks = plain_network(DTYPE) if network == "own" else pretrained(plain_network(DTYPE))
    matched = case.fields.get("features", matched)
    train, trusted = whole_train(DTYPE), samples(20, seed=2, dtype=DTYPE)
    expected = expected_weights(
        values_of(matched, looks, train),
        train[1],
        values_of(matched, looks, trusted),
        trusted[1],
        by_class and case.fields.get("partition", True),
    )
    found = objective_of(case, dtype=DTYPE).weigh(batch(dtype=DTYPE)).train
    torch.testing.assert_close(found, expected)


def test_typed_methods_and_names_are_the_same_thing() -> None:
    assert find("diw2-l") is Diw
    assert make("diw", {"bound": "7", "gamma": "median"}) == Diw(bound=7.0, gamma="median")
    assert SiwF.needs == {"train", "index", "pretrain"}
    assert Diw1F.costs_like == "diw2-f"


def test_the_solver_goes_by_the_word_of_specs_too() -> None:
    assert make("diw", {"solver": "diw"}) == Diw(solver="exact")
    assert Diw().fields()["solver"] == "diw"
    with pytest.raises(UsageError, match=r"^diw\.solver: choose exact, stopped, cvxopt, not 'el'"):
        make("diw", {"solver": "el"})


def test_a_field_that_adiw_lost_is_in_its_specs() -> None:
    adiw = make("adiw", {"solver": "pgd", "steps": 2})
    assert adiw.fields()["solver"] == "pgd"
    assert "solver" not in {field.name for field in diw.methods.describe(type(adiw))}
    with pytest.raises(UsageError, match=r"^adiw\.solver: adiw has no field"):
        make("adiw", {"solver": "exact"})
