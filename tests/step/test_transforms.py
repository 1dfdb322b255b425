import pytest
import torch

from diw.errors import UsageError
from diw.step.batch import Batch, Outputs
from diw.step.transforms import HiddenOutput, LossValue, RawInput, WholeOutput

BATCH = Batch(torch.rand(5, 2, 3), torch.arange(5))
OUTPUTS = Outputs(
    values=torch.rand(5, 4, requires_grad=True),
    maybe_losses=torch.rand(5, requires_grad=True),
    maybe_hidden=torch.rand(5, 7),
)


def test_what_each_transformation_takes() -> None:
    assert torch.equal(LossValue()(BATCH, OUTPUTS), OUTPUTS.losses)
    assert torch.equal(HiddenOutput()(BATCH, OUTPUTS), OUTPUTS.hidden)
    assert torch.equal(WholeOutput()(BATCH, OUTPUTS), OUTPUTS.values)
    assert torch.equal(RawInput()(BATCH, OUTPUTS), BATCH.inputs.reshape(5, 6))


@pytest.mark.parametrize("transform", [LossValue(), HiddenOutput(), WholeOutput(), RawInput()])
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
    assert RawInput()(tokens, OUTPUTS).dtype == torch.float32


def test_only_losses_keep_the_classes_together() -> None:
    assert not LossValue().by_class
    assert all(kind().by_class for kind in (HiddenOutput, WholeOutput, RawInput))
    assert not HiddenOutput(by_class=False).by_class


def test_only_hidden_outputs_need_a_tap() -> None:
    assert HiddenOutput.taps
    assert not any(kind.taps for kind in (LossValue, WholeOutput, RawInput))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="needs labels for the trusted samples"):
        LossValue()(BATCH, Outputs(OUTPUTS.values, None))
    with pytest.raises(UsageError, match="did not ask for a hidden output"):
        HiddenOutput()(BATCH, Outputs(OUTPUTS.values, None))
