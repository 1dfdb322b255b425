"""A method is four choices: every combination that makes sense works, the others are refused."""

import gc
import pickle
from itertools import product

import pytest
import torch

import diw
from diw.methods import describe, find, make, methods
from diw.methods.composed import METHODS, compose
from diw.methods.dynamic import EachBatch
from diw.methods.matching import (
    ByClass,
    Frozen,
    HiddenOutputs,
    Logits,
    LossValues,
    NoNetwork,
    PretrainedStart,
    RawInputs,
    Together,
    Trained,
)
from diw.methods.static import Once
from tests.contract.cases import Case, batch, objective_of, pretrained, whole_train
from tests.networks import plain_network, samples

DTYPE = torch.float64
SENSIBLE = [
    (matched, network, when, classes)
    for matched, network, when, classes in product(
        (LossValues, HiddenOutputs, Logits, RawInputs),
        (NoNetwork, Frozen, Trained, PretrainedStart),
        (Once, EachBatch),
        (ByClass, Together),
    )
    if (network is not NoNetwork or matched is RawInputs)
    and (when is EachBatch or network in (NoNetwork, Frozen))
]


@pytest.fixture(autouse=True)
def _only_the_papers_methods_remain():
    before = list(methods())
    yield
    gc.collect()  # a class is registered for as long as it lives
    assert list(methods()) == before


def values_of(matched, network, data) -> torch.Tensor:
    """What is matched, written out for the plain network of the tests."""
    inputs, targets = data
    with torch.no_grad():
        if matched is LossValues:
            return torch.nn.functional.cross_entropy(network(inputs), targets, reduction="none")
        return {HiddenOutputs: network[:2], Logits: network, RawInputs: torch.nn.Identity()}[
            matched
        ](inputs)


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


@pytest.mark.parametrize("choices", SENSIBLE, ids=lambda c: "-".join(x.__name__ for x in c))
def test_every_sensible_combination_is_a_method(choices) -> None:
    matched, network, _, classes = choices
    method = compose("made-up", *choices, "Made up.")
    objective = objective_of(Case("made-up"), dtype=DTYPE)
    assert isinstance(objective.method, method)
    looks = plain_network(DTYPE) if network is Trained else pretrained(plain_network(DTYPE))
    train, trusted = whole_train(DTYPE), samples(20, seed=2, dtype=DTYPE)
    expected = expected_weights(
        values_of(matched, looks, train),
        train[1],
        values_of(matched, looks, trusted),
        trusted[1],
        classes is ByClass,
    )
    torch.testing.assert_close(objective.weigh(batch(dtype=DTYPE)).train, expected)


def test_siw_on_logits_is_one_line() -> None:
    siw_logits = compose("siw-o", Logits, Frozen, Once, ByClass, "Matches logits, once.")
    assert list(methods())[-1] == "siw-o"
    assert find("siw-o") is siw_logits
    fields = {field.name: field.default for field in describe(siw_logits)}
    others = {"scale_within_class": True, "solver": "exact"}
    assert fields == make("siw-o").fields() | others  # specs leave out the one, rename the other
    assert list(fields) == [
        *("gamma", "bound", "slack", "ridge", "solver", "pretraining", "partition"),
        "scale_within_class",
    ]
    assert make("siw-o", {"pretraining": "3"}).fields()["pretraining"] == 3
    ours = objective_of(Case("siw-o")).weigh(batch()).train
    theirs = objective_of(Case("siw-f", {"features": "output"})).weigh(batch()).train
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ((LossValues, Trained, Once, Together), "can look before training"),
        ((LossValues, PretrainedStart, Once, Together), "can look before training"),
        ((HiddenOutputs, NoNetwork, EachBatch, ByClass), "only the inputs can be matched"),
    ],
)
def test_combinations_without_sense_are_refused(choices, message) -> None:
    with pytest.raises(TypeError, match=f"^nonsense: .*{message}"):
        compose("nonsense", *choices, "Nonsense.")
    assert "nonsense" not in methods()


@pytest.mark.parametrize("method", [cls.name for cls in METHODS])
def test_composed_methods_can_be_pickled_with_their_state(method) -> None:
    objective = objective_of(Case(method, {"bound": 7.0}), dtype=DTYPE)
    objective.weigh(batch(dtype=DTYPE))
    again = pickle.loads(pickle.dumps(objective.method))
    assert type(again) is find(method)
    assert again.fields() == objective.method.fields()
    assert str(again.state_dict()) == str(objective.method.state_dict())
