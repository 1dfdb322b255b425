import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from diw.errors import UsageError
from diw.step.batch import Batch
from diw.step.stream import TrustedStream, as_rows
from tests.networks import samples


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 3))
def test_a_pass_sees_each_sample_once_in_batches_of_nearly_one_size(m, batch_size, seed) -> None:
    stream = TrustedStream(as_rows(samples(m)), batch_size, seed)
    batches = [stream.draw().index for _ in range(stream.batches_per_pass)]
    sizes = [len(index) for index in batches]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
    assert torch.equal(torch.cat(batches).sort().values, torch.arange(m))


def test_the_seed_decides_and_the_state_resumes() -> None:
    rows = as_rows(samples(50))
    first, second = TrustedStream(rows, 16, 7), TrustedStream(rows, 16, 7)
    for _ in range(9):
        first.draw()
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.draw().inputs, second.draw().inputs)
    other = TrustedStream(rows, 16, 8)
    other.load_state_dict({"drawn": 9})
    second.load_state_dict({"drawn": 9})
    assert not torch.equal(other.draw().inputs, second.draw().inputs)


def test_passes_are_in_different_orders() -> None:
    stream = TrustedStream(as_rows(samples(50)), 50, 0)
    assert not torch.equal(stream.draw().index, stream.draw().index)


@pytest.mark.parametrize(
    "trusted",
    [
        samples(6),
        tuple(part.numpy() for part in samples(6)),
        Batch(*samples(6)),
        TensorDataset(*samples(6)),
    ],
    ids=["tensors", "arrays", "batch", "dataset"],
)
def test_the_usual_forms_of_a_data_set(trusted) -> None:
    batch = TrustedStream(as_rows(trusted), 4, 0).draw()
    inputs, targets = samples(6)
    assert torch.equal(batch.inputs, inputs[batch.index])
    assert torch.equal(batch.targets, targets[batch.index])


def test_dict_inputs_and_unlabelled_samples() -> None:
    inputs, _ = samples(6)
    batch = TrustedStream(as_rows(({"x": inputs}, None)), 4, 0).draw()
    assert torch.equal(batch.inputs["x"], inputs[batch.index])
    assert batch.targets is None
    assert len(batch) == 3


@pytest.mark.parametrize(
    ("trusted", "message"),
    [
        ((torch.zeros(0, 4), torch.zeros(0)), "the trusted set is empty"),
        ((torch.zeros(3, 4), torch.zeros(2)), "3 inputs but 2 targets"),
        (3, "give \\(inputs, targets\\)"),
        (torch.zeros(3, 4), "inputs and targets together"),
        (([1, 2], [0, 1]), "give tensors or NumPy arrays, not int"),
        (Batch(torch.zeros(3, 4), torch.zeros(2)), "3 inputs but 2 targets"),
    ],
)
def test_bad_trusted_sets(trusted, message) -> None:
    with pytest.raises(UsageError, match=f"trusted: .*{message}"):
        as_rows(trusted)


def test_bad_batch_size() -> None:
    with pytest.raises(UsageError, match="trusted_batch_size"):
        TrustedStream(as_rows(samples(6)), 0, 0)
