"""Looking leaves no trace in the network being trained."""

import copy

import pytest
import torch
from torch import nn

from tests.contract.cases import CASES, batch, objective_of
from tests.networks import noisy_network, samples

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def prepared_network() -> nn.Module:
    """Batch norm and dropout, one module in another mode, gradients already there."""
    model = noisy_network().train()
    model[1].momentum = 0.3
    model[3].eval()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    return model


@every_case
def test_weighing_touches_neither_mode_nor_buffers_nor_gradients_nor_random_state(case) -> None:
    model = prepared_network()
    objective = objective_of(case, model=model, network=noisy_network)
    objective.prepare()  # a method may set the initial parameters here, and nothing later
    before = copy.deepcopy(model)
    torch.manual_seed(11)
    state = torch.get_rng_state()
    objective.weigh(batch())
    assert torch.equal(torch.get_rng_state(), state)
    assert [m.training for m in model.modules()] == [m.training for m in before.modules()]
    for ours, theirs in zip(model.state_dict().values(), before.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    for parameter in model.parameters():
        assert parameter.requires_grad
        assert torch.equal(parameter.grad, torch.ones_like(parameter))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@every_case
def test_a_whole_step_leaves_what_one_plain_forward_leaves(case) -> None:
    model = noisy_network().train()
    objective = objective_of(case, model=model, network=noisy_network)
    objective.prepare()
    plain = copy.deepcopy(model)
    torch.manual_seed(12)
    result = objective(batch())
    state = torch.get_rng_state()
    torch.manual_seed(12)
    if result.weights.train is not None:
        assert torch.equal(result.outputs, plain(batch().inputs))
    if result.weights.trusted is not None:  # trained on, too
        order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
        plain(samples(20, seed=2)[0][order])
    assert torch.equal(torch.get_rng_state(), state)
    for ours, theirs in zip(model.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)
