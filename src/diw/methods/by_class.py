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


class Classwise:
    """What matching by class keeps from step to step.

    The class counts of the whole sets, or as far as seen, and the latest values z of each trusted
    sample that was drawn, by its place in the set.
    """

    def __init__(self, train: Tensor | None, trusted: Tensor, method: str):
        """Count the classes.

        Args:
            train: (n,) labels of the whole training set; None counts them as they come by.
            trusted: (m,) labels of the whole trusted set.
            method: The method's name, for messages.
        """
        self._complete = train is not None
        self._train = count(trusted[:0] if train is None else train)
        self._trusted = trusted
        self._drawn = torch.zeros(len(trusted), dtype=torch.bool)
        self._values: Tensor | None = None
        self._method = method
        self._checked = False

    @classmethod
    def of(cls, task: Task, method: str) -> "Classwise":
        """Count the classes of a task; refuse mini-batches that hold too few of a class."""
        train = None if task.train is None else class_labels(task.train.targets, "train")
        classwise = cls(train, class_labels(task.trusted.targets, "trusted"), method)
        if task.horizon.batch_size is not None:
            classwise._check(task.horizon.batch_size)
        return classwise

    def see(self, train: Batch) -> None:
        """Count the labels of a batch, where the whole training set is not known."""
        labels = class_labels(train.targets, "train")
        if not self._complete:
            self._train = torch.add(*_same_length(self._train, count(labels)))
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
        self.keep(step.trusted.index, z_trusted)
        return match_by_class(
            Side(ours, lambda rows: z_train[rows.to(z_train.device)]),
            Side(theirs, lambda rows: z_trusted[rows.to(z_trusted.device)]),
            self.ratios(),
            solve,
            bound=bound,
            spare=self.kept,
            scale=scale,
        )

    def ratios(self) -> Tensor:
        """w_y* per class, (k,)."""
        return prior_ratios(self._train, count(self._trusted))

    def keep(self, index: Tensor, values: Tensor) -> None:
        """Keep the values (b, d) of the trusted samples `index` (b,)."""
        index, values = index.cpu(), values.detach().cpu()
        if self._values is None:
            self._values = values.new_zeros((len(self._trusted), *values.shape[1:]))
        self._drawn[index] = True
        self._values[index] = values

    def kept(self, label: int) -> Tensor | None:
        """The values (m_y, d) of the trusted samples of one class; None if none was drawn yet."""
        rows = _places(self._drawn & (self._trusted == label))
        return self._values[rows] if self._values is not None and len(rows) else None

    def state_dict(self) -> dict[str, Any]:
        """Counts and values."""
        tensors = {
            "train": self._train,
            "trusted": self._trusted,
            "drawn": self._drawn,
            "values": self._values,
        }
        return {"complete": self._complete} | {name: _copy(each) for name, each in tensors.items()}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], method: str) -> "Classwise":
        """What `state_dict` gave."""
        kept = cls(None, state["trusted"].cpu(), method)
        kept._complete, kept._train = state["complete"], state["train"].cpu()
        kept._drawn, kept._values = state["drawn"].cpu().clone(), _copy(state["values"])
        return kept

    def _check(self, batch_size: int) -> None:
        """Refuse mini-batches in which a class has too few samples to be matched alone."""
        self._checked = True
        classes = int((torch.add(*_same_length(self._train, count(self._trusted))) > 0).sum())
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
