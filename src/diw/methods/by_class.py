"""Matching class by class: the partition, the class priors and what to do with absent classes.

Fang et al. 2020, Eq. (8): p_te(x, y)/p_tr(x, y) = w_y* · p_te(z|y)/p_tr(z|y) with
w_y* = p_te(y)/p_tr(y). The second factor has mean one within a class, so the
matched weights are scaled to that before they are multiplied; a class then has
exactly the share of the total weight that its prior ratio gives it.

No sample is lost where a class is absent:

- from the trusted part of a mini-batch: the latest values of trusted samples of
  that class are taken, from a cache;
- from the cache too (no trusted sample of it was drawn yet), or from the whole
  trusted set: there is nothing to match, and its samples get w_y* alone;
- w_y* itself counts a class without any trusted sample as half a sample, so
  that its weight is small but not zero;
- from the training part: there is nothing to weigh.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from diw.errors import UsageError
from diw.matching import Match
from diw.methods.base import Task
from diw.step.batch import Batch
from diw.step.step import Step

FEWEST = 3
"""Training samples per class, on average, below which mini-batches cannot be matched by class."""
TELLING = 32
"""A first batch of at least this size has the full size; a smaller one may be a remainder."""
HALF_A_SAMPLE = 0.5
"""What a class without trusted samples counts for (Jeffreys's pseudo-count)."""

Solve = Callable[[Iterable[tuple[Tensor, Tensor]]], list[Match]]
"""Matches each pair (z_train, z_trusted) by itself."""


@dataclass(frozen=True)
class Side:
    """Training or trusted samples: their labels (n,) and a way to the values z of some rows."""

    labels: Tensor
    values: Callable[[Tensor], Tensor]


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
    labels = targets.detach().to("cpu", torch.int64)
    if len(labels) and int(labels.min()) < 0:
        row = int((labels < 0).nonzero()[0])
        raise UsageError(f"{side}: row {row} has the label {int(labels[row])}; leave such rows out")
    return labels


def count(labels: Tensor) -> Tensor:
    """How many samples of each class there are, (k,), from class numbers (n,)."""
    return torch.bincount(labels) if len(labels) else labels.new_zeros(0, dtype=torch.int64)


def prior_ratios(train: Tensor, trusted: Tensor) -> Tensor:
    """w_y* = p_trusted(y)/p_train(y) per class, (k,), from the counts of the whole sets.

    A class without trusted samples counts as half a sample; one without
    training samples has no weight to give and gets 0.
    """
    train, trusted = _same_length(train, trusted)
    ours, theirs = train.double(), trusted.double().clamp(min=HALF_A_SAMPLE)
    ratios = theirs / trusted.sum().clamp(min=1) * ours.sum() / ours
    return torch.where(ours > 0, ratios, 0.0)


def match_by_class(
    train: Side,
    trusted: Side,
    ratios: Tensor,
    solve: Solve,
    *,
    bound: float,
    spare: Callable[[int], Tensor | None] | None = None,
    scale: bool = True,
) -> tuple[Tensor, dict[str, float]]:
    """Weights (n,) from one matching problem per class, float64 on the CPU, and the solver's facts.

    w_i = w_y* · v_i / mean(v over the class), see the module's text.

    Args:
        train: The samples to weigh.
        trusted: The samples to match them to.
        ratios: (k,) w_y* by class.
        solve: Solves the problems; they are made one at a time, so it may be lazy.
        bound: B, to count the weights that reach it.
        spare: (label) → values of trusted samples that `trusted` lacks, or None.
        scale: Divide by the mean over the class; False gives w_y* · v_i.
    """
    ours, theirs = train.labels.cpu(), trusted.labels.cpu()
    weights = ratios[ours]
    matched: list[Tensor] = []
    sources: list[Callable[[], Tensor]] = []
    for label in map(int, _places(count(ours))):
        rows = _places(theirs == label)
        kept = spare(label) if spare is not None and not len(rows) else None
        if len(rows):
            sources.append(partial(trusted.values, rows))
        elif kept is not None:
            sources.append(lambda kept=kept: kept)
        else:
            continue
        matched.append(_places(ours == label))

    def problems() -> Iterator[tuple[Tensor, Tensor]]:
        for rows, source in zip(matched, sources, strict=True):
            z_train = train.values(rows)
            yield z_train, source().to(z_train)

    at_bound, iterations, covered = 0.0, 0.0, 0
    for rows, match in zip(matched, solve(problems()), strict=True):
        v = match.weights.double().cpu()
        weights[rows] *= v / v.mean() if scale else v
        at_bound += share_at_bound(v, bound) * len(rows)
        iterations += match.iterations
        covered += len(rows)
    return weights, {
        "share_bound": at_bound / len(ours),
        "iterations": iterations,
        "share_unmatched": 1 - covered / len(ours),
    }


def share_at_bound(weights: Tensor, bound: float) -> float:
    """The share of matched weights (n,), before any scaling, that reach B."""
    return float((weights >= bound * (1 - 1e-6)).double().mean())


class ClassCounts:
    """How many samples of each class there are: over the whole sets, or as far as seen."""

    def __init__(self, train: Tensor | None, trusted: Tensor):
        """Count.

        Args:
            train: The labels of the whole training set; None counts them as they come by.
            trusted: The labels of the whole trusted set.
        """
        self.complete = train is not None
        self.train = count(train if train is not None else trusted[:0])
        self.trusted = count(trusted)

    def see(self, labels: Tensor) -> None:
        """Count the labels of a batch, where the whole training set is not known."""
        if not self.complete:
            self.train = torch.add(*_same_length(self.train, count(labels)))

    @property
    def classes(self) -> int:
        """How many classes have a sample on either side."""
        return int((torch.add(*_same_length(self.train, self.trusted)) > 0).sum())

    def ratios(self) -> Tensor:
        """w_y* per class, (k,)."""
        return prior_ratios(self.train, self.trusted)

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
    """The latest values z of each trusted sample that was drawn, by its place in the set.

    Args:
        labels: (m,) of all trusted samples.
    """

    def __init__(self, labels: Tensor) -> None:
        self._labels = labels
        self._drawn = torch.zeros(len(labels), dtype=torch.bool)
        self._values: Tensor | None = None

    def update(self, index: Tensor, values: Tensor) -> None:
        """Keep the values (b, d) of the trusted samples `index` (b,)."""
        index, values = index.cpu(), values.detach().cpu()
        if self._values is None:
            self._values = values.new_zeros((len(self._labels), *values.shape[1:]))
        self._drawn[index] = True
        self._values[index] = values

    def of(self, label: int) -> Tensor | None:
        """The values (m_y, d) of the trusted samples of one class; None if none was drawn yet."""
        rows = _places(self._drawn & (self._labels == label))
        return self._values[rows] if self._values is not None and len(rows) else None

    def state_dict(self) -> dict[str, Any]:
        """What is kept."""
        kept = {"labels": self._labels, "drawn": self._drawn, "values": self._values}
        return {name: _copy(value) for name, value in kept.items()}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> "TrustedCache":
        """What `state_dict` gave."""
        cache = cls(state["labels"].cpu())
        cache._drawn, cache._values = state["drawn"].cpu().clone(), _copy(state["values"])
        return cache


class Classwise:
    """Class counts and a cache of trusted values, kept from step to step."""

    def __init__(self, counts: ClassCounts, cache: TrustedCache, method: str):
        """Begin with an empty cache.

        Args:
            counts: Of the whole sets, or of what was seen.
            cache: Of the trusted samples.
            method: The method's name, for messages.
        """
        self._counts = counts
        self._cache = cache
        self._method = method
        self._checked = False

    @classmethod
    def of(cls, task: Task, method: str) -> "Classwise":
        """Count the classes of a task; refuse mini-batches that hold too few of a class."""
        train = None if task.train is None else class_labels(task.train.targets, "train")
        trusted = class_labels(task.trusted.targets, "trusted")
        classwise = cls(ClassCounts(train, trusted), TrustedCache(trusted), method)
        if task.horizon.batch_size is not None:
            classwise._check(task.horizon.batch_size)
        return classwise

    def see(self, train: Batch) -> None:
        """Count the classes of a batch, where those of the whole training set are not known."""
        self._counts.see(class_labels(train.targets, "train"))
        if not self._checked and len(train) >= TELLING:
            self._check(len(train))

    def match(
        self,
        step: Step,
        z_train: Tensor,
        z_trusted: Tensor,
        *,
        solve: Solve,
        bound: float,
        scale: bool,
    ) -> tuple[Tensor, dict[str, float]]:
        """The step's weights, (n,), and what the solver says."""
        ours = class_labels(step.train.targets, "train")
        theirs = class_labels(step.trusted.targets, "trusted")
        assert step.trusted.index is not None  # the stream gives it
        self._cache.update(step.trusted.index, z_trusted)
        return match_by_class(
            Side(ours, lambda rows: z_train[rows.to(z_train.device)]),
            Side(theirs, lambda rows: z_trusted[rows.to(z_trusted.device)]),
            self._counts.ratios(),
            solve,
            bound=bound,
            spare=self._cache.of,
            scale=scale,
        )

    def state_dict(self) -> dict[str, Any]:
        """Counts and cache."""
        return {"counts": self._counts.state_dict(), "cache": self._cache.state_dict()}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], method: str) -> "Classwise":
        """What `state_dict` gave."""
        counts = ClassCounts.from_state_dict(state["counts"])
        return cls(counts, TrustedCache.from_state_dict(state["cache"]), method)

    def _check(self, batch_size: int) -> None:
        self._checked = True
        classes = self._counts.classes
        if batch_size < FEWEST * classes:
            raise UsageError(
                f"{self._method}: mini-batches of {batch_size} from {classes} classes hold "
                f"{batch_size / classes:.1f} training samples per class, too few to match each "
                f"class alone (at least {FEWEST}); use diw, which matches all classes together, "
                f"siw-f, which matches the whole sets, or a batch size of {FEWEST * classes}"
            )


def _same_length(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Counts (k,) of as many classes, those without a sample included."""
    k = max(len(a), len(b))
    return pad(a, (0, k - len(a))), pad(b, (0, k - len(b)))


def _places(mask: Tensor) -> Tensor:
    """Where a vector (n,) is not zero, (m,)."""
    return torch.nonzero(mask).flatten()


def _copy(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.cpu().clone()
