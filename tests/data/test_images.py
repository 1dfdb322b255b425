"""Folders of images: what is read, what is noted, what is refused."""

import numpy as np
import pytest
import torch

from diw.data import load, read_like
from diw.data.images import ImageInputs
from diw.errors import UsageError


def everything(data):
    return data.take(torch.arange(len(data)))


def write_images(folder, shapes, mode="RGB"):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (*shape, 3), np.uint8)
        Image.fromarray(pixels).convert(mode).save(path)


def test_a_folder_of_images_streams(tmp_path):
    write_images(
        tmp_path / "train",
        {f"{name}/{row}.png": (20, 24) for name in ("cat", "dog") for row in range(3)},
    )
    (tmp_path / "train" / "cat" / "readme.txt").write_text("passed over")
    bundle = load(tmp_path / "train")
    assert isinstance(bundle.train.inputs, ImageInputs)
    assert bundle.train.shape == (3, 20, 24)
    assert bundle.train.classes == ("cat", "dog")
    assert bundle.train.class_counts.tolist() == [3, 3]
    write_images(tmp_path / "new", {"a.png": (20, 24), "b.jpg": (50, 10)})
    rows = read_like(tmp_path / "new", bundle.encoding)
    assert rows.targets is None
    assert [name.rsplit("/", 1)[1] for name in rows.names] == ["a.png", "b.jpg"]
    assert rows.inputs.take(torch.arange(2)).shape == (2, 3, 20, 24)
    one = read_like(tmp_path / "new" / "b.jpg", bundle.encoding)
    assert torch.equal(one.inputs.take(torch.arange(1)), rows.inputs.take(torch.tensor([1])))
    assert one.names == (str(tmp_path / "new" / "b.jpg"),)


def test_images_of_several_sizes_are_resized_and_a_note_says_so(tmp_path):
    write_images(tmp_path, {"a/1.png": (30, 30), "b/1.png": (40, 20)}, mode="L")
    bundle = load(tmp_path)
    assert bundle.train.shape == (1, 64, 64)
    assert "2 different sizes are resized to 64 x 64" in str(bundle.notes[0])


def test_broken_images_are_named(tmp_path):
    write_images(tmp_path, {"a/1.png": (30, 30), "b/1.png": (30, 30)})
    whole = (tmp_path / "b" / "1.png").read_bytes()
    (tmp_path / "b" / "1.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"b.1\.png: cannot be decoded"):
        everything(load(tmp_path).train)
    (tmp_path / "b" / "1.png").write_bytes(b"no image")
    with pytest.raises(UsageError, match=r"b.1\.png: not an image"):
        load(tmp_path)
    (tmp_path / "b" / "1.png").unlink()
    with pytest.raises(UsageError, match="holds no images"):
        load(tmp_path)
