"""The paper's nine against its equations, written out for a small network."""

import pytest
import torch
from torch.nn import functional

import diw
from diw.errors import UsageError
from diw.methods import Diw, Diw1F, SiwF, find, make
from diw.objective import Objective
from tests.contract.cases import Case, N, batch, objective_of, pretrained, whole_train
from tests.networks import noisy_network, plain_network, samples

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
    """What is matched, written out for the sequential network of the tests."""
    inputs, targets = data
    with torch.no_grad():
        if matched == "losses":
            return functional.cross_entropy(network(inputs), targets, reduction="none")
        return {"hidden": network[:-1], "output": network, "inputs": torch.nn.Identity()}[matched](
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
    looks = noisy_network(DTYPE)
    looks = (looks if network == "own" else pretrained(looks)).eval()
    matched = case.fields.get("features", matched)
    train, trusted = whole_train(DTYPE), samples(20, seed=2, dtype=DTYPE)
    expected = expected_weights(
        values_of(matched, looks, train),
        train[1],
        values_of(matched, looks, trusted),
        trusted[1],
        by_class and case.fields.get("partition", True),
    )
    objective = objective_of(case, network=noisy_network, dtype=DTYPE)
    found = objective.weigh(batch(dtype=DTYPE)).train
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


TRUSTED = samples(20, seed=2)


def test_weights_stay_when_the_network_moves_and_go_by_index() -> None:
    objective = objective_of(Case("siw-l"))
    first = objective.weigh(batch()).train
    with torch.no_grad():
        for parameter in objective.network.parameters():
            parameter.zero_()
    torch.testing.assert_close(objective.weigh(batch()).train, first)
    part = torch.tensor([7, 3, 30])
    torch.testing.assert_close(objective.weigh(batch(part)).train, first[part] / first[part].mean())


def test_truth_gives_the_true_weights() -> None:
    weights = objective_of(Case("truth")).weigh(batch()).train
    wrong = torch.arange(N) % 3 == 0
    assert (weights[wrong] == 0).all()
    assert (weights[~wrong] == 1.5).all()
    with pytest.raises(UsageError, match="truth: the true weights are unknown"):
        Objective(plain_network(), "truth", TRUSTED).weigh(batch())


@pytest.mark.parametrize("method", ["iw", "siw-f", "siw-l"])
def test_what_static_methods_need_is_named(method) -> None:
    with pytest.raises(UsageError, match=rf"train: {method} looks at the whole training set"):
        Objective(plain_network(), method, TRUSTED).weigh(batch())
    with pytest.raises(UsageError, match=rf"batch: {method} has to know each sample"):
        objective_of(Case(method)).weigh(whole_train())


def test_siw_needs_a_way_to_pretrain() -> None:
    objective = Objective(plain_network(), "siw-l", TRUSTED, train=whole_train())
    with pytest.raises(UsageError, match="pretrain: siw-l needs it"):
        objective.prepare()


def test_siw_f_works_with_many_classes() -> None:
    x, y = torch.randn(400, 4), torch.arange(400) % 100
    objective = Objective(
        plain_network(classes=100),
        "siw-f",
        (x[:200], y[:200]),
        train=(x, y),
        pretrain=lambda _: plain_network(classes=100),
    )
    result = objective.weigh((x[:64], y[:64], torch.arange(64)))
    assert result.train.isfinite().all()
    assert result.metrics["share_unmatched"] == 0


@pytest.mark.parametrize("method", [name for name, (*_, by_class) in NINE.items() if by_class])
def test_covariate_shift_needs_no_trusted_labels(method) -> None:
    matched, network, _ = NINE[method]
    trusted = samples(20, seed=2, dtype=DTYPE)

    def objective(partition: bool) -> Objective:
        made = Objective(
            noisy_network(DTYPE),
            make(method, {"partition": partition}),
            (trusted[0], None),
            train=whole_train(DTYPE),
            pretrain=lambda _: pretrained(noisy_network(DTYPE)),
        )
        made.start_epoch(2)
        return made

    looks = noisy_network(DTYPE)
    looks = (looks if network == "own" else pretrained(looks)).eval()
    values = (
        values_of(matched, looks, data) for data in (whole_train(DTYPE), samples(20, 2, DTYPE))
    )
    expected = diw.kmm(*values).weights
    actual = objective(False).weigh(batch(dtype=DTYPE)).train
    torch.testing.assert_close(actual, expected / expected.mean(), rtol=1e-6, atol=1e-6)
    with pytest.raises(UsageError, match="trusted: matching class by class needs labels"):
        objective(True).prepare()
