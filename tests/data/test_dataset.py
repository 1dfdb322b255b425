import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diw.data import Dataset, Inputs
from diw.data.arrays import MappedInputs
from diw.data.dataset import JoinedInputs, SubsetInputs, TensorInputs
from diw.data.encoding import ImageRows
from diw.data.images import ImageInputs

ROWS = 12


def kinds(tmp_path) -> list[Inputs]:
    """The same twelve grey images, held in every way."""
    from PIL import Image

    images = np.random.default_rng(0).integers(0, 256, (ROWS, 5, 7), np.uint8)
    np.save(tmp_path / "X.npy", images)
    files = [tmp_path / f"{row:02}.png" for row in range(ROWS)]
    for file, image in zip(files, images, strict=True):
        Image.fromarray(image).save(file)
    held = TensorInputs(torch.from_numpy(images)[:, None])
    return [
        held,
        MappedInputs(np.load(tmp_path / "X.npy", mmap_mode="r")[:, None]),
        MappedInputs(images[..., None].transpose(0, 3, 1, 2)),
        ImageInputs(files, ImageRows((1, 5, 7))),
        ImageInputs(files, ImageRows((1, 5, 7)), keep=0),
        SubsetInputs(held, torch.arange(ROWS)),
        JoinedInputs(SubsetInputs(held, torch.arange(5)), SubsetInputs(held, torch.arange(5, 12))),
    ]


def test_every_way_of_holding_gives_the_same_rows(tmp_path):
    first, *others = kinds(tmp_path)
    for index in (torch.tensor([3, 3, 11, 0]), torch.tensor([], dtype=torch.int64)):
        expected = first.take(index)
        assert expected.dtype == torch.float32
        assert expected.shape == (len(index), 1, 5, 7)
        for other in others:
            assert (len(other), other.shape) == (ROWS, (1, 5, 7))
            assert torch.equal(other.take(index), expected)


def test_what_was_taken_may_be_changed(tmp_path):
    for inputs in kinds(tmp_path):
        before = inputs.take(torch.arange(ROWS)).clone()
        inputs.take(torch.arange(ROWS)).add_(1)
        assert torch.equal(inputs.take(torch.arange(ROWS)), before)


def test_a_selection_of_a_selection_is_one_selection():
    base = TensorInputs(torch.arange(10.0)[:, None])
    once = SubsetInputs(base, torch.tensor([9, 7, 5, 3]))
    twice = SubsetInputs(once, torch.tensor([2, 0]))
    assert twice.base is base
    assert twice.take(torch.arange(2)).ravel().tolist() == [5, 9]


@given(st.lists(st.integers(0, 9), max_size=20), st.data())
def test_selecting_is_indexing(rows, data):
    base = TensorInputs(torch.arange(10.0)[:, None])
    chosen = SubsetInputs(base, torch.tensor(rows, dtype=torch.int64))
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    taken = chosen.take(torch.tensor(places, dtype=torch.int64)).ravel().tolist()
    assert taken == [rows[place] for place in places]


def test_a_large_offset_does_not_cost_digits():
    values = 1.6e9 + np.arange(8.0)[:, None]
    inputs = MappedInputs(values, offset=np.array([1.6e9]), scale=np.array([1.0]))
    assert inputs.take(torch.arange(8)).ravel().tolist() == list(range(8))


def test_wrong_rows_and_types_are_refused():
    base = TensorInputs(torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"0\.\.2"):
        SubsetInputs(base, torch.tensor([3]))
    with pytest.raises(ValueError, match="int64"):
        SubsetInputs(base, torch.tensor([0.5]))
    with pytest.raises(ValueError, match="uint8 or float32"):
        TensorInputs(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="shape"):
        JoinedInputs(base, TensorInputs(torch.zeros(3, 4)))


def test_a_data_set_checks_its_labels():
    inputs = TensorInputs(torch.zeros(3, 2))
    data = Dataset(inputs, torch.tensor([0, 2, 2]), ("a", "b", "c"))
    assert data.class_counts.tolist() == [1, 0, 2]
    assert (data.shape, data.num_classes, len(data)) == ((2,), 3, 3)
    with pytest.raises(ValueError, match="shape"):
        Dataset(inputs, torch.tensor([0]), ("a",))
    with pytest.raises(ValueError, match=r"0\.\.0"):
        Dataset(inputs, torch.tensor([0, 0, 1]), ("a",))
    with pytest.raises(ValueError, match="int64"):
        Dataset(inputs, torch.zeros(3), ("a",))
