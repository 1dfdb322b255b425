"""Arrays in files: what is read, what is noted, what is refused."""

import numpy as np
import pytest
import torch

from diw.data import load
from diw.data.arrays import MappedInputs
from diw.data.split import make_split


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def everything(data):
    return data.take(torch.arange(len(data)))


def test_npz_images_with_words_as_labels(tmp_path, rng):
    images = rng.integers(0, 256, (20, 16, 16, 3), np.uint8)
    words = np.array(["dog", "cat"] * 10)
    np.savez(tmp_path / "a.npz", X=images, y=words, clean=np.arange(20) < 6)
    bundle = load(tmp_path / "a.npz")
    assert (bundle.name, bundle.kind, bundle.train.classes) == ("a.npz", "image", ("cat", "dog"))
    inputs, targets = everything(bundle.train)
    assert torch.equal(inputs, torch.from_numpy(images).permute(0, 3, 1, 2) / 255)
    assert targets.tolist() == [1, 0] * 10
    split = make_split(bundle, trusted=6, seed=0)
    assert len(split.trusted) + len(split.test) == 6
    assert split.scored_on == "held-out trusted"
    assert split.flipped is None


def test_npz_tables_are_standardised_by_the_training_rows(tmp_path, rng):
    train, test = rng.normal(7, 3, (50, 4)), rng.normal(7, 3, (10, 4))
    train[:, 3] = 5.0
    np.savez(tmp_path / "a.npz", X=train, y=np.arange(50) % 3)
    np.savez(tmp_path / "b.npz", X=test, y=np.arange(10) % 3)
    bundle = load(tmp_path / "a.npz", test=tmp_path / "b.npz")
    scale = train.std(axis=0)
    scale[3] = 1
    for data, raw in ((bundle.train, train), (bundle.test, test)):
        expected = (raw - train.mean(axis=0)) / scale
        np.testing.assert_allclose(everything(data)[0].numpy(), expected, atol=1e-6)
    assert bundle.kind == "table"
    assert bundle.train.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        ("X.npy", "y.npy"),
        ("X_train.npy", "y_train.npy"),
        ("my_x.npy", "my_y.npy"),
        ("images.npy", "images.labels.npy"),
    ],
)
def test_npy_files_are_mapped_and_their_labels_found(tmp_path, rng, inputs, labels):
    images = rng.integers(0, 256, (8, 12, 12), np.uint8)
    np.save(tmp_path / inputs, images)
    np.save(tmp_path / labels, np.arange(8) % 2)
    bundle = load(tmp_path / inputs)
    assert isinstance(bundle.train.inputs, MappedInputs)
    assert torch.equal(everything(bundle.train)[0][:, 0], torch.from_numpy(images) / 255)
    if inputs == "X.npy":
        assert load(tmp_path).train.class_counts.tolist() == [4, 4]
    np.save(tmp_path / "others.npy", 1 - np.arange(8) % 2)
    other = load(tmp_path / inputs, label=str(tmp_path / "others.npy"))
    assert other.train.targets.tolist() == [1, 0] * 4


def test_a_mapped_file_is_not_read_into_memory(tmp_path):
    import tracemalloc

    mapped = np.lib.format.open_memmap(
        tmp_path / "X.npy", "w+", np.float32, (4000, 1, 64, 64)
    )  # 64 MB
    mapped.flush()
    del mapped
    np.save(tmp_path / "y.npy", np.arange(4000) % 2)
    tracemalloc.start()
    bundle = load(tmp_path / "X.npy")
    for start in range(0, 4000, 500):
        bundle.train.take(torch.arange(start, start + 10))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32_000_000


def test_float_images_are_taken_as_they_are_and_a_note_says_so(tmp_path, rng):
    images = rng.normal(size=(6, 3, 10, 10))
    np.savez(tmp_path / "a.npz", X=images, y=np.arange(6) % 2)
    bundle = load(tmp_path / "a.npz")
    np.testing.assert_allclose(everything(bundle.train)[0], images, atol=1e-6)
    assert "taken as they are" in str(bundle.notes[0])
