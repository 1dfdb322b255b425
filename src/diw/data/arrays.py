"""NumPy arrays: `.npz` files in memory, `.npy` files memory-mapped; never unpickled.

An `.npz` holds `X`, `y` and optionally `clean`. An `.npy` file holds X; its labels are
in `NAME.labels.npy`, or `y….npy` beside `X….npy`, or the file that `label` names.
Two dimensions are a table, which is standardised; three or four are images.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from diw.data.checks import Note
from diw.data.dataset import as_float
from diw.data.encoding import (
    CONSTANT,
    FARTHEST,
    LARGEST_NUMBER,
    CategoryColumn,
    ImageRows,
    NumberColumn,
    TableRows,
    is_constant,
    moments,
    standard,
)
from diw.errors import UsageError
from diw.files import Archive, map_array

_CHUNK = 1 << 22
"""Numbers read at a time: an array may be larger than memory."""

_LARGEST = 1e30
"""For images: far beyond data, and small enough that nothing overflows in single precision."""


@dataclass(frozen=True)
class ArrayFile:
    """X (n, ...), its labels and clean marks, as found in the files."""

    source: str
    inputs: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None
    clean: npt.NDArray[np.bool_] | None


def read_npz(path: Path, label: str | None = None) -> ArrayFile:
    """The arrays of an .npz file; `label` names the array of labels if it is not `y`."""
    with Archive(path) as archive:

        def read(*names: str, needed: bool = False) -> npt.NDArray[Any] | None:
            """The array of the first of these names that the file holds."""
            for name in names:
                if name in archive.names:
                    return archive.read(name)
            if needed:
                found = ", ".join(archive.names) or "none"
                raise UsageError(f"{path}: no array {names[0]} in it (it holds: {found})")
            return None

        inputs = read("X", "x", needed=True)
        labels = read(label, needed=True) if label else read("y", "Y")
        clean = read("clean")
    return _together(path, inputs, labels, clean)


def beside(path: Path, label: str | None = None) -> tuple[Path, Path]:
    """Where the labels and clean marks of an .npy of inputs belong, whether or not they exist."""
    labels = Path(label) if label else _beside(path, "labels", "y")
    return labels, _beside(path, "clean", "clean")


def read_npy(path: Path, label: str | None = None) -> ArrayFile:
    """A memory-mapped array and, from the files beside it, its labels."""
    labels, clean = beside(path, label)
    if label and not labels.is_file():
        raise UsageError(f"{labels}: no such file of labels")
    held = (np.array(map_array(file)) if file.is_file() else None for file in (labels, clean))
    return _together(path, map_array(path), *held)


def _beside(path: Path, word: str, letter: str) -> Path:
    """The file that belongs to an .npy of inputs: `X_a.npy` -> `y_a.npy`, else NAME.word.npy."""
    replaced = re.sub(r"^[Xx](?=_|$)|(?<=_)[Xx]$", letter, path.stem)
    stem = replaced if replaced != path.stem else f"{path.stem}.{word}"
    return path.with_name(f"{stem}.npy")


def _together(path: Path, inputs: Any, labels: Any, clean: Any) -> ArrayFile:
    """Refuse arrays that do not belong to each other."""
    if inputs.dtype.kind not in "fiub":
        raise UsageError(f"{path}: X must hold numbers, got {inputs.dtype}")
    if not 2 <= inputs.ndim <= 4 or 0 in inputs.shape:
        raise UsageError(
            f"{path}: X must be rows of features (n, d) or images (n, h, w), (n, h, w, c) or "
            f"(n, c, h, w), got shape {inputs.shape}"
        )
    for name, array in (("labels", labels), ("clean", clean)):
        if array is not None and array.shape != (len(inputs),):
            raise UsageError(
                f"{path}: X has {len(inputs)} rows, its {name} have shape {array.shape}"
            )
    if clean is not None:
        if clean.dtype.kind not in "bui" or not np.isin(clean, (0, 1)).all():
            raise UsageError(f"{path}: clean must hold true or false")
        clean = clean.astype(np.bool_)
    return ArrayFile(str(path), inputs, labels, clean)


@final
class MappedInputs:
    """Rows of an array that stays on disk (`numpy.load(..., mmap_mode="r")`).

    Args:
        values: (n, *shape) array, usually a view of a memory map; read only where rows are taken.
        offset, scale: Per-feature standardisation of tables, `(x - offset) / scale`.
    """

    def __init__(
        self,
        values: npt.NDArray[Any],
        *,
        offset: npt.NDArray[np.float64] | None = None,
        scale: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._values = np.asarray(values)  # a plain view of the map: faster to index
        self._offset = offset
        self._scale = scale
        self.shape = values.shape[1:]

    def __len__(self) -> int:
        return len(self._values)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, *shape); only these rows are read."""
        rows = self._values[index.numpy()]
        if self._offset is not None and self._scale is not None:
            # In double precision, so that a large offset costs no significant digits.
            rows = ((rows - self._offset) / self._scale).astype(np.float32)
        elif rows.dtype != np.uint8:
            rows = rows.astype(np.float32)
        return as_float(torch.from_numpy(np.ascontiguousarray(rows)))


def fit_array(arrays: ArrayFile) -> tuple[ImageRows | TableRows, tuple[Note, ...]]:
    """How rows of this array are read, and notes for the user."""
    values = arrays.inputs
    if values.ndim == 2:
        _finite_range(values, arrays.source, LARGEST_NUMBER)
        mean, spread = standard([moments(chunk) for chunk in _chunks(values)])
        scale = np.where(is_constant(mean, spread), 1.0, spread)
        columns = (
            NumberColumn(str(place), float(m), float(s))
            for place, (m, s) in enumerate(zip(mean, scale, strict=True))
        )
        same = tuple(
            Note(arrays.source, CONSTANT, str(place))
            for place in np.flatnonzero(is_constant(mean, spread))
        )
        return TableRows(tuple(columns)), same
    notes: tuple[Note, ...] = ()
    if values.dtype.kind == "f":
        low, high = _finite_range(values, arrays.source)
        if low < 0 or high > 1:
            text = f"images are floats in [{low:g}, {high:g}] and are taken as they are; bytes "
            notes = (Note(arrays.source, text + "would be scaled to [0, 1]"),)
    _, channels, height, width = _channels_first(values).shape
    return ImageRows((channels, height, width)), notes


def array_inputs(arrays: ArrayFile, rows: ImageRows | TableRows) -> MappedInputs:
    """The inputs of an array, read as `rows` says; another shape is refused."""
    values = arrays.inputs
    if isinstance(rows, ImageRows):
        images = values if values.ndim < 3 else _channels_first(values, rows.shape)
        if images.shape[1:] != rows.shape:
            raise UsageError(
                f"{arrays.source}: expected images of shape {rows.shape} (channels, height, "
                f"width), got rows of shape {values.shape[1:]}"
            )
        if values.dtype != np.uint8:
            low, high = _finite_range(values, arrays.source)
            if values.dtype.kind != "f":
                if low < 0 or high > 255:
                    raise UsageError(
                        f"{arrays.source}: whole-number images must lie in 0..255, found "
                        f"{low:g}..{high:g}"
                    )
                images = images.astype(np.uint8)
        return MappedInputs(images)
    numbers = [c for c in rows.columns if not isinstance(c, CategoryColumn)]
    if values.ndim != 2 or values.shape[1] != len(rows.columns) or len(numbers) != values.shape[1]:
        raise UsageError(
            f"{arrays.source}: expected rows like the training data's, {len(rows.columns)} "
            f"columns, got rows of shape {values.shape[1:]}"
        )
    offset = np.array([c.mean for c in numbers], np.float64)
    scale = np.array([c.scale for c in numbers], np.float64)
    _finite_range(values, arrays.source, LARGEST_NUMBER)
    _refuse_far(values, arrays.source, offset, scale)
    return MappedInputs(values, offset=offset, scale=scale)


def _refuse_far(values: npt.NDArray[Any], source: str, offset: Any, scale: Any) -> None:
    """Refuse numbers that no network could use, as their losses would be infinite."""
    start = 0
    for chunk in _chunks(values):
        far = np.argwhere(np.abs(chunk - offset) > FARTHEST * scale)
        if len(far):
            row, column = map(int, far[0])
            raise UsageError(
                f"{source}: {chunk[row, column]:g} in row {start + row}, column {column} is more "
                f"than {FARTHEST:g} standard deviations from the mean of the training data"
            )
        start += len(chunk)


def _chunks(values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    rows = max(1, _CHUNK // int(np.prod(values.shape[1:])))
    return [values[start : start + rows] for start in range(0, len(values), rows)]


def _finite_range(
    values: npt.NDArray[Any], source: str, largest: float = _LARGEST
) -> tuple[float, float]:
    """Smallest and largest value; NaN and infinity are refused with the row (counted from 0)."""
    low, high, start = np.inf, -np.inf, 0
    for chunk in _chunks(values):
        part_low, part_high = float(chunk.min()), float(chunk.max())
        if not (np.isfinite(part_low) and np.isfinite(part_high)):
            bad = np.argwhere(~np.isfinite(chunk))[0]
            place = ", ".join(str(int(at)) for at in bad[1:])
            raise UsageError(
                f"{source}: X is not finite in row {start + int(bad[0])}, column {place}; fill or "
                "drop such rows"
            )
        if max(abs(part_low), abs(part_high)) > largest:
            raise UsageError(f"{source}: X holds numbers beyond {largest:g}")
        low, high, start = min(low, part_low), max(high, part_high), start + len(chunk)
    return low, high


def _channels_first(
    values: npt.NDArray[Any], like: tuple[int, int, int] | None = None
) -> npt.NDArray[Any]:
    """A view (n, channels, height, width) of images (n, h, w), (n, h, w, c) or (n, c, h, w).

    Where the channels are is decided by the expected shape `like` if there is one, else by which
    end can be channels (1, 3 or 4 of them); the front is preferred.
    """
    if values.ndim == 3:
        return values[:, None]
    first, second, third = values.shape[1:]
    if like is None:
        last = first not in (1, 3, 4) and third in (1, 3, 4)
    else:
        last = (first, second, third) != like and (third, first, second) == like
    return values.transpose(0, 3, 1, 2) if last else values
