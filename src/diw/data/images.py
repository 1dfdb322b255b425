"""Folders of images, one subfolder per class; each is decoded when a mini-batch first takes it.

Images of 8 bits are read as bytes. Those of more (16 bits, floats, signed numbers, as scanners and
cameras write them) are numbers whose span in the training images becomes [0, 1].
"""

import unicodedata
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, FileIO
from math import prod
from os import fstat
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diw.data.checks import Note
from diw.data.dataset import as_float
from diw.data.encoding import ImageRows
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

UNREAD = frozenset(
    {".heic", ".heif", ".avif", ".jp2", ".dcm", ".nii", ".dng", ".cr2", ".nef", ".arw", ".raw"}
)
"""Images that cannot be read; that they are ignored is said."""

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""What such files may hold, whatever they are named: an EPS would be run by Ghostscript."""

LARGEST = 224
"""Images of one size up to this side keep it."""

COMMON = 64
"""The side that images of different sizes, or of more than `LARGEST`, are resized to."""

KEPT = 1 << 29
"""Bytes of decoded images that are kept, so that an epoch does not decode them again."""

TOPS = (1, 255, 1023, 4095, 16383, 65535)
"""Largest values that numbers of 1, 8, 10, 12, 14 and 16 bits have."""


@dataclass(frozen=True)
class ImageFiles:
    """Image files in a fixed order, and the names of their classes.

    Attributes:
        labels: One per file, or None for images that lie directly in the folder.
        unread: How many images of other kinds were passed over.
    """

    source: str
    files: tuple[Path, ...]
    labels: tuple[str, ...] | None
    unread: int = 0


def list_images(path: Path) -> ImageFiles:
    """The images of a folder, by class and name; hidden files and folders are ignored."""
    try:
        entries = _visible(path)
        classes = [entry for entry in entries if entry.is_dir()]
        if not classes:
            return ImageFiles(str(path), tuple(_images(entries, path)), None, _unread(entries))
        files: list[Path] = []
        labels: list[str] = []
        unread = 0
        for folder in classes:
            check_name(folder)
            inside = _visible(folder)
            images = _images(inside, folder)
            files += images
            labels += [unicodedata.normalize("NFC", folder.name)] * len(images)
            unread += _unread(inside)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return ImageFiles(str(path), tuple(files), tuple(labels), unread)


def _visible(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def _unread(entries: list[Path]) -> int:
    return sum(entry.suffix.lower() in UNREAD for entry in entries)


def _images(entries: list[Path], folder: Path) -> list[Path]:
    images = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if not images:
        raise UsageError(f"{folder}: holds no images ({', '.join(sorted(SUFFIXES))})")
    for image in images:
        check_name(image)
    return images


def check_name(path: Path) -> None:
    """Refuse a name that is no text: it could be read, but not be written into any record."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{path}: this name is not UTF-8; rename it") from None


def fit_images(folder: ImageFiles) -> tuple[ImageRows, tuple[Note, ...]]:
    """The shape to which all images of the folder are resized, and notes for the user.

    Opens every file once (headers only, but for images of more than 8 bits), so a file that is not
    an image is found now.
    """
    sizes: set[tuple[int, int]] = set()
    grey, frames = True, 0
    values: list[float] = []
    for file in folder.files:
        with open_image(file) as image:
            turned = _orientation(image) >= 5
            sizes.add((image.width, image.height) if turned else (image.height, image.width))
            grey = grey and (image.mode in ("1", "L") or _is_deep(image))
            frames += bool(getattr(image, "is_animated", False))
            if _is_deep(image):
                numbers = _numbers(image, file)
                values += [float(numbers.min()), float(numbers.max())]
    span = _span(min(values), max(values)) if values else None
    channels = 1 if grey else 3
    height, width = next(iter(sizes))
    texts: list[str] = []
    if len(sizes) > 1 or max(height, width) > LARGEST:
        what = f"{len(sizes)} different sizes" if len(sizes) > 1 else f"{height} x {width} pixels"
        texts.append(f"images of {what} are resized to {COMMON} x {COMMON}")
        height = width = COMMON
    if span is not None:
        count = len(values) // 2
        texts.append(
            f"{count} images have more than 8 bits, with values {min(values):g} to "
            f"{max(values):g}; {span[0]:g} to {span[1]:g} become 0 to 1"
        )
    if frames:
        texts.append(f"{frames} images have several frames; the first of each is read")
    if folder.unread:
        texts.append(f"{folder.unread} images cannot be read and are ignored; save them as PNG")
    notes = tuple(Note(folder.source, text) for text in texts)
    return ImageRows((channels, height, width), span), notes


@final
class ImageInputs:
    """Image files, decoded when first taken and resized to one size.

    Args:
        files: One path per row.
        rows: How they are read; 1 channel is grey, 3 is RGB.
        keep: Bytes of decoded images that are kept; if all need more, none are.
    """

    def __init__(self, files: Sequence[Path], rows: ImageRows, *, keep: int = KEPT) -> None:
        self._files = tuple(files)
        self._rows = rows
        self.shape = rows.shape
        self._type = np.dtype(np.uint8 if rows.span is None else np.float32)
        fits = len(files) * prod(self.shape) * self._type.itemsize <= keep
        # Memory is taken as it is written to, so that images nobody takes cost nothing.
        self._kept = np.empty((len(files), *self.shape), self._type) if fits else None
        self._known = np.zeros(len(files), np.bool_)

    def __len__(self) -> int:
        return len(self._files)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, channels, height, width) in [0, 1]."""
        rows = index.numpy()
        if self._kept is None:
            images = np.empty((len(rows), *self.shape), self._type)
            for place, row in enumerate(rows.tolist()):
                images[place] = decode_image(self._files[row], self._rows)
            return as_float(torch.from_numpy(images))
        for row in rows[~self._known[rows]].tolist():
            self._kept[row] = decode_image(self._files[row], self._rows)
            self._known[row] = True
        return as_float(torch.from_numpy(self._kept[rows]))


def decode_image(path: Path, rows: ImageRows) -> npt.NDArray[np.uint8 | np.float32]:
    """The image (channels, height, width) as `rows` says: bytes, or floats where it has a span.

    It is grey for one channel and RGB for three. One of another size is resized (bilinear).
    """
    channels, height, width = rows.shape
    if channels not in _MODES:
        raise UsageError(f"{path}: image files have 1, 3 or 4 channels, not {channels}")
    with open_image(path) as image:
        import PIL.Image
        import PIL.ImageOps

        deep = _is_deep(image)
        if deep:
            scaled = _scaled(_numbers(image, path), image.mode, rows.span, path)
            converted = PIL.Image.fromarray(scaled)
        else:
            turn = rows.upright and _orientation(image) > 1
            try:
                converted = image.convert(_MODES[channels])
            except Exception as error:  # decoders raise many kinds for broken files
                raise UsageError(f"{path}: cannot be decoded: {one_line(error)}") from None
            converted = PIL.ImageOps.exif_transpose(converted) if turn else converted
    if converted.size != (width, height):
        converted = converted.resize((width, height), PIL.Image.Resampling.BILINEAR)
    pixels: npt.NDArray[Any] = np.asarray(converted)
    if rows.span is not None and not deep:
        pixels = pixels.astype(np.float32) / 255
    elif rows.span is None and deep:
        pixels = (255 * pixels).round().clip(0, 255).astype(np.uint8)
    return np.broadcast_to(pixels, rows.shape) if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _is_deep(image: "Image") -> bool:
    """Whether an image holds grey numbers of more than 8 bits."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


def _numbers(image: "Image", path: Path) -> npt.NDArray[np.float64]:
    """The pixels (height, width) of a grey image as they are."""
    try:
        values = np.asarray(image, np.float64)
    except Exception as error:  # decoders raise many kinds for broken files
        raise UsageError(f"{path}: cannot be decoded: {one_line(error)}") from None
    if not np.isfinite(values).all():
        raise UsageError(f"{path}: holds pixels that are not finite; fill them")
    return values


def _span(low: float, high: float) -> tuple[float, float]:
    """What becomes [0, 1]: all that so many bits can hold, or from the least if it is negative."""
    if low < 0:
        return low, high if high > low else low + 1
    return 0.0, float(next((top for top in TOPS if high <= top), high))


def _scaled(
    values: npt.NDArray[np.float64], mode: str, span: tuple[float, float] | None, path: Path
) -> npt.NDArray[np.float32]:
    """The numbers with their span as [0, 1]; of 16 bits among images of 8 it is all there are."""
    if span is None and mode.startswith("I;16"):
        span = (0.0, 65535.0)
    if span is None:
        raise UsageError(
            f"{path}: holds numbers ({values.min():g} to {values.max():g}), and the training "
            "images bytes; save it with 8 bits"
        )
    scaled = (values - span[0]) / (span[1] - span[0])
    if scaled.min() < -0.5 or scaled.max() > 1.5:
        raise UsageError(
            f"{path}: holds values {values.min():g} to {values.max():g}, and {span[0]:g} to "
            f"{span[1]:g} were black to white in training; save it with as many bits"
        )
    return scaled.astype(np.float32)


def _orientation(image: "Image") -> int:
    """How a telephone held the camera, 1 to 8; from 5 on width and height change places."""
    if image.format not in ("JPEG", "MPO"):
        return 1
    try:
        return int(image.getexif().get(0x0112, 1))
    except Exception:  # of no use if it is broken: the image may be sound
        return 1


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
