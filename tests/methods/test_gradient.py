"""Weights that lower the trusted loss, against automatic differentiation through a whole step."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from diw.errors import DIWWarning
from diw.objective import Objective
from tests.contract.cases import Case, batch, objective_of
from tests.networks import samples

DTYPE = torch.float64


def plain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def with_batch_norm() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def with_dropout() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))


def with_both() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3)
    )


def convolutional() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)),
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6, 3),
    )


class Cube(torch.autograd.Function):
    """x³ with a first and a second derivative, but none in forward mode."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class Cubed(nn.Module):
    def forward(self, x):
        return Cube.apply(x)


def without_forward_mode() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), Cubed(), nn.Linear(8, 3))


def network(make) -> nn.Module:
    torch.manual_seed(0)
    return make().to(DTYPE).train()


def literal_definition(model: nn.Module, train, trusted) -> torch.Tensor:
    """Ren et al. 2018, Algorithm 1, as written: a look-ahead step, differentiated through.

    ε = 0; θ̂(ε) = θ − α ∇_θ Σ ε_i ℓ_i; w_i = max(0, −∂L_trusted(θ̂(ε))/∂ε_i), mean one.
    """
    model = copy.deepcopy(model)
    parameters = dict(model.named_parameters())
    torch.manual_seed(9)
    losses = functional.cross_entropy(model(train[0]), train[1], reduction="none")
    epsilon = torch.zeros_like(losses, requires_grad=True)
    gradients = torch.autograd.grad(
        (epsilon * losses).sum(), list(parameters.values()), create_graph=True
    )
    ahead = {
        name: parameter - 0.1 * gradient
        for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
    }
    torch.manual_seed(9)
    outputs = functional_call(model, ahead, (trusted[0],))
    loss = functional.cross_entropy(outputs, trusted[1])
    weights = (-torch.autograd.grad(loss, epsilon)[0]).clamp(min=0)
    return weights / weights.mean()


@pytest.mark.parametrize("make", [plain, with_batch_norm, with_dropout, with_both, convolutional])
def test_it_is_the_look_ahead_of_the_paper(make) -> None:
    model = network(make)
    train, trusted = samples(24, seed=1, dtype=DTYPE), samples(10, seed=2, dtype=DTYPE)
    model(samples(50, seed=3, dtype=DTYPE)[0])  # buffers that have moved
    objective = Objective(model, "reweight", trusted)
    first = Objective(model, "reweight", trusted).step(train).trusted  # in the order of its draw
    expected = literal_definition(model, train, (first.inputs, first.targets))
    torch.manual_seed(9)
    weights = objective.weigh(train)
    assert weights.train.count_nonzero() not in (0, 24)  # both signs occur
    torch.testing.assert_close(weights.train, expected, rtol=1e-10, atol=1e-10)
    assert weights.metrics["forward_mode"] == 1


def test_without_forward_mode_it_falls_back_and_says_so_once() -> None:
    model = network(without_forward_mode)
    train, trusted = samples(24, seed=1, dtype=DTYPE), samples(10, seed=2, dtype=DTYPE)
    objective = Objective(model, "reweight", trusted)
    with pytest.warns(DIWWarning, match="a layer without a forward-mode derivative"):
        weights = objective.weigh(train)
    expected = literal_definition(model, train, trusted)
    torch.testing.assert_close(weights.train, expected, rtol=1e-10, atol=1e-10)
    assert weights.metrics["forward_mode"] == 0
    assert objective.weigh(train).metrics["forward_mode"] == 0  # without another warning


@pytest.mark.parametrize("make", [plain, with_both, convolutional])
def test_both_ways_agree(make) -> None:
    model = network(make)
    objective = Objective(model, "reweight", samples(10, seed=2, dtype=DTYPE))
    train = samples(24, seed=1, dtype=DTYPE)
    direction = objective.step(train).trusted_gradient()
    torch.manual_seed(4)
    forward = objective.step(train).loss_jvp(direction)
    backward = objective.step(train).loss_jvp_by_double_backward(direction)
    torch.testing.assert_close(forward, backward, rtol=1e-10, atol=1e-12)


def test_frozen_parameters_do_not_take_part() -> None:
    model = network(plain)
    model[0].requires_grad_(False)
    train, trusted = samples(24, seed=1, dtype=DTYPE), samples(10, seed=2, dtype=DTYPE)
    weights = Objective(model, "reweight", trusted).weigh(train).train
    # The definition on the part that is trained, for fixed features.
    head = model[2]
    features, trusted_features = model[:2](train[0]).detach(), model[:2](trusted[0]).detach()
    expected = literal_definition(head, (features, train[1]), (trusted_features, trusted[1]))
    torch.testing.assert_close(weights, expected, rtol=1e-10, atol=1e-10)


def test_a_real_error_is_not_taken_for_a_missing_derivative() -> None:
    class Broken(nn.Module):
        def forward(self, x):
            if not x.requires_grad:
                raise RuntimeError("out of memory")
            return x

    model = network(plain).append(Broken())
    objective = Objective(model, "reweight", samples(10, seed=2, dtype=DTYPE))
    with pytest.raises(RuntimeError, match="out of memory"):
        objective.weigh(samples(24, seed=1, dtype=DTYPE))


def test_mwnet_moves_down_the_trusted_loss_of_the_step_it_tries() -> None:
    """The gradient that V receives, against automatic differentiation through the whole step."""
    objective = objective_of(Case("mwnet", {"look_ahead": 0.3}), dtype=DTYPE)
    method, network = objective.method, objective.network
    before = {name: value.clone() for name, value in method.state_dict()["net"].items()}
    data, (x_trusted, y_trusted) = batch(dtype=DTYPE), samples(20, seed=2, dtype=DTYPE)
    objective(data)
    after = method.state_dict()["net"]

    def weight_of(theta: dict[str, Tensor], losses: Tensor) -> Tensor:
        hidden = torch.relu(losses[:, None] @ theta["0.weight"].T + theta["0.bias"])
        return torch.sigmoid(hidden @ theta["2.weight"].T + theta["2.bias"]).squeeze(1)

    theta = {name: value.clone().requires_grad_() for name, value in before.items()}
    parameters = {n: p.detach().clone().requires_grad_() for n, p in network.named_parameters()}
    losses = functional.cross_entropy(
        functional_call(network, parameters, (data.inputs,)), data.targets, reduction="none"
    )
    weighted = (weight_of(theta, losses.detach()) * losses).mean()
    gradients = torch.autograd.grad(weighted, list(parameters.values()), create_graph=True)
    moved = {n: p - 0.3 * g for (n, p), g in zip(parameters.items(), gradients, strict=True)}
    trusted = functional.cross_entropy(functional_call(network, moved, (x_trusted,)), y_trusted)
    expected = torch.autograd.grad(trusted, list(theta.values()))

    reference = {name: nn.Parameter(value.clone()) for name, value in before.items()}
    adam = torch.optim.Adam(reference.values(), lr=1e-3, weight_decay=1e-4)
    for parameter, gradient in zip(reference.values(), expected, strict=True):
        parameter.grad = gradient
    adam.step()
    for name, value in reference.items():
        torch.testing.assert_close(after[name], value.detach(), rtol=1e-9, atol=1e-12)
