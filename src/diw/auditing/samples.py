"""Samples as a page shows them: images as data URIs, rows of a table as cells."""

import base64
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from diw.labels.transitions import Ints
from diw.pages import data_title
from diw.runs import Run, spec_hash

if TYPE_CHECKING:
    import torch

    from diw.data.tables import TableFile

LARGEST_SIDE = 96
"""Pixels of a thumbnail's longer side."""
BYTES = 9_000_000
"""All thumbnails of a page together, before they become text; larger ones are halved."""
MOST_COLUMNS = 40
"""Cells of a row that are shown."""


@dataclass(frozen=True)
class Samples:
    """What is shown of some training rows.

    Attributes:
        images: Data URIs, or None where rows are not images.
        columns: Names of the cells; empty for images.
        cells: Texts, one list per row; None for images.
    """

    images: list[str] | None
    columns: list[str]
    cells: list[list[str]] | None


NOTHING = Samples(None, [], None)
"""What is shown where samples are left out."""


class Located(Protocol):
    """Where a row is from."""

    @property
    def file(self) -> str:
        """Its file."""
        ...

    @property
    def row(self) -> int | None:
        """The row of that file, counted from 0; None for an image."""
        ...


@dataclass(frozen=True)
class Origin:
    """Where audited samples are from, as a page names and shows them.

    Attributes:
        name: Of the data, for the title.
        key: Tells these data from others: marks are kept by the browser under it.
        show: The samples at some places.
        contents: Fingerprints of what they hold, by which corrections know them again.
    """

    name: str
    key: str
    show: Callable[[Ints], Samples]
    contents: Callable[[Sequence[int]], Sequence[str]]


def of_run(run: Run) -> Origin:
    """The training samples of a run; its data are read when they are shown."""
    spec = run.spec
    key, show = spec_hash(spec.as_json()), partial(_run_samples, run)
    return Origin(data_title(spec.data), key, show, run.source.contents)


def _run_samples(run: Run, places: Ints) -> Samples:
    """The rows at these places of the run's arrays, as images or as cells."""
    import torch

    from diw.data.numbers import words_of

    split, bundle = run.source.split, run.source.bundle
    inputs = split.train.inputs
    if len(inputs.shape) == 3 and inputs.shape[0] in (1, 3, 4):
        return Samples(thumbnails(inputs, places), [], None)
    table = _own_table(run)
    rows = split.rows.numpy()[places]
    if table is not None and (not len(rows) or rows.max() < table.rows):
        names = list(table.columns)[:MOST_COLUMNS]
        words = [words_of(table.columns[name]) for name in names]
        cells = [[column[int(row)] or "" for column in words] for row in rows]
        return Samples(None, names, cells)
    encoding = None if bundle.encoding is None else bundle.encoding.rows
    return decoded(inputs.take(torch.from_numpy(places)).numpy(), encoding)


def _own_table(run: Run) -> "TableFile | None":
    """The user's own table as it is written; None for arrays and images."""
    from diw.data.read import read_raw, shared_label
    from diw.data.tables import TableFile
    from diw.runs.sources import is_own

    spec = run.source.found
    if not is_own(spec.data) or not Path(spec.data).is_file():
        return None
    raw = read_raw(
        Path(spec.data),
        shared_label(spec.label),
        need_labels=False,
        text_encoding=spec.text_encoding,
    )
    return raw.content if isinstance(raw.content, TableFile) else None


def decoded(values: NDArray[np.float32], rows: Any) -> Samples:
    """Rows of an array with its own numbers: standardisation is undone."""
    from diw.data.encoding import CategoryColumn, TableRows

    flat = values.reshape(len(values), -1)
    if not isinstance(rows, TableRows) or any(isinstance(c, CategoryColumn) for c in rows.columns):
        names = [str(number) for number in range(flat.shape[1])]
    else:
        names = [column.name for column in rows.columns]
        scale = np.array([getattr(column, "scale", 1.0) for column in rows.columns])
        flat = flat * scale + np.array([getattr(column, "mean", 0.0) for column in rows.columns])
    cells = [[f"{number:.4g}" for number in row[:MOST_COLUMNS]] for row in flat]
    return Samples(None, names[:MOST_COLUMNS], cells)


def thumbnails(inputs: Any, places: Ints, side: int = LARGEST_SIDE, most: int = BYTES) -> list[str]:
    """Images at these places as data URIs: PNG, as large as all together may be.

    Args:
        inputs: The data.
        places: (m,) which of them.
        side: Pixels of the longer side at most.
        most: Bytes of all images at most, before they become text.
    """
    import torch

    pixels = [
        _small(inputs.take(torch.from_numpy(places[start : start + 64])), side)
        for start in range(0, len(places), 64)
    ]
    images = np.concatenate(pixels) if pixels else np.zeros((0, *inputs.shape), np.uint8)
    coded = [png(images[place]) for place in range(len(images))]
    while sum(map(len, coded)) > most and min(images.shape[2:]) >= 16:
        images = _small(torch.from_numpy(images).float() / 255, max(images.shape[2:]) // 2)
        coded = [png(images[place]) for place in range(len(images))]
    return ["data:image/png;base64," + base64.b64encode(code).decode() for code in coded]


def _small(values: "torch.Tensor", side: int) -> NDArray[np.uint8]:
    """(b, c, h, w) in [0, 1] as bytes, no side longer than `side`."""
    import torch

    height, width = values.shape[2:]
    factor = side / max(height, width)
    if factor < 1:
        size = (max(1, round(factor * height)), max(1, round(factor * width)))
        values = torch.nn.functional.interpolate(values, size, mode="area")
    return (values.clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def png(image: NDArray[np.uint8]) -> bytes:
    """An image (c, h, w) of bytes as PNG: grey, RGB or RGBA. Pillow is not needed for this."""
    channels, height, width = image.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = image.transpose(1, 2, 0).reshape(height, -1)

    def chunk(name: bytes, content: bytes) -> bytes:
        checked = name + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
