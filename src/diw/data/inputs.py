"""The ways inputs are held: a tensor, a memory-mapped array, image files, and views of these.

All of them answer `take(index)` with a fresh float32 tensor; none copies the
data set, whatever is selected from it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

if TYPE_CHECKING:
    from diw.data.dataset import Inputs


@final
class TensorInputs:
    """Rows in memory: uint8 images, scaled to [0, 1] when taken, or floats, taken as they are."""

    def __init__(self, values: Tensor) -> None:
        """Hold `values` (n, *shape), uint8 or float32, images channels first."""
        if values.dtype not in (torch.uint8, torch.float32):
            raise ValueError(f"values: expected uint8 or float32, got {values.dtype}")
        self._values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self._values.shape[1:])

    def __len__(self) -> int:
        return len(self._values)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, *shape)."""
        return _as_float(self._values.index_select(0, index))


@final
class MappedInputs:
    """Rows of an array that stays on disk (`numpy.load(..., mmap_mode="r")`).

    Args:
        values: (n, ...) array, usually a memory map; read only where rows are taken.
        channels_last: Images stored (n, height, width, channels).
        offset, scale: Per-feature standardisation of tables, `(x - offset) / scale`.
    """

    def __init__(
        self,
        values: npt.NDArray[Any],
        *,
        channels_last: bool = False,
        offset: npt.NDArray[np.float64] | None = None,
        scale: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._values = np.asarray(values)  # a plain view of the map: indexing it is quicker
        self._channels_last = channels_last
        self._offset = offset
        self._scale = scale

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row, channels first; a grey image without channel axis gets one."""
        shape = tuple(self._values.shape[1:])
        if len(shape) == 2:
            return (1, *shape)
        return (shape[2], *shape[:2]) if self._channels_last else shape

    def __len__(self) -> int:
        return len(self._values)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, *shape); only these rows are read."""
        rows = self._values[index.numpy()]
        if self._offset is not None and self._scale is not None:
            # In double precision: a large offset must not cost the digits that differ.
            rows = ((rows - self._offset) / self._scale).astype(np.float32)
        elif rows.dtype != np.uint8:
            rows = rows.astype(np.float32)
        if self._channels_last:
            rows = rows.transpose(0, 3, 1, 2)
        rows = np.ascontiguousarray(rows.reshape(len(index), *self.shape))
        return _as_float(torch.from_numpy(rows))


@final
class FolderInputs:
    """Image files, decoded when taken and resized to one size.

    Args:
        files: One path a row.
        shape: (channels, height, width) of every row; 1 channel is grey, 3 is RGB.
    """

    def __init__(self, files: Sequence[Path], shape: tuple[int, int, int]) -> None:
        self._files = tuple(files)
        self._shape = shape

    @property
    def shape(self) -> tuple[int, ...]:
        """(channels, height, width)."""
        return self._shape

    def __len__(self) -> int:
        return len(self._files)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, channels, height, width) in [0, 1]."""
        from diw.data.images import decode_image

        images = np.empty((len(index), *self._shape), np.uint8)
        for place, row in enumerate(index.tolist()):
            images[place] = decode_image(self._files[row], self._shape)
        return _as_float(torch.from_numpy(images))


@final
class SubsetInputs:
    """A selection of rows of other inputs; a selection of a selection is one selection."""

    def __init__(self, base: "Inputs", index: Tensor) -> None:
        self.base = base
        self.index = index

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return self.base.shape

    def __len__(self) -> int:
        return len(self.index)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) of the selection."""
        return self.base.take(self.index.index_select(0, index))


@final
class JoinedInputs:
    """The rows of one source followed by those of another."""

    def __init__(self, first: "Inputs", second: "Inputs") -> None:
        if first.shape != second.shape:
            raise ValueError(f"second: expected rows of shape {first.shape}, got {second.shape}")
        self._first = first
        self._second = second

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return self._first.shape

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,), counted through both sources."""
        later = index >= len(self._first)
        taken = torch.empty((len(index), *self.shape), dtype=torch.float32)
        if not bool(later.all()):
            taken[~later] = self._first.take(index[~later])
        if bool(later.any()):
            taken[later] = self._second.take(index[later] - len(self._first))
        return taken


def select_inputs(inputs: "Inputs", index: Tensor) -> SubsetInputs:
    """The rows `index` (m,) int64 of `inputs` without copying them."""
    if index.dtype != torch.int64 or index.ndim != 1:
        raise ValueError(
            f"index: expected row numbers (m,) int64, got {index.dtype} {tuple(index.shape)}"
        )
    n = len(inputs)
    if len(index) and (int(index.min()) < 0 or int(index.max()) >= n):
        raise ValueError(f"index: row numbers must lie in 0..{n - 1}")
    if isinstance(inputs, SubsetInputs):
        return SubsetInputs(inputs.base, inputs.index.index_select(0, index))
    return SubsetInputs(inputs, index)


def _as_float(values: Tensor) -> Tensor:
    """Bytes to float32 in [0, 1]; floats stay as they are."""
    if values.dtype == torch.uint8:
        return values.to(torch.float32).div_(255)
    return values
