"""Rows of a file that can be drawn: their given labels, and how they are named, known and shown."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diw.auditing.samples import Samples, decoded, thumbnails
from diw.data.arrays import ArrayFile, array_inputs
from diw.data.encoding import ImageRows, class_list, class_numbers
from diw.data.images import ImageFiles, open_image
from diw.data.numbers import words_of
from diw.data.read import Raw, fingerprints, fit, read_raw
from diw.data.tables import TableFile
from diw.errors import UsageError
from diw.labels.transitions import Ints

SIDES = (512, 384, 288, 224, 160, 112)
"""Pixels of a picture's longer side: the largest at which all fit into a page."""
BYTES = 3_500_000
"""All pictures of a page together, before they become text, which is longer by a third."""
QUALITY = 80
"""Of JPEG."""
LONG = 60
"""Characters from which a cell is a text, and shown as one."""


@dataclass(frozen=True)
class Items:
    """The rows of one file or folder.

    Attributes:
        source: Its path as the user gave it.
        raw: Its content.
        classes: Names by class number.
        given: (n,) given labels as class numbers.
    """

    source: str
    raw: Raw
    classes: tuple[str, ...]
    given: Ints

    def __len__(self) -> int:
        return len(self.given)

    def places(self, rows: Sequence[int]) -> list[tuple[str, int | None]]:
        """File and row of some rows, as all verbs name them; the row is None for an image."""
        content = self.raw.content
        if isinstance(content, ImageFiles):
            return [(str(content.files[row]), None) for row in rows]
        return [(self.source, row) for row in rows]

    def contents(self, rows: Sequence[int]) -> list[str]:
        """Fingerprints of what some rows hold but for their labels."""
        return fingerprints(None, rows, self.raw)

    def show(self, rows: Sequence[int]) -> Samples:
        """Some rows as a person sees them, without their labels."""
        content = self.raw.content
        if isinstance(content, ImageFiles):
            return Samples(_pictures([content.files[row] for row in rows]), [], None)
        if isinstance(content, TableFile):
            names = [name for name in content.columns if name not in self.raw.not_features]
            cells = [
                [words_of(content.columns[name][row : row + 1])[0] or "" for name in names]
                for row in rows
            ]
            return Samples(None, names, cells)
        return _of_array(content, self.raw, np.asarray(rows, np.int64))


def read_items(path: str, label: str | None, text_encoding: str | None = None) -> Items:
    """The rows of a file; of a folder of images only the names are read.

    Args:
        path: What can be trained on: a table, arrays, or a folder of images.
        label: The column, array or file of the given labels.
        text_encoding: Of a CSV file that is not UTF-8.
    """
    raw = read_raw(Path(path), label, text_encoding=text_encoding)
    assert raw.labels is not None  # refused by `read_raw`
    classes = class_list(raw.labels, path)
    return Items(path, raw, classes, class_numbers(raw.labels, classes, path))


def text_column(shown: Samples, named: str | None = None) -> int | None:
    """The number of the column that is shown as a text: the named one, or the longest if it is one.

    Args:
        shown: Rows with their cells.
        named: The name of the column; None to see for oneself.
    """
    if named is not None:
        if named not in shown.columns:
            columns = ", ".join(shown.columns) or "none"
            raise UsageError(f"text: there is no column {named!r}; columns are {columns}")
        return shown.columns.index(named)
    if not shown.cells or not shown.columns:
        return None
    lengths = np.array([[len(cell) for cell in row] for row in shown.cells]).mean(axis=0)
    return int(lengths.argmax()) if lengths.max() >= LONG else None


def _of_array(arrays: ArrayFile, raw: Raw, rows: Ints) -> Samples:
    encoding, _ = fit(raw)
    if isinstance(encoding, ImageRows):
        inputs = array_inputs(arrays, encoding)
        return Samples(thumbnails(inputs, rows, SIDES[0], BYTES), [], None)
    return decoded(np.asarray(arrays.inputs[rows]), None)


def _pictures(files: Sequence[Path]) -> list[str]:
    """Images as data URIs, upright, as large as fit."""
    loaded = [_opened(file) for file in files]
    for side in SIDES:
        coded = [_coded(image, side) for image in loaded]
        if sum(len(code) for _, code in coded) <= BYTES:
            break
    else:
        raise UsageError(f"rows: {len(files):,} images do not fit into a page; draw fewer at once")
    return [f"data:image/{kind};base64,{base64.b64encode(code).decode()}" for kind, code in coded]


def _opened(file: Path) -> Any:
    """An image with 8 bits, upright, no larger than can be shown."""
    with open_image(file) as image:
        from PIL import Image, ImageOps  # which it has found to be there

        if image.mode in ("I", "F") or image.mode.startswith("I;16"):
            values = np.asarray(image, np.float64)
            span = max(float(np.ptp(values)), 1e-12)
            image = Image.fromarray(((values - values.min()) / span * 255).astype(np.uint8))
        found = ImageOps.exif_transpose(image).convert("L" if image.mode in ("1", "L") else "RGB")
    found.thumbnail((SIDES[0], SIDES[0]))
    return found


def _coded(image: Any, side: int) -> tuple[str, bytes]:
    """Small images without loss, others as JPEG."""
    shown = image.copy()
    shown.thumbnail((side, side))
    kind = "png" if max(shown.size) <= SIDES[-1] else "jpeg"
    out = io.BytesIO()
    shown.save(out, kind, quality=QUALITY, optimize=True)
    return kind, out.getvalue()
