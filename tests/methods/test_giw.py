"""Generalised importance weighting against its definition, computed another way."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import diw
from diw.errors import UsageError
from diw.matching.problem import width
from diw.methods import make
from tests.contract.cases import pretrained
from tests.networks import plain_network, samples

OneClassSVM = pytest.importorskip("sklearn.svm").OneClassSVM

MISSING = 2
"""The class that training lacks."""

LOSS = nn.CrossEntropyLoss(reduction="none")


def train() -> tuple[Tensor, Tensor]:
    inputs, targets = samples(90, seed=1, dtype=torch.float64, classes=3)
    return inputs[targets != MISSING], targets[targets != MISSING]


def trusted() -> tuple[Tensor, Tensor]:
    return samples(30, seed=2, dtype=torch.float64, classes=3)


def objective_of(fields: dict[str, object] | None = None, **options: object) -> diw.Objective:
    arguments = {"train": train(), "pretrain": lambda _: twin(), **options}
    return diw.Objective(plain_network(torch.float64), make("giw", fields), trusted(), **arguments)


def twin() -> nn.Module:
    """The network that the objective is given as the pretrained one."""
    return pretrained(plain_network(torch.float64))


def directions(inputs: Tensor) -> np.ndarray:
    """What enters the last layer of the pretrained network, at length one."""
    with torch.no_grad():
        hidden = twin()[:-1](inputs).numpy()
    return hidden / np.linalg.norm(hidden, axis=1, keepdims=True)


def in_support(z_train: np.ndarray, z_trusted: np.ndarray, share: float) -> np.ndarray:
    machine = OneClassSVM(gamma=width(z_train, "median"), nu=share, tol=1e-10).fit(z_train)
    return machine.predict(z_trusted) > 0


def expected_split(share: float = 0.1) -> np.ndarray:
    """(30,) whether each trusted sample lies where training has samples of its class."""
    (x, y), (x_trusted, y_trusted) = train(), trusted()
    inside = np.zeros(30, bool)
    for label in (0, 1):
        own = (y_trusted == label).numpy()
        inside[own] = in_support(directions(x[y == label]), directions(x_trusted)[own], share)
    return inside


def expected_risk(inside: np.ndarray) -> float:
    """α times the matched training loss plus 1 − α times the mean loss outside."""
    with torch.no_grad():
        ours, theirs = (
            LOSS(twin()(train()[0]), train()[1]),
            LOSS(twin()(trusted()[0]), trusted()[1]),
        )
    chosen = torch.as_tensor(inside)
    w = diw.kmm(ours, theirs[chosen]).weights
    return float(
        inside.mean() * (w * ours).sum() / w.sum() + (1 - inside.mean()) * theirs[~chosen].mean()
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_risk_is_matched_inside_and_plain_outside(reduction: str) -> None:
    inside = expected_split()
    assert 5 < inside.sum() < (trusted()[1] != MISSING).sum()
    result = objective_of(reduction=reduction)((*train(), torch.arange(len(train()[1]))))
    n = len(train()[1]) if reduction == "sum" else 1
    assert result.loss.item() == pytest.approx(n * expected_risk(inside), rel=1e-6)
    assert result.metrics["share_inside"] == inside.mean()
    assert result.weights.recorded.mean().item() == pytest.approx(1)
    assert (result.weights.trusted > 0).sum() == 30 - inside.sum()


def test_without_the_labels_inputs_alone_are_looked_for() -> None:
    inside = in_support(directions(train()[0]), directions(trusted()[0]), 0.3)
    objective = objective_of({"partition": False, "outside": 0.3})
    assert objective(train()).loss.item() == pytest.approx(expected_risk(inside), rel=1e-6)


def test_trusted_samples_in_training_do_not_vouch_for_themselves() -> None:
    (x, y), (x_trusted, y_trusted) = train(), trusted()
    both = torch.cat([x, x_trusted]), torch.cat([y, y_trusted])
    places = torch.arange(len(y), len(both[1]))
    objective = objective_of(train=both, trusted_index=places)
    objective.prepare()
    found = objective.method.state_dict()["inside"].numpy()
    np.testing.assert_array_equal(found, expected_split())


def test_with_all_of_the_support_it_is_diw3_l() -> None:
    inputs, targets = trusted()
    some = inputs[targets == 0], targets[targets == 0]
    options = {"train": some, "pretrain": lambda _: twin()}
    network = plain_network(torch.float64)
    giw = diw.Objective(network, make("giw", {"outside": 1e-6}), some, **options)(some)
    diw3 = diw.Objective(network, "diw3-l", some, **options)(some)
    assert giw.metrics["share_inside"] == 1
    assert torch.equal(giw.weights.train, diw3.weights.train)
    assert giw.loss.item() == diw3.loss.item()


def test_with_none_of_the_support_the_trusted_samples_alone_are_learned() -> None:
    targets = torch.full_like(train()[1], MISSING)
    missing = trusted()[1] != MISSING
    some = trusted()[0][missing], trusted()[1][missing]
    objective = diw.Objective(
        plain_network(torch.float64), "giw", some, train=(train()[0], targets),
        pretrain=lambda _: twin(),
    )  # fmt: skip
    result = objective((train()[0], targets))
    assert result.loss.item() == pytest.approx(LOSS(twin()(some[0]), some[1]).mean().item())
    assert not result.weights.train.any()


def test_what_it_needs_is_named() -> None:
    with pytest.raises(UsageError, match=r"giw\.outside: must be in \(0, 1\), and is 0"):
        make("giw", {"outside": 0.0})
    with pytest.raises(UsageError, match="train: giw looks at the whole training set"):
        objective_of(train=None).prepare()
