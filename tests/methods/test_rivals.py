"""Other authors' methods against their definitions, computed another way."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import diw
from diw.errors import UsageError
from diw.matching.problem import make_problem
from diw.methods import make
from diw.methods.adiw import projected_steps
from diw.methods.glc import transition_matrix
from tests.contract.cases import CLASSES, Case, N, batch, objective_of
from tests.networks import plain_network, samples


def probabilities(network: nn.Module, inputs: Tensor) -> np.ndarray:
    with torch.no_grad():
        logits = network(inputs).double().numpy()
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def pretrained_twin(trusted: int = 20) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """The network that `objective_of` pretrains, and its trusted samples."""
    from tests.contract.cases import pretrained

    return pretrained(plain_network(torch.float64)), samples(
        trusted, seed=2, dtype=torch.float64, classes=CLASSES
    )


def expected_matrix() -> np.ndarray:
    network, (inputs, labels) = pretrained_twin()
    p = probabilities(network, inputs)
    return np.stack([p[labels.numpy() == i].mean(axis=0) for i in range(CLASSES)])


def test_the_transitions_are_mean_predictions_by_true_class() -> None:
    network, trusted = pretrained_twin()
    rows = diw.step.rows.as_rows(trusted)
    np.testing.assert_allclose(transition_matrix(network, rows, "glc"), expected_matrix())


def test_a_class_without_trusted_samples_keeps_its_labels() -> None:
    network, (inputs, labels) = pretrained_twin()
    few = diw.step.rows.as_rows((inputs[labels != 1], labels[labels != 1]))
    np.testing.assert_array_equal(transition_matrix(network, few, "glc")[1], [0, 1, 0])


def test_glc_learns_given_labels_through_the_transitions() -> None:
    known = torch.arange(0, 6)
    objective = objective_of(Case("glc"), dtype=torch.float64, trusted_index=known)
    data = batch(dtype=torch.float64)
    result = objective(data)
    p = probabilities(objective.network, data.inputs)
    labels = data.targets.numpy()
    noisy = (p @ expected_matrix())[np.arange(N), labels]
    clean = p[np.arange(N), labels]
    is_known = np.isin(np.arange(N), known.numpy())
    expected = -np.log(np.where(is_known, clean, noisy)).mean()
    assert result.loss.item() == pytest.approx(expected, rel=1e-12)
    with torch.no_grad():  # not training: the plain loss
        assert objective(data).loss.item() == pytest.approx(-np.log(clean).mean(), rel=1e-12)


def test_iw_t_weighs_by_the_ratio_of_probabilities() -> None:
    objective = objective_of(Case("iw-t"), dtype=torch.float64)
    data = batch(dtype=torch.float64)
    weights = objective(data).weights.train
    p, labels = probabilities(objective.network, data.inputs), data.targets.numpy()
    ratio = p[np.arange(N), labels] / (p @ expected_matrix())[np.arange(N), labels]
    np.testing.assert_allclose(weights, ratio / ratio.mean(), rtol=1e-12)


def test_transitions_need_class_numbers() -> None:
    inputs, _ = samples(10)
    objective = diw.Objective(
        plain_network(), "glc", (inputs, torch.rand(10)), pretrain=lambda _: plain_network()
    )
    with pytest.raises(UsageError, match="trusted: glc needs a class number"):
        objective.prepare()


def test_elr_holds_to_the_average_of_past_predictions() -> None:
    objective = objective_of(Case("elr", {"strength": 2.0, "memory": 0.6}), dtype=torch.float64)
    optimizer = torch.optim.SGD(objective.network.parameters(), lr=0.5)
    targets = np.zeros((N, CLASSES))
    for rows in (torch.arange(0, 30), torch.arange(18, N), torch.arange(0, 30)):
        data = batch(dtype=torch.float64)
        part = diw.Batch(data.inputs[rows], data.targets[rows], rows)
        p = probabilities(objective.network, part.inputs).clip(1e-4, 1 - 1e-4)
        places = rows.numpy()
        targets[places] = 0.6 * targets[places] + 0.4 * p / p.sum(axis=1, keepdims=True)
        plain = -np.log(probabilities(objective.network, part.inputs))[
            np.arange(len(rows)), part.targets.numpy()
        ]
        expected = plain + 2.0 * np.log(1 - (p * targets[places]).sum(axis=1))
        loss = objective(part).loss
        assert loss.item() == pytest.approx(expected.mean(), rel=1e-6)  # the average is in float32
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        objective.after_step()


def test_adiw_goes_on_from_the_weights_of_the_last_visit() -> None:
    objective = objective_of(Case("adiw", {"steps": 3}), dtype=torch.float64)
    data, (x_trusted, y_trusted) = batch(dtype=torch.float64), pretrained_twin()[1]
    criterion = nn.CrossEntropyLoss(reduction="none")
    start = None
    for _ in range(2):
        with torch.no_grad():
            ours = criterion(objective.network(data.inputs), data.targets)
            theirs = criterion(objective.network(x_trusted), y_trusted)
        problem = make_problem(ours.numpy(), theirs.numpy(), gamma="quantile:0.5")
        moved = torch.as_tensor(projected_steps(problem, start, steps=3))
        weights = objective(data).weights.train
        start = moved.float().double().numpy()  # what the memory keeps
        torch.testing.assert_close(weights, moved / moved.mean(), rtol=1e-6, atol=0)
    exact = diw.kmm(ours, theirs, gamma="quantile:0.5")
    assert (moved - exact.weights).norm() < (torch.ones(N) - exact.weights).norm()


@pytest.mark.parametrize(
    ("method", "fields", "words"),
    [
        ("adiw", {"solver": "kliep"}, "adiw.solver"),
        ("adiw", {"steps": 0}, "adiw.steps"),
        ("elr", {"memory": 1.0}, "elr.memory"),
        ("elr", {"strength": -1.0}, "elr.strength"),
        ("mwnet", {"look_ahead": 0.0}, "mwnet.look_ahead"),
        ("glc", {"pretraining": 0}, "glc.pretraining"),
    ],
)
def test_wrong_fields_are_named(method: str, fields: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make(method, fields)


def test_elr_without_an_index_says_what_to_yield() -> None:
    inputs, targets = samples(16)
    objective = diw.Objective(plain_network(), "elr", samples(8, seed=1))
    with pytest.raises(UsageError, match="elr has to know each sample"):
        objective((inputs, targets))
