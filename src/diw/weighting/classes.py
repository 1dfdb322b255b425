"""What class-by-class matching remembers: class counts, and trusted values by class."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from diw.errors import UsageError
from diw.weighting.by_class import prior_ratios


class ClassCounts:
    """How many samples of each class there are: over the whole sets, or as far as seen."""

    def __init__(self, train: Tensor | None, trusted: Tensor):
        """Count.

        Args:
            train: The labels of the whole training set; None counts them as they come by.
            trusted: The labels of the whole trusted set.
        """
        self.complete = train is not None
        self.train = _count(train if train is not None else trusted[:0])
        self.trusted = _count(trusted)

    def see(self, labels: Tensor) -> None:
        """Count the labels of a batch, where the whole training set is not known."""
        if not self.complete:
            self.train = _add(self.train, _count(labels))

    @property
    def classes(self) -> int:
        """How many classes have a sample on either side."""
        return int((_add(self.train, self.trusted) > 0).sum())

    def ratios(self) -> Tensor:
        """w_y* by class, (k,)."""
        k = max(len(self.train), len(self.trusted))
        return prior_ratios(_pad(self.train, k), _pad(self.trusted, k))

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return {"complete": self.complete, "train": self.train, "trusted": self.trusted}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "ClassCounts":
        """The counts that `state_dict` gave."""
        counts = cls(None, torch.empty(0, dtype=torch.int64))
        counts.complete = state["complete"]
        counts.train, counts.trusted = state["train"].cpu(), state["trusted"].cpu()
        return counts


class TrustedCache:
    """The latest values z of each trusted sample that was drawn, by its place in the set."""

    def __init__(self) -> None:
        self._labels = torch.empty(0, dtype=torch.int64)
        self._values: Tensor | None = None

    def update(self, index: Tensor, labels: Tensor, values: Tensor) -> None:
        """Keep the values (m, d) of the trusted samples `index` (m,) with `labels` (m,)."""
        index, labels, values = index.cpu(), labels.cpu(), values.detach().cpu()
        missing = int(index.max()) + 1 - len(self._labels)
        if self._values is None:
            self._values = values.new_empty((0, *values.shape[1:]))
        if missing > 0:
            self._labels = torch.cat([self._labels, self._labels.new_full((missing,), -1)])
            room = values.new_zeros((missing, *values.shape[1:]))
            self._values = torch.cat([self._values, room])
        self._labels[index] = labels
        self._values[index] = values

    def of(self, label: int) -> Tensor | None:
        """The values (m_y, d) of the trusted samples of one class; None if none was drawn yet."""
        rows = (self._labels == label).nonzero().flatten()
        return self._values[rows] if self._values is not None and len(rows) else None

    def state_dict(self) -> dict[str, Any]:
        """What is kept."""
        return {"labels": self._labels.clone(), "values": _copy(self._values)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._labels = state["labels"].cpu().clone()
        self._values = _copy(state["values"])


def class_labels(targets: Tensor | None, side: str) -> Tensor:
    """Labels (n,) that can partition samples: class numbers, on the CPU.

    Args:
        targets: What the batch or data set holds.
        side: `"train"` or `"trusted"`, for the message.
    """
    if targets is None:
        raise UsageError(
            f"{side}: matching class by class needs labels; set partition=false for covariate shift"
        )
    if targets.ndim != 1 or targets.is_floating_point():
        raise UsageError(
            f"{side}: matching class by class needs class numbers (n,), not "
            f"{targets.dtype} {tuple(targets.shape)}; use a -L method, or partition=false"
        )
    return targets.detach().to("cpu", torch.int64)


def _count(labels: Tensor) -> Tensor:
    return torch.bincount(labels) if len(labels) else labels.new_zeros(0, dtype=torch.int64)


def _pad(counts: Tensor, k: int) -> Tensor:
    return functional.pad(counts, (0, k - len(counts)))


def _add(a: Tensor, b: Tensor) -> Tensor:
    k = max(len(a), len(b))
    return _pad(a, k) + _pad(b, k)


def _copy(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.cpu().clone()
