"""Data sets whose samples are taken by row number, in the forms that users have them.

Everything that selects samples (mini-batches, the trusted stream, a static
match of whole sets) works on row numbers and takes inputs only when it needs them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data import default_collate as collated  # pyright: ignore[reportUnknownVariableType]

from diw.brief import in_a_line
from diw.errors import UsageError
from diw.seeding import torch_generator
from diw.step.batch import Batch, ModelInputs, each_tensor, first_tensor, label_key
from diw.step.world import LOCAL, World

PIECE = 1000
"""Rows taken, or run through a network, at a time."""


class Rows(Protocol):
    """Samples that can be taken by row number: a data set as this package sees it."""

    @property
    def targets(self) -> Tensor | None:
        """The labels (n,); None for unlabelled samples."""
        ...

    def take(self, index: Tensor) -> tuple[ModelInputs, Tensor | None]:
        """The inputs and labels of the rows `index` (b,)."""
        ...

    def __len__(self) -> int: ...


class Readable(Protocol):
    """Inputs without labels that can be taken by row number."""

    def take(self, index: Tensor) -> Any:
        """The inputs of the rows `index` (b,)."""
        ...

    def __len__(self) -> int: ...


class Unlabelled:
    """Rows that have inputs only."""

    targets = None

    def __init__(self, inputs: Readable):
        self._inputs = inputs

    def __len__(self) -> int:
        return len(self._inputs)

    def take(self, index: Tensor) -> tuple[ModelInputs, None]:
        """The inputs of the rows `index` (b,), and no labels."""
        return self._inputs.take(index), None


class TensorRows:
    """Rows held as tensors: inputs (n, …) and targets (n,), or None if unlabelled."""

    def __init__(self, inputs: ModelInputs, targets: Tensor | None):
        self._inputs = inputs
        self.targets = targets

    def __len__(self) -> int:
        return len(first_tensor(self._inputs))

    def take(self, index: Tensor) -> tuple[ModelInputs, Tensor | None]:
        """The rows `index` (b,) of every tensor."""

        def rows(values: Tensor) -> Tensor:
            return values.index_select(0, index.to(values.device))

        targets = None if self.targets is None else rows(self.targets)
        return each_tensor(self._inputs, rows), targets


Collate = Callable[[list[Any]], Any]
"""(samples) → a batch of them, as a `DataLoader` takes for `collate_fn`."""


class DatasetRows:
    """A map-style PyTorch data set of (input, target) pairs, or of mappings with a label."""

    def __init__(self, dataset: Any, name: str = "trusted", collate: Collate | None = None):
        """Take samples as they are asked for.

        Args:
            dataset: Has `len` and gives samples by number.
            name: The argument that holds it, for messages.
            collate: Makes a batch of samples; None is PyTorch's own way.
        """
        self._dataset = dataset
        self._name = name
        self._collate = collate
        self._targets: Tensor | None = None

    def __len__(self) -> int:
        return len(self._dataset)

    def take(self, index: Tensor) -> tuple[ModelInputs, Tensor | None]:
        """The rows `index` (b,), collated as a PyTorch loader does."""
        samples = [self._dataset[int(i)] for i in index.numpy()]
        batch = Batch.of((self._collate or collated)(samples), self._name)
        return batch.inputs, batch.targets

    @property
    def targets(self) -> Tensor:
        """The labels (n,), read from every sample on first use."""
        if self._targets is None:
            samples = (self._dataset[i] for i in range(len(self)))
            self._targets = torch.as_tensor([_label(sample, self._name) for sample in samples])
        return self._targets


class IndexedDataset(Dataset[Any]):
    """A map-style data set whose samples also say where they are in it.

    Methods that remember samples need this: a loader over it yields
    (inputs, targets, index), or mappings with an `index`.

    Example:
        >>> loader = DataLoader(diw.IndexedDataset(dataset), batch_size=256, shuffle=True)
    """

    __repr__ = in_a_line

    def __init__(self, dataset: Any):
        """Add the index to the samples of `dataset`, which are tuples or mappings."""
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, place: int) -> Any:
        sample = self.dataset[place]
        if isinstance(sample, Mapping):
            return {**cast(Mapping[str, Any], sample), "index": place}
        return (*sample, place)


def as_rows(data: Any, name: str = "trusted", collate: Collate | None = None) -> Rows:
    """Samples in any usual form as `Rows`.

    Args:
        data: (inputs, targets) tensors or arrays, a mapping of tensors with labels, a `Batch`, a
            map-style PyTorch data set, a `DataLoader` over one, or anything that is `Rows` already.
        name: The argument that holds them, for messages.
        collate: Makes a batch of a data set's samples; None is the loader's or PyTorch's own way.
    """
    if isinstance(data, DataLoader):
        loader: Any = cast(Any, data)
        data, collate = loader.dataset, collate or cast(Collate, loader.collate_fn)
    if isinstance(data, IterableDataset):
        raise UsageError(
            f"{name}: an IterableDataset has no rows to draw from; give a map-style data set"
        )
    if isinstance(data, Mapping):
        data = Batch.of(cast(Mapping[str, Any], data), name)
    if isinstance(data, Batch):
        data = (data.inputs, data.targets)
    if isinstance(data, (str, Tensor, np.ndarray)):
        raise UsageError(f"{name}: give inputs and targets together: {name}=(inputs, targets)")
    indexable = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    if hasattr(data, "take"):
        rows: Rows = data
    elif isinstance(data, (tuple, list)) and len(parts := cast(Sequence[Any], data)) == 2:
        inputs, targets = (each_tensor(part, lambda x: _tensor(x, name)) for part in parts)
        count = len(first_tensor(inputs))
        if targets is not None and count != len(targets):
            raise UsageError(f"{name}: {count} inputs but {len(targets)} targets")
        rows = TensorRows(inputs, targets)
    elif indexable:
        rows = DatasetRows(data, name, collate)
    else:
        raise UsageError(
            f"{name}: give (inputs, targets), a map-style data set, a DataLoader or a diw.Batch"
        )
    if not len(rows):
        raise UsageError(f"{name}: the {name} set is empty; give at least one sample")
    return rows


def in_pieces(rows: Rows, index: Tensor | None = None, *, piece: int = PIECE) -> Iterator[Batch]:
    """Batches of at most `piece` rows, in the order of `index` (b,); of all rows by default."""
    index = torch.arange(len(rows)) if index is None else index
    for part in torch.split(index, piece):
        inputs, targets = rows.take(part)
        yield Batch(inputs, targets, part)


class TrustedStream:
    """Draws trusted mini-batches for ever: pass after pass, each a new order.

    A pass is cut into batches of nearly equal size, at most `batch_size`, so that
    no step matches against a small remainder. The order of a pass is decided
    by the seed and the pass alone: the state is one number. Or each batch is drawn afresh from the
    whole set, as in the authors' released example.
    """

    def __init__(
        self,
        rows: Rows,
        batch_size: int,
        seed: int,
        world: World = LOCAL,
        afresh: bool = False,
    ):
        """Open the stream.

        Args:
            rows: The trusted set.
            batch_size: The largest batch; a smaller trusted set is taken whole each time.
            seed: Decides the orders.
            world: The processes that look at a batch together, each at a part of it.
            afresh: Whether each batch is `batch_size` samples of the whole set, without regard to
                earlier ones.
        """
        if batch_size < 1:
            raise UsageError(f"trusted_batch_size: must be at least 1, and is {batch_size}")
        self._rows = rows
        self._seed = seed
        self._world = world
        self._afresh = min(batch_size, len(rows)) if afresh else None
        self.batches_per_pass = -(-len(rows) // batch_size)
        self.drawn = 0

    def draw(self) -> Batch:
        """The next batch, with the samples' places in the trusted set as its index."""
        turn, part = divmod(self.drawn, 1 if self._afresh else self.batches_per_pass)
        order = torch.randperm(
            len(self._rows), generator=torch_generator(self._seed, "trusted order", turn)
        )
        if self._afresh:
            index = self._world.share(order[: self._afresh])
        else:
            index = self._world.share(order.tensor_split(self.batches_per_pass)[part])
        inputs, targets = self._rows.take(index)
        self.drawn += 1
        return Batch(inputs, targets, index)

    def state_dict(self) -> dict[str, int]:
        """How many batches were drawn."""
        return {"drawn": self.drawn}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on after as many batches as `state_dict` says."""
        self.drawn = state["drawn"]


def _label(sample: Any, name: str) -> Any:
    if isinstance(sample, Mapping):
        named = cast(Mapping[str, Any], sample)
        return named[label_key(named, name)]
    return sample[1]


def _tensor(values: Any, name: str) -> Tensor | None:
    """A NumPy array as a tensor; a tensor or None unchanged."""
    if isinstance(values, np.ndarray):
        return torch.as_tensor(cast(NDArray[Any], values))
    if values is None or isinstance(values, Tensor):
        return values
    raise UsageError(f"{name}: give tensors or NumPy arrays, not {type(values).__name__}")
