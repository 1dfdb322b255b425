"""Arrays and pictures as programs and cameras write them: read as what they are, or refused."""

import io
import re
import zipfile

import numpy as np
import pytest
import torch

from diw.data import load
from diw.errors import UsageError

X = np.random.default_rng(0).normal(size=(12, 3)).round(2)
Y = np.arange(12) % 2
BYTES = np.random.default_rng(1).integers(0, 256, (12, 8, 8), np.uint8)
WHOLE = np.random.default_rng(2).integers(0, 9, (12, 3))


# The arrays of an .npz, and the inputs that they mean (tables are standardised), or the refusal.
ARRAYS = {
    "plain": ({"X": X, "y": Y}, X),
    "single precision": ({"X": X.astype("f4"), "y": Y}, X),
    "half precision": ({"X": X.astype("f2"), "y": Y}, X.astype("f2").astype("f8")),
    "extended precision": ({"X": X.astype(np.longdouble), "y": Y}, X),
    "another byte order": ({"X": X.astype(">f4"), "y": Y.astype(">i4")}, X),
    "Fortran order": ({"X": np.asfortranarray(X), "y": Y}, X),
    "every second row": ({"X": np.repeat(X, 2, 0)[::2], "y": Y}, X),
    "whole numbers": ({"X": WHOLE, "y": Y}, WHOLE),
    "unsigned": ({"X": WHOLE.astype("u8"), "y": Y}, WHOLE),
    "truth values": ({"X": WHOLE > 4, "y": Y}, WHOLE > 4),
    "large offset": ({"X": X + 1e9, "y": Y}, X),
    "large numbers": ({"X": X * 1e100, "y": Y}, X),
    "small numbers": ({"X": X * 1e-100, "y": Y}, X),
    "x for X": ({"x": X, "y": Y}, X),
    "Y for y": ({"X": X, "Y": Y}, X),
    "labels of bytes": ({"X": X, "y": np.array([b"a", b"b"] * 6)}, X),
    "labels of text": ({"X": X, "y": np.array(["a", "b"] * 6)}, X),
    "labels that are floats": ({"X": X, "y": Y.astype(float)}, X),
    "labels that are truth values": ({"X": X, "y": Y > 0}, X),
    "labels of 64 bits": ({"X": X, "y": 2**53 + Y}, X),
    "clean as numbers": ({"X": X, "y": Y, "clean": Y}, X),
    "more arrays": ({"X": X, "y": Y, "ids": np.arange(12), "meta": np.array("a")}, X),
    "bytes": ({"X": BYTES, "y": Y}, BYTES[:, None] / 255),
    "bytes in 64 bits": ({"X": BYTES.astype("i8"), "y": Y}, BYTES[:, None] / 255),
    "channels last": (
        {"X": BYTES[..., None].repeat(3, 3), "y": Y},
        BYTES[:, None].repeat(3, 1) / 255,
    ),
    "channels first": (
        {"X": BYTES[:, None].repeat(3, 1), "y": Y},
        BYTES[:, None].repeat(3, 1) / 255,
    ),
    "floats of [0, 1]": ({"X": BYTES / 255, "y": Y}, BYTES[:, None] / 255),
    "floats beyond": ({"X": BYTES * 1.0, "y": Y}, BYTES[:, None] * 1.0),
    "16 bits": ({"X": BYTES.astype("u2") * 257, "y": Y}, "must lie in 0..255, found"),
    "signed pictures": ({"X": BYTES.astype("i2") - 99, "y": Y}, "must lie in 0..255, found -99"),
    "not a number": (
        {"X": np.where(X > 1, np.nan, X), "y": Y},
        "X is not finite in row 2, column 0",
    ),
    "infinite": ({"X": np.where(X > 1, np.inf, X), "y": Y}, "X is not finite in row"),
    "too large": ({"X": X * 1e200, "y": Y}, "X holds numbers beyond 1e+150"),
    "complex": ({"X": X * 1j, "y": Y}, "X must hold numbers, got complex128"),
    "text": ({"X": X.astype(str), "y": Y}, "X must hold numbers, got <U"),
    "dates": ({"X": X.astype("i8").astype("M8[s]"), "y": Y}, "X must hold numbers"),
    "fields": ({"X": np.zeros((12, 3), "f4,i4"), "y": Y}, "X must hold numbers"),
    "objects": ({"X": X.astype(object), "y": Y}, "never unpickled"),
    "labels as objects": ({"X": X, "y": np.array(["a", None] * 6, object)}, "never unpickled"),
    "one dimension": ({"X": X[:, 0], "y": Y}, "X must be rows of features"),
    "five dimensions": ({"X": np.zeros((12, 1, 2, 2, 2)), "y": Y}, "X must be rows of features"),
    "no columns": ({"X": np.zeros((12, 0)), "y": Y}, "X must be rows of features"),
    "no rows": ({"X": np.zeros((0, 3)), "y": Y[:0]}, "X must be rows of features"),
    "columns are rows": ({"X": X.T, "y": Y}, "X has 3 rows, its labels have shape (12,)"),
    "labels in a column": ({"X": X, "y": Y[:, None]}, "its labels have shape (12, 1)"),
    "one-hot labels": ({"X": X, "y": np.eye(2)[Y]}, "its labels have shape (12, 2)"),
    "continuous labels": ({"X": X, "y": X[:, 0]}, "in row 0 is not a class"),
    "missing labels": ({"X": X, "y": np.where(Y, np.nan, 0)}, "label nan in row 1"),
    "empty labels": ({"X": X, "y": np.array(["a", ""] * 6)}, "the label in row 1 is missing"),
    "half a character": ({"X": X, "y": np.array(["a", "\ud800"] * 6)}, "labels are no text"),
    "labels of dates": ({"X": X, "y": Y.astype("M8[D]")}, "labels must be numbers or text"),
    "a key for the label": (
        {"X": np.zeros((50, 2)), "y": np.arange(50)},
        "50 different labels in 50 rows; is this the label?",
    ),
    "blank labels": ({"X": X, "y": np.array(["a", " "] * 6)}, "the label in row 1 is missing"),
    "no labels": ({"X": X}, "no labels found"),
    "one class": ({"X": X, "y": 0 * Y}, "at least 2 are needed"),
    "other names": ({"data": X, "target": Y}, "no array X in it (it holds: data, target)"),
    "SciPy's sparse": (
        {"data": X[:, 0], "indices": Y, "indptr": Y, "shape": np.array([12, 3])},
        "no array X in it",
    ),
    "clean of words": ({"X": X, "y": Y, "clean": np.array(["yes", "no"] * 6)}, "clean must hold"),
    "clean of shares": ({"X": X, "y": Y, "clean": Y / 2}, "clean must hold true or false"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_arrays_as_programs_write_them(tmp_path, name, kind):
    arrays, meant = ARRAYS[name]
    path = tmp_path / f"X.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    elif "X" not in arrays or "y" not in arrays:
        pytest.skip("an .npy has no names")
    else:
        for file in ("X", "y", "clean"):
            if file in arrays:
                np.save(tmp_path / f"{file}.npy", arrays[file])
    if isinstance(meant, str):
        if kind == "npy":  # of objects, NumPy says the same in its words
            meant = meant.replace("never unpickled", "not a readable .npy file")
        with pytest.raises(UsageError, match=re.escape(meant)) as error:
            load(path)
        assert "\n" not in str(error.value)
        return
    bundle = load(path)
    inputs = bundle.train.inputs.take(torch.arange(12)).numpy()
    meant = np.asarray(meant, float)
    if meant.ndim == 2:
        meant = (meant - meant.mean(0)) / meant.std(0)
    np.testing.assert_allclose(inputs, meant, atol=1e-5 if name != "large offset" else 1e-4)
    assert bundle.train.targets.tolist() == Y.tolist()


PICTURE = np.add.outer(np.arange(20) * 6, np.arange(24) * 4).clip(0, 255).astype(np.uint8)
LINES = np.where(np.arange(20)[:, None] < 10, 255, 0).repeat(24, 1).astype(np.uint8)


def saved(image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def picture_cases():
    """The bytes of a file, and the grey picture meant, with its greatest error; or the refusal."""
    from PIL import Image

    grey = Image.fromarray(PICTURE)
    deep = PICTURE.astype(np.uint16)
    clear = grey.convert("LA")
    png, jpeg = saved(grey, "PNG"), saved(grey, "JPEG", quality=100)
    turned = {}
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        back = {1: [], 2: [0], 3: [3], 4: [1], 5: [5], 6: [2], 7: [6], 8: [4]}[orientation]
        image = grey
        for way in back:
            image = image.transpose(Image.Transpose(way))
        turned[f"a telephone, orientation {orientation}"] = (
            ".jpg",
            saved(image, "JPEG", quality=100, exif=exif),
            PICTURE,
            4,
        )

    def pgm(top: int) -> bytes:
        values = np.round(PICTURE / 255 * top).astype(">u2" if top > 255 else "u1")
        return b"P5\n24 20\n%d\n" % top + values.tobytes()

    return turned | {
        "PNG": (".png", png, PICTURE),
        "PNG in capitals": (".PNG", png, PICTURE),
        "PNG named JPEG": (".jpg", png, PICTURE),
        "PNG of a palette": (".png", saved(grey.convert("P"), "PNG"), PICTURE),
        "PNG of colours": (".png", saved(grey.convert("RGB"), "PNG"), PICTURE),
        "PNG, transparent": (".png", saved(clear, "PNG"), PICTURE),
        "PNG of colours, transparent": (".png", saved(grey.convert("RGBA"), "PNG"), PICTURE),
        "PNG of one bit": (".png", saved(Image.fromarray(LINES).convert("1"), "PNG"), LINES),
        "PNG of 16 bits": (".png", saved(Image.fromarray(deep * 257), "PNG"), PICTURE),
        "PNG of 12 bits": (".png", saved(Image.fromarray(deep << 4), "PNG"), PICTURE, 1),
        "TIFF": (".tif", saved(grey, "TIFF"), PICTURE),
        "TIFF, packed": (".tiff", saved(grey, "TIFF", compression="tiff_lzw"), PICTURE),
        "TIFF of 16 bits": (".tif", saved(Image.fromarray(deep * 257), "TIFF"), PICTURE),
        "TIFF, big end first": (
            ".tif",
            saved(Image.fromarray((deep * 257).astype(">u2")), "TIFF"),
            PICTURE,
        ),
        "TIFF of 32 bits": (
            ".tif",
            saved(Image.fromarray(deep.astype("i4") * 16), "TIFF"),
            PICTURE,
            1,
        ),
        "TIFF of floats": (
            ".tif",
            saved(Image.fromarray((PICTURE / 255).astype("f4")), "TIFF"),
            PICTURE,
        ),
        "TIFF of floats up to 255": (
            ".tif",
            saved(Image.fromarray(PICTURE.astype("f4")), "TIFF"),
            PICTURE,
        ),
        "TIFF of inks": (".tif", saved(grey.convert("CMYK"), "TIFF"), PICTURE, 2),
        "TIFF of pages": (
            ".tif",
            saved(grey, "TIFF", save_all=True, append_images=[Image.fromarray(LINES)]),
            PICTURE,
        ),
        "JPEG": (".jpg", jpeg, PICTURE, 3),
        "JPEG of colours": (".jpeg", saved(grey.convert("RGB"), "JPEG", quality=100), PICTURE, 3),
        "JPEG of inks": (".jpg", saved(grey.convert("CMYK"), "JPEG", quality=100), PICTURE, 4),
        "BMP": (".bmp", saved(grey, "BMP"), PICTURE),
        "GIF": (".gif", saved(grey, "GIF"), PICTURE),
        "GIF that moves": (
            ".gif",
            saved(grey, "GIF", save_all=True, append_images=[Image.fromarray(LINES)]),
            PICTURE,
        ),
        "WebP": (".webp", saved(grey.convert("RGB"), "WEBP", lossless=True), PICTURE, 1),
        "PGM": (".pgm", pgm(255), PICTURE),
        "PGM of 12 bits": (".pgm", pgm(4095), PICTURE, 1),
        "PGM of 16 bits": (".pgm", pgm(65535), PICTURE),
        "PPM": (".ppm", saved(grey.convert("RGB"), "PPM"), PICTURE),
        "cut": (".png", png[: len(png) // 2], "(cannot be decoded|not an image)"),
        "JPEG, cut": (".jpg", jpeg[: len(jpeg) // 2], "(cannot be decoded|not an image)"),
        "empty": (".png", b"", "not an image"),
        "a web page": (".jpg", b"<html>404 Not Found</html>", "not an image"),
        "a PDF": (".png", b"%PDF-1.4\n%%EOF\n", "not an image"),
        "PostScript": (
            ".png",
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "not an image",
        ),
        "a pointer of Git LFS": (
            ".png",
            b"version https://git-lfs.github.com/spec/v1\n",
            "not an image",
        ),
        "DICOM named TIFF": (".tif", b"\0" * 128 + b"DICM" + b"\0" * 99, "not an image"),
        "a picture that is not finite": (
            ".tif",
            saved(Image.fromarray(np.full((20, 24), np.nan, "f4")), "TIFF"),
            "not finite",
        ),
    }


def test_pictures_as_cameras_and_programs_write_them(tmp_path):
    cases = picture_cases()
    assert len(cases) >= 40
    for number, (name, (ending, content, meant, *rest)) in enumerate(cases.items()):
        error = rest[0] if rest else 0
        folder = tmp_path / str(number)
        for label in "ab":
            (folder / label).mkdir(parents=True)
            (folder / label / f"1{ending}").write_bytes(content)
            (folder / label / "._1.png").write_bytes(b"Mac OS X")  # hidden: not a picture
            (folder / label / "Thumbs.db").write_bytes(b"Windows")
        if isinstance(meant, str):
            with pytest.raises(UsageError, match=f"1{ending}: .*{meant}") as refusal:
                load(folder).train.take(torch.arange(2))
            assert "\n" not in str(refusal.value), name
            continue
        taken = load(folder).train.inputs.take(torch.arange(2))
        assert taken.shape[2:] == PICTURE.shape, name
        assert float((255 * taken.mean(1) - torch.from_numpy(meant)).abs().max()) <= error + 1e-3, (
            name
        )


def test_an_archive_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("readme.txt", "no arrays")
    with pytest.raises(UsageError, match=r"no array X in it \(it holds: none\)"):
        load(tmp_path / "a.npz")
