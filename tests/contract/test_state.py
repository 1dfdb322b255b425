"""A method's state survives saving and loading, and one trained with it goes on bit for bit."""

import io
import pickle

import pytest
import torch

from diw.methods import find, make
from tests.contract.cases import CASES, DEFAULTS, batch, objective_of
from tests.networks import noisy_network


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_loaded_state_goes_on_bit_for_bit(case) -> None:
    model = noisy_network()
    first = objective_of(case, model=model, network=noisy_network, trusted_batch_size=8)
    for part in (slice(0, 16), slice(16, 32), slice(32, 48)):
        first.weigh(batch(part))
        first.after_step()
    second = objective_of(
        case, model=model, network=noisy_network, trusted_batch_size=8, may_prepare=False
    )
    second.load_state_dict(saved_and_loaded(first.state_dict()))
    for part in (slice(0, 16), slice(8, 40)):
        ours, theirs = first.weigh(batch(part)), second.weigh(batch(part))
        for a, b in ((ours.train, theirs.train), (ours.trusted, theirs.trusted)):
            assert (a is None and b is None) or torch.equal(a, b)
        assert ours.metrics == theirs.metrics


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_saved_state_does_not_move_with_the_method(case) -> None:
    objective = objective_of(case, trusted_batch_size=8)
    objective.weigh(batch(slice(0, 16)))
    state = objective.state_dict()
    before = io.BytesIO()
    torch.save(state, before)
    objective.weigh(batch(slice(0, 16)))
    after = io.BytesIO()
    torch.save(state, after)
    assert before.getvalue() == after.getvalue()


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_fields_make_the_same_method_again(case) -> None:
    method = make(case.method)
    again = make(method.name, method.fields())
    assert again.fields() == method.fields()
    assert type(again) is find(case.method)
    assert (type(method).__doc__ or "").strip()


@pytest.mark.parametrize("case", DEFAULTS, ids=str)
def test_methods_can_be_pickled_with_their_state(case) -> None:
    objective = objective_of(case)
    objective.step(batch())
    again = pickle.loads(pickle.dumps(objective.method))
    assert type(again) is find(case.method)
    assert again.fields() == objective.method.fields()
    assert str(again.state_dict()) == str(objective.method.state_dict())
