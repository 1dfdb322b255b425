"""Folders of images, one subfolder per class; each image is decoded when a mini-batch takes it."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, FileIO
from os import fstat
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diw.data.dataset import as_float
from diw.data.encoding import ImageRows
from diw.data.notes import Note
from diw.errors import UsageError, one_line

if TYPE_CHECKING:
    from PIL.Image import Image

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}

MAX_PIXELS = 1 << 26
"""Images of more pixels (64 million) are refused unread: a small file can unpack to gigabytes."""


SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"}
)
"""Files with other extensions are ignored."""

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""What such files may hold, whatever they are named: an EPS would be run by Ghostscript."""

LARGEST = 224
"""Images of one size up to this side keep it."""

COMMON = 64
"""The side that images of different sizes, or of more than `LARGEST`, are resized to."""


@dataclass(frozen=True)
class ImageFiles:
    """Image files in a fixed order, and the names of their classes.

    Attributes:
        labels: One per file, or None for images that lie directly in the folder.
    """

    source: str
    files: tuple[Path, ...]
    labels: tuple[str, ...] | None


def list_images(path: Path) -> ImageFiles:
    """The images of a folder, by class and name; hidden files and folders are ignored."""
    try:
        entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
        classes = [entry for entry in entries if entry.is_dir()]
        if not classes:
            return ImageFiles(str(path), tuple(_images(entries, path)), None)
        files: list[Path] = []
        labels: list[str] = []
        for folder in classes:
            inside = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
            images = _images(inside, folder)
            files += images
            labels += [folder.name] * len(images)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return ImageFiles(str(path), tuple(files), tuple(labels))


def _images(entries: list[Path], folder: Path) -> list[Path]:
    images = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if not images:
        raise UsageError(f"{folder}: holds no images ({', '.join(sorted(SUFFIXES))})")
    return images


def fit_images(folder: ImageFiles) -> tuple[ImageRows, tuple[Note, ...]]:
    """The shape to which all images of the folder are resized, and notes for the user.

    Opens every file once (headers only), so a file that is not an image is found now.
    """
    sizes: set[tuple[int, int]] = set()
    grey = True
    for file in folder.files:
        with open_image(file) as image:
            sizes.add((image.height, image.width))
            grey = grey and image.mode in ("1", "L")
    channels = 1 if grey else 3
    height, width = next(iter(sizes))
    if len(sizes) == 1 and max(height, width) <= LARGEST:
        return ImageRows((channels, height, width)), ()
    what = f"{len(sizes)} different sizes" if len(sizes) > 1 else f"{height} x {width} pixels"
    text = f"images of {what} are resized to {COMMON} x {COMMON}"
    return ImageRows((channels, COMMON, COMMON)), (Note(folder.source, text),)


@final
class ImageInputs:
    """Image files, decoded when taken and resized to one size.

    Args:
        files: One path per row.
        shape: (channels, height, width) of every row; 1 channel is grey, 3 is RGB.
    """

    def __init__(self, files: Sequence[Path], shape: tuple[int, int, int]) -> None:
        self._files = tuple(files)
        self.shape = shape

    def __len__(self) -> int:
        return len(self._files)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, channels, height, width) in [0, 1]."""
        images = np.empty((len(index), *self.shape), np.uint8)
        for place, row in enumerate(index.tolist()):
            images[place] = decode_image(self._files[row], self.shape)
        return as_float(torch.from_numpy(images))


def decode_image(path: Path, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """The image as uint8 of `shape` (channels, height, width), grey for one channel, RGB for three.

    An image of another size is resized (bilinear).
    """
    channels, height, width = shape
    if channels not in _MODES:
        raise UsageError(f"{path}: image files have 1, 3 or 4 channels, not {channels}")
    with open_image(path) as image:
        from PIL.Image import Resampling

        try:
            converted = image.convert(_MODES[channels])
        except Exception as error:  # decoders raise many kinds for broken files
            raise UsageError(f"{path}: cannot be decoded: {one_line(error)}") from None
    if converted.size != (width, height):
        converted = converted.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(converted, np.uint8)
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


@contextmanager
def open_image(path: Path) -> Generator["Image"]:
    """The image, opened and not yet decoded; too many pixels or no image at all is refused."""
    try:
        import PIL.Image
    except ImportError:
        raise UsageError(
            "reading image files needs Pillow: install diw with the extra 'data'"
        ) from None
    try:
        file = _Bounded(FileIO(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        try:
            with warnings.catch_warnings():
                # Pillow warns from its own limit on; ours is checked below.
                warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)
                image = PIL.Image.open(file, formats=FORMATS)
        except Exception as error:  # decoders raise many kinds for broken files
            raise UsageError(f"{path}: not an image: {one_line(error)}") from None
        if image.width * image.height > MAX_PIXELS:
            raise UsageError(f"{path}: {image.width} x {image.height} pixels are too many")
        yield image


class _Bounded(BufferedReader):
    """A file from which no more bytes are requested than it has.

    Python allocates the requested size before it reads, and a broken image can make a decoder
    request gigabytes.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        length = fstat(self.fileno()).st_size
        return super().read(length if size is None or size < 0 else min(size, length))
