"""The endless, seeded, resumable stream of trusted mini-batches."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from diw.errors import UsageError
from diw.seeding import torch_generator
from diw.step.batch import Batch, first_tensor


class Rows(Protocol):
    """Samples that can be taken by row number."""

    def take(self, index: Tensor) -> tuple[Any, Tensor]:
        """The inputs and labels of some rows."""
        ...

    def __len__(self) -> int: ...


class TensorRows:
    """Trusted samples given as tensors: inputs (m, …) and targets (m,), or None if unlabelled."""

    def __init__(self, inputs: Any, targets: Tensor | None):
        self._batch = Batch(inputs, targets)

    def __len__(self) -> int:
        return len(self._batch)

    def take(self, index: Tensor) -> tuple[Any, Any]:
        """Some rows of the tensors; targets are None where none were given."""
        batch = self._batch
        return _rows(batch.inputs, index), _rows(batch.targets, index)

    @property
    def targets(self) -> Any:
        """The labels (m,), or None."""
        return self._batch.targets


class DatasetRows:
    """Trusted samples given as a map-style PyTorch data set of (input, target) pairs."""

    def __init__(self, dataset: Any):
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def take(self, index: Tensor) -> tuple[Any, Tensor]:
        """Some rows, collated as a PyTorch loader does."""
        from torch.utils.data import default_collate

        inputs, targets = default_collate([self._dataset[i] for i in index.tolist()])
        return inputs, targets

    @cached_property
    def targets(self) -> Tensor:
        """The labels (m,), read once from every sample."""
        return torch.as_tensor([self._dataset[i][1] for i in range(len(self))])


def as_rows(trusted: Any) -> Rows:
    """Trusted samples in any usual form as rows that can be taken.

    Args:
        trusted: (inputs, targets) tensors, a `Batch`, a map-style PyTorch data set, or anything
            with `take(index)` and a length.
    """
    if isinstance(trusted, Batch):
        trusted = (trusted.inputs, trusted.targets)
    if isinstance(trusted, (str, Tensor, np.ndarray)):
        raise UsageError("trusted: give inputs and targets together: trusted=(inputs, targets)")
    if hasattr(trusted, "take"):
        rows: Rows = trusted
    elif isinstance(trusted, (tuple, list)) and len(trusted) == 2:
        inputs, targets = (_tensors(part) for part in trusted)
        count = len(first_tensor(inputs))
        if targets is not None and count != len(targets):
            raise UsageError(f"trusted: {count} inputs but {len(targets)} targets")
        rows = TensorRows(inputs, targets)
    elif hasattr(trusted, "__getitem__") and hasattr(trusted, "__len__"):
        rows = DatasetRows(trusted)
    else:
        raise UsageError("trusted: give (inputs, targets), a map-style data set or a diw.Batch")
    if not len(rows):
        raise UsageError("trusted: the trusted set is empty; give at least one sample")
    return rows


class TrustedStream:
    """Draws trusted mini-batches for ever: pass after pass, each a new order.

    A pass is cut into batches of nearly equal size, at most `batch_size`, so that
    no step matches against a small remainder. The order of a pass is decided
    by the seed and the pass alone: the state is one number.
    """

    def __init__(self, rows: Rows, batch_size: int, seed: int):
        """Open the stream.

        Args:
            rows: The trusted set.
            batch_size: The largest batch; a smaller trusted set is taken whole each time.
            seed: Decides the orders.
        """
        if batch_size < 1:
            raise UsageError(f"trusted_batch_size: must be at least 1, and is {batch_size}")
        self._rows = rows
        self._seed = seed
        self.batches_per_pass = -(-len(rows) // batch_size)
        self.drawn = 0

    def draw(self) -> Batch:
        """The next batch, with the samples' places in the trusted set as its index."""
        turn, part = divmod(self.drawn, self.batches_per_pass)
        order = torch.randperm(
            len(self._rows), generator=torch_generator(self._seed, "trusted order", turn)
        )
        index = order.tensor_split(self.batches_per_pass)[part]
        inputs, targets = self._rows.take(index)
        self.drawn += 1
        return Batch(inputs, targets, index)

    def state_dict(self) -> dict[str, int]:
        """How many batches were drawn."""
        return {"drawn": self.drawn}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on after as many batches as `state_dict` says."""
        self.drawn = state["drawn"]


def _tensors(values: Any) -> Any:
    """NumPy arrays as tensors, inside tuples and mappings too; the rest as it is."""
    if isinstance(values, np.ndarray):
        return torch.from_numpy(values)
    if isinstance(values, Mapping):
        return {name: _tensors(value) for name, value in values.items()}
    if isinstance(values, (tuple, list)):
        return tuple(_tensors(value) for value in values)
    if values is None or isinstance(values, Tensor):
        return values
    raise UsageError(f"trusted: give tensors or NumPy arrays, not {type(values).__name__}")


def _rows(values: Any, index: Tensor) -> Any:
    if values is None:
        return None
    if isinstance(values, Tensor):
        return values.index_select(0, index.to(values.device))
    if isinstance(values, Mapping):
        return {name: _rows(value, index) for name, value in values.items()}
    return tuple(_rows(value, index) for value in values)
