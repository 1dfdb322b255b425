from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import TensorDataset

from diw.errors import UsageError
from diw.step.batch import Batch
from diw.step.rows import TrustedStream, Unlabelled, as_rows, in_pieces
from tests.networks import samples


@pytest.mark.parametrize(
    "data",
    [
        samples(6),
        tuple(part.numpy() for part in samples(6)),
        Batch(*samples(6)),
        TensorDataset(*samples(6)),
        as_rows(samples(6)),
    ],
    ids=["tensors", "arrays", "batch", "dataset", "rows"],
)
def test_the_usual_forms_of_a_data_set(data) -> None:
    rows, (inputs, targets) = as_rows(data), samples(6)
    index = torch.tensor([4, 0, 3])
    taken, labels = rows.take(index)
    assert torch.equal(taken, inputs[index])
    assert torch.equal(labels, targets[index])
    assert torch.equal(rows.targets, targets)
    assert len(rows) == 6


def test_dict_inputs_and_unlabelled_samples() -> None:
    inputs, _ = samples(6)
    rows = as_rows(({"x": inputs}, None))
    index = torch.tensor([5, 1])
    taken, labels = rows.take(index)
    assert torch.equal(taken["x"], inputs[index])
    assert labels is None
    assert rows.targets is None
    assert len(rows) == 6


def test_pieces_are_batches_of_the_rows_wanted_in_their_order() -> None:
    inputs, targets = samples(10)
    index = torch.tensor([9, 2, 2, 0, 5])
    pieces = list(in_pieces(as_rows((inputs, targets)), index, piece=2))
    assert [len(piece) for piece in pieces] == [2, 2, 1]
    assert torch.equal(torch.cat([piece.index for piece in pieces]), index)
    assert torch.equal(torch.cat([piece.inputs for piece in pieces]), inputs[index])
    assert torch.equal(torch.cat([piece.targets for piece in pieces]), targets[index])
    whole = in_pieces(as_rows((inputs, targets)), piece=4)
    assert torch.equal(torch.cat([piece.inputs for piece in whole]), inputs)


def test_inputs_alone_are_rows_without_labels() -> None:
    class Inputs:
        def take(self, index: torch.Tensor) -> torch.Tensor:
            return 2.0 * index

        def __len__(self) -> int:
            return 5

    (piece,) = in_pieces(Unlabelled(Inputs()))
    assert piece.inputs.tolist() == [0, 2, 4, 6, 8]
    assert piece.targets is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((torch.zeros(0, 4), torch.zeros(0)), "the train set is empty"),
        ((torch.zeros(3, 4), torch.zeros(2)), "3 inputs but 2 targets"),
        (3, "give \\(inputs, targets\\)"),
        (torch.zeros(3, 4), "inputs and targets together"),
        (([1, 2], [0, 1]), "give tensors or NumPy arrays, not int"),
        (Batch(torch.zeros(3, 4), torch.zeros(2)), "3 inputs but 2 targets"),
    ],
)
def test_bad_data_sets_are_named(data, message) -> None:
    with pytest.raises(UsageError, match=f"^train: .*{message}"):
        as_rows(data, "train")


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


def test_batches_drawn_afresh_are_samples_of_the_whole_set() -> None:
    stream = TrustedStream(as_rows(samples(50)), 16, 0, afresh=True)
    batches = [stream.draw().index for _ in range(200)]
    assert all(len(index) == len(index.unique()) == 16 for index in batches)
    counts = torch.cat(batches).bincount(minlength=50)
    assert 30 < counts.min() < counts.max() < 100  # each 64 times on average, none by turns
    assert any(set(a.tolist()) & set(b.tolist()) for a, b in pairwise(batches))
    whole = TrustedStream(as_rows(samples(6)), 16, 0, afresh=True)
    assert sorted(whole.draw().index.tolist()) == list(range(6))


def test_bad_batch_size() -> None:
    with pytest.raises(UsageError, match="trusted_batch_size"):
        TrustedStream(as_rows(samples(6)), 0, 0)
