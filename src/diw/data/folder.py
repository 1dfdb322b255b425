"""Image files: one decoded at a time, resized to the shape the network expects."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from diw.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 1 << 26
"""Images of more pixels (64 million) are refused unread: a small file can unfold into gigabytes."""


def decode_image(path: Path, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """The image as uint8 of `shape` (channels, height, width), grey for one channel, RGB for three.

    An image of another size is resized (bilinear); transparency is dropped.
    """
    channels, height, width = shape
    from PIL.Image import Resampling

    with open_image(path) as image:
        try:
            converted = image.convert("L" if channels == 1 else "RGB")
        except Exception as error:  # decoders raise whatever they meet in a broken file
            raise UsageError(f"{path}: cannot be decoded: {error}") from None
    if converted.size != (width, height):
        converted = converted.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(converted, np.uint8)
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def open_image(path: Path) -> "Image":
    """The opened, not yet decoded image; too many pixels or no image at all is refused."""
    try:
        import PIL.Image
    except ImportError:
        raise UsageError(
            "reading image files needs Pillow: install diw with the extra 'data'"
        ) from None
    try:
        with warnings.catch_warnings():
            # Pillow warns from its own limit on; ours is checked below.
            warnings.simplefilter("ignore", PIL.Image.DecompressionBombWarning)
            image = PIL.Image.open(path)
    except Exception as error:  # decoders raise whatever they meet in a broken file
        raise UsageError(f"{path}: not an image: {error}") from None
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise UsageError(f"{path}: {image.width} x {image.height} pixels are too many")
    return image
