"""What a data set is: inputs that are read by index, labels in memory, class names.

Labels are small and always in memory; inputs may be larger than memory. So
everything that selects (splits, shifts, mini-batches) works on row numbers,
and inputs are read only where a mini-batch is taken. Inputs are held in memory
(`TensorInputs`), in a memory-mapped array (`arrays.MappedInputs`), in image files
(`images.ImageInputs`), or as a view of others; none copies the data set when rows are selected.
"""

from dataclasses import dataclass, field
from typing import Literal, final

import torch
from torch import Tensor

from diw.brief import in_a_line
from diw.data.checks import Note
from diw.data.encoding import Encoding
from diw.shifts.shift import Inputs


@final
class TensorInputs:
    """Rows in memory: uint8 images, scaled to [0, 1] when taken, or floats, unchanged."""

    __repr__ = in_a_line

    def __init__(self, values: Tensor) -> None:
        """Hold `values` (n, *shape), uint8 or float32, images channels first."""
        if values.dtype not in (torch.uint8, torch.float32):
            raise ValueError(f"values: expected uint8 or float32, got {values.dtype}")
        self._values = values
        self.shape = tuple(values.shape[1:])

    def __len__(self) -> int:
        return len(self._values)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) as float32 (b, *shape)."""
        return as_float(self._values.index_select(0, index))


@final
class SubsetInputs:
    """A selection of rows of other inputs; a selection of a selection is one selection."""

    def __init__(self, base: Inputs, index: Tensor) -> None:
        """Select the rows `index` (m,) int64 of `base` without copying them."""
        if index.dtype != torch.int64 or index.ndim != 1:
            raise ValueError(
                f"index: expected row numbers (m,) int64, got {index.dtype} {tuple(index.shape)}"
            )
        if len(index) and (int(index.min()) < 0 or int(index.max()) >= len(base)):
            raise ValueError(f"index: row numbers must lie in 0..{len(base) - 1}")
        if isinstance(base, SubsetInputs):
            base, index = base.base, base.index.index_select(0, index)
        self.base: Inputs = base
        self.index = index
        self.shape = base.shape

    def __len__(self) -> int:
        return len(self.index)

    def take(self, index: Tensor) -> Tensor:
        """Rows `index` (b,) of the selection."""
        return self.base.take(self.index.index_select(0, index))


@final
class JoinedInputs:
    """The rows of one source followed by those of another."""

    def __init__(self, first: Inputs, second: Inputs) -> None:
        if first.shape != second.shape:
            raise ValueError(f"second: expected rows of shape {first.shape}, got {second.shape}")
        self._first = first
        self._second = second
        self.shape = first.shape

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


def as_float(values: Tensor) -> Tensor:
    """Bytes scaled to float32 in [0, 1]; floats unchanged."""
    if values.dtype == torch.uint8:
        return values.to(torch.float32).div_(255)
    return values


@dataclass(frozen=True)
class Dataset:
    """Labelled rows.

    Attributes:
        inputs: The rows, n of them.
        targets: (n,) int64, class numbers in [0, len(classes)).
        classes: The name of each class number.
    """

    __repr__ = in_a_line

    inputs: Inputs
    targets: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.targets.shape != (len(self.inputs),):
            raise ValueError(
                f"targets: expected shape ({len(self.inputs)},) to go with the inputs, "
                f"got {tuple(self.targets.shape)}"
            )
        if self.targets.dtype != torch.int64:
            raise ValueError(f"targets: expected int64 class numbers, got {self.targets.dtype}")
        if len(self.targets):
            low, high = (int(v) for v in torch.aminmax(self.targets))
            if low < 0 or high >= len(self.classes):
                raise ValueError(
                    f"targets: class numbers must lie in 0..{len(self.classes) - 1}, "
                    f"found {low}..{high}"
                )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.inputs.shape

    @property
    def num_classes(self) -> int:
        """How many classes there are (a class may have no row)."""
        return len(self.classes)

    @property
    def class_counts(self) -> Tensor:
        """(num_classes,) int64, the rows of each class."""
        return torch.bincount(self.targets, minlength=self.num_classes)

    def take(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (b, *shape) float32 and targets (b,) int64 of the rows `index` (b,) int64."""
        return self.inputs.take(index), self.targets.index_select(0, index)

    def subset(self, index: Tensor) -> "Dataset":
        """The rows `index` (m,), in that order; a view, inputs are not copied."""
        inputs, targets = SubsetInputs(self.inputs, index), self.targets.index_select(0, index)
        return Dataset(inputs, targets, self.classes)


@dataclass(frozen=True)
class Bundle:
    """One data source as it was read, before any shift or split.

    Attributes:
        name: A data set name or a file name.
        kind: Decides the default model.
        train: The training rows.
        test: The test rows, or None when none were given.
        trusted: Trusted rows from a file of their own, or None.
        notes: Notes for the user on how the data were read (missing values and the like).
        clean: (n_train,) bool, rows whose labels are known to be right; None when nothing is known.
        encoding: How the files were read, so that later files are read the same way.
    """

    __repr__ = in_a_line

    name: str
    kind: Literal["image", "table"]
    train: Dataset
    test: Dataset | None = None
    trusted: Dataset | None = None
    notes: tuple[Note, ...] = ()
    clean: Tensor | None = field(default=None, repr=False)
    encoding: Encoding | None = field(default=None, repr=False)
