"""Folders of images: what is read, what is noted, what is refused."""

import json

import numpy as np
import pytest
import torch

from diw.data import Encoding, load, read_like
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


def test_a_class_without_images_is_named(tmp_path):
    write_images(tmp_path, {"a/1.png": (30, 30)})
    (tmp_path / "b").mkdir()
    with pytest.raises(UsageError, match="b: holds no images"):
        load(tmp_path)


def pictures(rng, count: int = 24) -> np.ndarray:
    """(count, 16, 16) bytes: bright at the left for one class, at the right for the other."""
    images = rng.integers(0, 120, (count, 16, 16))
    images[::2, :, :8] += 130
    images[1::2, :, 8:] += 130
    return images.astype(np.uint8)


def save_all(folder, images, ending: str = "png"):
    from PIL import Image

    for row, image in enumerate(images):
        path = folder / "ab"[row % 2] / f"{row:02}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


DEPTHS = {
    "16 bits": (lambda x: x.astype(np.uint16) * 257, "png", 1e-6),
    "16 bits, a TIFF": (lambda x: x.astype(np.uint16) * 257, "tif", 1e-6),
    "12 bits of a scanner": (lambda x: (x.astype(np.uint16) << 4) + (x >> 4), "png", 1e-3),
    "10 bits": (lambda x: (x.astype(np.uint16) << 2) + (x >> 6), "tif", 1e-2),
    "8 bits in 16": (lambda x: x.astype(np.uint16), "png", 1e-6),
    "32 bits": (lambda x: x.astype(np.int32) * 257, "tif", 1e-6),
    "floats in [0, 1]": (lambda x: (x / 255).astype(np.float32), "tif", 1e-6),
    "floats of bytes": (lambda x: x.astype(np.float32), "tif", 1e-6),
    "signed, as of a CT": (lambda x: x.astype(np.int32) * 16 - 1024, "tif", 1e-6),
}


@pytest.mark.parametrize("depth", DEPTHS)
def test_pictures_of_any_depth_are_what_they_are_in_8_bits(tmp_path, depth):
    """16 bits were once clipped to white, floats to black."""
    made, ending, error = DEPTHS[depth]
    images = pictures(np.random.default_rng(0))
    images[0, 0, :2] = 0, 255
    plain = everything(load(save_all(tmp_path / "plain", images)).train)[0]
    bundle = load(save_all(tmp_path / "deep", [made(image) for image in images], ending))
    deep = everything(bundle.train)[0]
    assert deep.shape == plain.shape == (24, 1, 16, 16)
    assert float((deep - plain).abs().max()) < error
    assert "24 images have more than 8 bits" in str(bundle.notes[0])
    encoding = Encoding.from_json(json.loads(json.dumps(bundle.encoding.as_json())))
    later = read_like(tmp_path / "deep" / "a", encoding)
    assert torch.equal(later.inputs.take(torch.arange(12)), deep[:12])  # not by its own values
    eight = read_like(tmp_path / "plain" / "a", encoding)
    assert torch.allclose(eight.inputs.take(torch.arange(12)), plain[:12], atol=1e-6)


def test_later_pictures_of_another_depth_are_scaled_or_refused(tmp_path):
    images = pictures(np.random.default_rng(0))
    encoding = load(save_all(tmp_path / "plain", images)).encoding

    def later(made, ending):
        folder = save_all(tmp_path / ending / str(made.dtype), made, ending)
        return read_like(folder / "a", encoding).inputs.take(torch.arange(12))

    sixteen = later(images.astype(np.uint16) * 257, "png")
    assert torch.equal(sixteen, torch.from_numpy(images[::2, None]).float() / 255)
    with pytest.raises(UsageError, match=r"00\.tif: holds numbers .* and the training images byte"):
        later(images.astype(np.float32), "tif")
    encoding = load(save_all(tmp_path / "twelve", images.astype(np.uint16) << 4)).encoding
    with pytest.raises(UsageError, match=r"00\.png: holds values .* save it with as many bits"):
        later(images.astype(np.uint16) * 257, "png")
    broken = images[:2].astype(np.float32)
    broken[0, 3, 3] = np.nan
    with pytest.raises(UsageError, match=r"00\.tif: holds pixels that are not finite"):
        load(save_all(tmp_path / "nan", broken, "tif"))


def test_pictures_of_telephones_are_upright(tmp_path):
    from PIL import Image

    picture = Image.fromarray(np.arange(24 * 40, dtype=np.uint8).reshape(24, 40) // 2)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: the picture is stored lying
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        picture.save(tmp_path / name / "1.jpg", exif=exif, quality=100)
    bundle = load(tmp_path)
    assert bundle.train.shape == (1, 40, 24)
    upright = torch.from_numpy(np.rot90(np.asarray(picture), -1).copy()).float() / 255
    assert float((everything(bundle.train)[0][0, 0] - upright).abs().max()) < 0.05
    old = bundle.encoding.as_json()  # a run of an earlier version goes on as it was trained
    del old["rows"]["upright"], old["rows"]["span"]
    lying = read_like(tmp_path / "a", Encoding.from_json(old)).inputs.take(torch.arange(1))
    assert float((lying[0, 0] - upright).abs().max()) > 0.1


def test_frames_and_unreadable_pictures_are_said(tmp_path):
    from PIL import Image

    frames = [Image.fromarray(image) for image in pictures(np.random.default_rng(0))]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        frames[0].save(tmp_path / name / "1.tif", save_all=True, append_images=frames[1:])
    (tmp_path / "a" / "2.HEIC").write_bytes(b"")
    said = [str(note) for note in load(tmp_path).notes]
    assert any("2 images have several frames; the first of each is read" in line for line in said)
    assert any("1 images cannot be read and are ignored; save them as PNG" in line for line in said)


def test_classes_with_accents_are_one(tmp_path):
    for name, row in (("caf\u00e9", 0), ("cafe\u0301", 1), ("tea", 2)):
        write_images(tmp_path / name, {f"{row}.png": (9, 9)})
    assert load(tmp_path).train.classes == ("café", "tea")


def test_images_are_decoded_once_while_they_fit(tmp_path):
    write_images(tmp_path, {f"{name}/{row}.png": (9, 9) for name in "ab" for row in range(3)})
    inputs = load(tmp_path).train.inputs
    first = inputs.take(torch.arange(6))
    for path in tmp_path.rglob("*.png"):
        path.unlink()
    assert torch.equal(inputs.take(torch.arange(6)), first)
