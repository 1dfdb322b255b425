import pytest
import torch

from diw.errors import UsageError
from diw.step.batch import Batch, Outputs
from diw.step.criteria import cross_entropy, hidden_outputs, logits, loss_values, raw_inputs

BATCH = Batch(torch.rand(5, 2, 3), torch.arange(5))
OUTPUTS = Outputs(
    values=torch.rand(5, 4, requires_grad=True),
    maybe_losses=torch.rand(5, requires_grad=True),
    maybe_hidden=torch.rand(5, 7),
)


def test_what_each_transformation_takes() -> None:
    assert torch.equal(loss_values(BATCH, OUTPUTS), OUTPUTS.losses)
    assert torch.equal(hidden_outputs(BATCH, OUTPUTS), OUTPUTS.hidden)
    assert torch.equal(logits(BATCH, OUTPUTS), OUTPUTS.values)
    assert torch.equal(raw_inputs(BATCH, OUTPUTS), BATCH.inputs.reshape(5, 6))


@pytest.mark.parametrize("transform", [loss_values, hidden_outputs, logits, raw_inputs])
@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_values_are_float32_at_least_and_without_gradient(transform, given, taken) -> None:
    outputs = Outputs(OUTPUTS.values.to(given), OUTPUTS.losses.to(given), OUTPUTS.hidden.to(given))
    z = transform(Batch(BATCH.inputs.to(given), BATCH.targets), outputs)
    assert z.dtype == taken
    assert not z.requires_grad


def test_integer_inputs_become_numbers() -> None:
    tokens = Batch(torch.arange(6).reshape(2, 3), torch.arange(2))
    assert raw_inputs(tokens, OUTPUTS).dtype == torch.float32


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="needs labels for the trusted samples"):
        loss_values(BATCH, Outputs(OUTPUTS.values, None))
    with pytest.raises(UsageError, match="did not ask for a hidden output"):
        hidden_outputs(BATCH, Outputs(OUTPUTS.values, None))


def test_the_part_of_a_mapping_that_may_hold_the_logits_is_named() -> None:
    with pytest.raises(UsageError, match=r"returns a dict; .*lambda outputs: outputs\['scores'\]"):
        cross_entropy({"scores": torch.rand(5, 4)}, torch.arange(5) % 4)
    with pytest.raises(UsageError, match=r"returns a tuple; .*lambda outputs: outputs\[0\]"):
        cross_entropy((torch.rand(5, 4),), torch.arange(5) % 4)
