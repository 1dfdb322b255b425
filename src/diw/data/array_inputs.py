"""Arrays as inputs: images as they are, tables standardised, either without copying a map."""

from typing import Any

import numpy as np
import numpy.typing as npt

from diw.data.arrays import Arrays
from diw.data.encoding import CategoryColumn, ImageRows, NumberColumn, TableRows
from diw.data.inputs import MappedInputs
from diw.errors import UsageError

_CHUNK = 1 << 22
"""Numbers looked at together: an array may be larger than memory."""

_LARGEST = 1e30
"""Far beyond data, and small enough that nothing overflows in single precision."""


def fit_array(arrays: Arrays) -> tuple[ImageRows | TableRows, tuple[str, ...]]:
    """How rows of this array are read, and what must be said about it."""
    values = arrays.inputs
    if values.ndim == 2:
        mean, scale = column_statistics(values, arrays.source)
        columns = (
            NumberColumn(str(place), float(m), float(s))
            for place, (m, s) in enumerate(zip(mean, scale, strict=True))
        )
        return TableRows(tuple(columns)), ()
    notes: tuple[str, ...] = ()
    if values.dtype.kind == "f":
        low, high = _finite_range(values, arrays.source)
        if low < 0 or high > 1:
            notes = (
                f"{arrays.source}: images are floats in [{low:g}, {high:g}] and are taken as they "
                "are; bytes would be scaled to [0, 1]",
            )
    channels, height, width = _image_shape(values, None)
    return ImageRows((channels, height, width)), notes


def array_inputs(arrays: Arrays, rows: ImageRows | TableRows) -> MappedInputs:
    """The inputs of an array, read as `rows` says; another shape is refused."""
    values = arrays.inputs
    if isinstance(rows, ImageRows):
        if values.ndim < 3 or _image_shape(values, rows.shape) != rows.shape:
            raise UsageError(
                f"{arrays.source}: expected images of shape {rows.shape} (channels, height, "
                f"width), got rows of shape {values.shape[1:]}"
            )
        if values.dtype.kind == "f":
            _finite_range(values, arrays.source)
        elif values.dtype != np.uint8:
            values = _to_bytes(values, arrays.source)
        last = values.ndim == 4 and _channels_last(values, rows.shape)
        return MappedInputs(values, channels_last=last)
    numbers = [c for c in rows.columns if not isinstance(c, CategoryColumn)]
    if values.ndim != 2 or values.shape[1] != len(rows.columns) or len(numbers) != values.shape[1]:
        raise UsageError(
            f"{arrays.source}: expected rows like the training data's, {len(rows.columns)} "
            f"columns, got rows of shape {values.shape[1:]}"
        )
    _finite_range(values, arrays.source)
    return MappedInputs(
        values,
        offset=np.array([c.mean for c in numbers], np.float64),
        scale=np.array([c.scale for c in numbers], np.float64),
    )


def column_statistics(
    values: npt.NDArray[Any], source: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and standard deviation (d,) of the columns of (n, d), in two passes over chunks.

    A constant column gets scale one. Anything not finite is refused with its place.
    """
    _finite_range(values, source)
    mean = np.zeros(values.shape[1])
    for chunk in _chunks(values):
        mean += chunk.astype(np.float64).sum(axis=0) / len(values)
    square = np.zeros(values.shape[1])
    for chunk in _chunks(values):
        square += ((chunk - mean) ** 2).sum(axis=0) / len(values)
    scale = np.sqrt(square)
    return mean, np.where(scale > 1e-12 * np.maximum(1, np.abs(mean)), scale, 1.0)


def _chunks(values: npt.NDArray[Any]) -> "list[npt.NDArray[Any]]":
    rows = max(1, _CHUNK // int(np.prod(values.shape[1:])))
    return [values[start : start + rows] for start in range(0, len(values), rows)]


def _finite_range(values: npt.NDArray[Any], source: str) -> tuple[float, float]:
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
        if max(abs(part_low), abs(part_high)) > _LARGEST:
            raise UsageError(f"{source}: X holds numbers beyond {_LARGEST:g}")
        low, high, start = min(low, part_low), max(high, part_high), start + len(chunk)
    return low, high


def _image_shape(
    values: npt.NDArray[Any], like: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """(channels, height, width) of the images in (n, h, w), (n, h, w, c) or (n, c, h, w)."""
    sides = values.shape[1:]
    if len(sides) == 2:
        return (1, sides[0], sides[1])
    if _channels_last(values, like):
        return (sides[2], sides[0], sides[1])
    return (sides[0], sides[1], sides[2])


def _channels_last(values: npt.NDArray[Any], like: tuple[int, int, int] | None) -> bool:
    """Whether (n, a, b, c) has its channels at the end.

    By the shape that is expected if there is one, else by which end could be
    channels (1, 3 or 4 of them), the front being preferred.
    """
    first, second, third = values.shape[1:]
    if like is not None:
        return (first, second, third) != like and (third, first, second) == like
    return first not in (1, 3, 4) and third in (1, 3, 4)


def _to_bytes(values: npt.NDArray[Any], source: str) -> npt.NDArray[np.uint8]:
    """Whole numbers in 0..255 of a wider type as bytes."""
    low, high = _finite_range(values, source)
    if low < 0 or high > 255:
        raise UsageError(
            f"{source}: whole-number images must lie in 0..255, found {low:g}..{high:g}"
        )
    return values.astype(np.uint8)
