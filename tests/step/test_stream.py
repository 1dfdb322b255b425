from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diw.errors import UsageError
from diw.step.rows import TrustedStream, as_rows
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
