import pytest
import torch

from diw.errors import UsageError
from diw.step.world import Memory


def test_reads_back_what_was_written_and_nan_elsewhere() -> None:
    memory = Memory()
    memory.write("w", torch.tensor([7, 2]), torch.tensor([0.5, 1.5]))
    memory.write("w", torch.tensor([1000]), torch.tensor([3.0]))
    read = memory.read("w", torch.tensor([2, 3, 7, 1000, 99999]))
    assert read.tolist()[0::2][:2] == [1.5, 0.5]
    assert read[[1, 4]].isnan().all()
    assert read[3] == 3.0


def test_state_survives() -> None:
    memory, other = Memory(), Memory()
    memory.write("w", torch.tensor([1]), torch.tensor([2.0]))
    other.load_state_dict(memory.state_dict())
    memory.write("w", torch.tensor([1]), torch.tensor([9.0]))
    assert other.read("w", torch.tensor([1])).item() == 2.0


def test_a_loader_without_indices_gets_a_message() -> None:
    with pytest.raises(UsageError, match=r"yield \(inputs, targets, index\)"):
        Memory().read("w", None)
