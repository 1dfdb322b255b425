"""Weights that remember: the default.

A match of one mini-batch's losses sees a wrong label only until it is learned. This method
looks at the predictions instead, in three steps, all from the training forward:

1. Which labels were given to which classes? Two tables of predictions by label, of the training
   and of the trusted samples, give the transitions R (`diw.labels.transitions`).
2. How likely is it that a sample's label is right? The odds follow from R and the sample's
   predictions by Bayes' rule. They are remembered per sample and averaged over its last visits.
   In each class as many labels seem right as are right according to R.
3. Predictions for a sample are evidence only while the network does not train on it. So a quarter
   of the samples is left out in turn, for six epochs each: long enough for a label that was
   learned by heart to be forgotten. What is seen in the second half of that time is remembered.

The weight of a sample is π² times a factor per class, π being the probability that
its label is right. π itself (times the factor) would be the importance weight
p_trusted(x, y)/p_train(x, y). But a network learns whatever keeps some weight for long enough, and
among doubtful samples the square leaves less to the wrong ones. Where a pass over the training set
is short, trusted samples weigh as many times more as their labels hold more information than given
ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diw.alerts import warn
from diw.config import check_fields
from diw.errors import RunError
from diw.labels.running import VISITS, Running
from diw.labels.transitions import Floats, information, sharpened
from diw.methods.base import Method, State, Task, check_labels, refuse_wrong_inputs
from diw.methods.paper import Diw
from diw.step.batch import Weights
from diw.step.criteria import logits_of
from diw.step.step import Horizon, Step

LOOK_EVERY = 16
"""Steps between two looks at the trusted samples, where they are not trained on."""
ODDS = "log odds"
"""What is remembered of a sample: its log odds at face value, strictly, and the visits of both."""


@dataclass(kw_only=True)
class Remember(Method):
    """Weighs each sample by how likely its label is right, remembered from visits that count.

    w = π² c_y with π = R_yy p_y / Σ_i R_iy p_i, where p are the network's predictions while the
    sample was left out, R the transitions between classes and given labels, and c_y the ratio
    of class shares. Where there are no classes (integer labels, and one score for each class),
    losses are matched instead, as `diw` does.

    Attributes:
        warmup_steps: Optimiser steps at the start without weights: a random network has nothing to
            say yet. In as many further steps the weights come in gradually.
        folds: One of so many parts of the training set is left out at a time; 1 leaves none out.
        block: Epochs for which a part is left out; it is judged in the second half of them.
        power: The power of π in the weights; 1 gives the importance weights themselves.
        bound: The largest weight, relative to the mean.
        every: Steps between two estimates of the transitions (more with over a hundred classes).
        by_share: Judge the labels of each class only as strictly as its estimated share of wrong
            ones asks; false: all as strictly as the trusted samples' predictions are sure.
    """

    name: ClassVar[str] = "remember"
    by_losses: ClassVar[bool] = True

    warmup_steps: int = 200
    folds: int = 4
    block: int = 6
    power: float = 2.0
    bound: float = 50.0
    every: int = 40
    by_share: bool = True

    _running: Running | None = field(default=None, init=False, repr=False)
    _trusted_index: Tensor | None = field(default=None, init=False, repr=False)
    _trusted_count: int = field(default=0, init=False, repr=False)
    _warned: bool = field(default=False, init=False, repr=False)
    _classless: Method | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_fields(self, "warmup_steps", least=0, of=self.name)
        check_fields(self, "folds", "block", "every", "bound", least=1, of=self.name)
        check_fields(self, "power", positive=True, of=self.name)

    def adapt(self, horizon: Horizon) -> None:
        """Warm up for a tenth of a short training."""
        if horizon.steps is not None:
            self.warmup_steps = min(self.warmup_steps, horizon.steps // 10)

    def prepare(self, task: Task) -> State | None:
        """Note which training samples are trusted ones."""
        index = task.trusted_index
        self._trusted_count = len(task.trusted)
        if index is not None and len(index):
            self._trusted_index = index.cpu().sort().values
            self._trusted_count = max(self._trusted_count, len(index))
        return None

    def weigh(self, step: Step) -> Weights:
        """π² c_y, (n,); zero for those that are left out in this epoch."""
        if self._classless is not None or not _has_classes(step):
            return self._without_classes().weigh(step)
        seen = _Seen.of(step, self.name)
        log_p, labels, index, mine = seen.log_p, seen.labels, seen.index, seen.mine
        running = self._running = self._running or Running.empty(
            log_p.shape[1], self._trusted_count
        )
        if index is not None:
            running.note(index.numpy())
        elif not self._warned:
            self._warned = True
            warn(
                f"{self.name}: the batches have no index, so nothing is remembered of a sample; "
                "yield (inputs, targets, index), index being its place in the training set"
            )
        left_out, counted, unseen = self._turn(step, index, len(labels))
        running.add(sharpened(log_p)[unseen], labels[unseen])
        known = self._trusted(step, running, seen, unseen)
        if step.t < self.warmup_steps or not running.ready:
            return Weights(step.ones())
        if step.t >= running.next_match:
            interval = int(self.every * max(1, len(running.train) / 100) ** 2)
            running.match(interval)
            running.next_match = step.t + interval
        odds = running.judge(log_p, labels)
        if index is not None:
            odds = _averaged(step, index, mine, odds, counted)
        right = running.right(odds, labels, known, self.by_share)
        weights = right**self.power
        weights = weights * running.class_factors(weights, labels)
        if not running.long_passes:
            weights[known] /= information(running.transitions)
        weights = weights / max(float(weights.mean()), 1e-12)
        if step.t < 2 * self.warmup_steps:  # in by and by: a sudden change can kill a network
            weights = 1 + (weights - 1) * (step.t / self.warmup_steps - 1)
        recorded = torch.as_tensor(weights.clip(max=self.bound)[mine]).to(step.ones())
        kept = torch.as_tensor(~left_out[mine]).to(recorded)
        return Weights(
            recorded * kept,
            recorded=recorded,
            metrics={
                "wrong_share": float(1 - right.mean()),
                "doubtful_trusted": float(running.doubtful.sum()),
            },
        )

    def _turn(
        self, step: Step, index: Tensor | None, n: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """(n,) which samples are left out, whose odds count, whose predictions enter the tables.

        In the first round not all have been left out yet, and everybody's odds count. The
        tables take samples that have been left out for a while, once there are weights: trusted
        samples have more of it than others, and are learned sooner.
        """
        none, all_ = np.zeros(n, bool), np.ones(n, bool)
        if index is None or self.folds == 1 or not step.epoch:
            return none, all_, all_
        if step.t < self.warmup_steps:
            return none, all_, all_
        turn, position = divmod(step.epoch - 1, self.block)
        left_out = _fold(index.numpy(), self.folds) == turn % self.folds
        unseen = left_out & (position >= self.block // 2)
        return left_out, all_ if turn < self.folds else unseen, unseen

    def _trusted(
        self, step: Step, running: Running, seen: "_Seen", unseen: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Enter predictions of trusted samples; (n,) which samples of the batch are trusted."""
        trusted = self._trusted_index
        if trusted is None or seen.index is None:
            if step.t % LOOK_EVERY == 0:
                looked = _Seen.of(step, self.name, trusted=True)
                assert looked.index is not None
                running.enter(looked.index.numpy(), looked.log_p, looked.labels)
            return np.zeros(len(seen.labels), bool)
        rows = torch.searchsorted(trusted, seen.index).clamp(max=len(trusted) - 1)
        known = (trusted[rows] == seen.index).numpy()
        now = known & unseen
        running.enter(rows.numpy()[now], seen.log_p[now], seen.labels[now])
        return known & ~np.isin(rows.numpy(), np.flatnonzero(running.doubtful))

    @property
    def doubtful_trusted(self) -> list[int]:
        """Places of trusted samples whose own labels look wrong (`diw.labels.trusted`).

        In the training set where they are trained on, else in the trusted set.
        """
        if self._running is None:
            return []
        rows = torch.as_tensor(self._running.doubtful).nonzero().flatten()
        trusted = self._trusted_index
        return [int(place) for place in (rows if trusted is None else trusted[rows])]

    def _without_classes(self) -> Method:
        """The method that weighs where there are no classes."""
        if self._classless is None:
            self._classless = Diw()
            warn(
                f"{self.name}: there are no classes here (labels (n,) that are integers, scores "
                "(n, k)), so losses are matched, as diw does"
            )
        return self._classless

    def state_dict(self) -> dict[str, Any]:
        """What is known as a whole; what is remembered of a sample is in the objective's memory."""
        known = {} if self._running is None else self._running.state_dict()
        return {
            "trusted_index": self._trusted_index,
            "trusted_count": self._trusted_count,
            "running": {
                name: torch.as_tensor(value) if isinstance(value, np.ndarray) else value
                for name, value in known.items()
            },
            "classless": self._classless is not None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._trusted_index, self._trusted_count = state["trusted_index"], state["trusted_count"]
        known = {
            name: value.cpu().numpy() if isinstance(value, Tensor) else value
            for name, value in state["running"].items()
        }
        self._running = Running.from_state_dict(known) if known else None
        self._classless = Diw() if state["classless"] else None


def _has_classes(step: Step) -> bool:
    """Whether labels are integers (n,) and the network has one score (n, k) for each class."""
    values, targets = logits_of(step.train_detached.values), step.train.targets
    return (
        isinstance(values, Tensor)
        and values.ndim == 2
        and values.shape[1] > 1
        and targets is not None
        and targets.ndim == 1
        and not targets.is_floating_point()
    )


@dataclass(frozen=True)
class _Seen:
    """What the network says of a mini-batch, of all processes where there are several."""

    log_p: Floats
    """(n, k) logarithms of predicted probabilities."""
    labels: NDArray[np.int64]
    """(n,)"""
    index: Tensor | None
    """(n,) places in the training or the trusted set."""
    mine: slice
    """Which of these samples are those of this process."""

    @classmethod
    def of(cls, step: Step, method: str, *, trusted: bool = False) -> "_Seen":
        """The training batch, or the trusted one, with a row of k numbers gathered per sample."""
        seen = step.trusted_eval if trusted else step.train_detached
        batch = step.trusted if trusted else step.train
        logits = logits_of(seen.values).detach()
        assert batch.targets is not None
        check_labels(batch.targets, logits.shape[1], method, "trusted" if trusted else "batch")
        values = torch.log_softmax(logits.float(), dim=1)
        values, mine = step.world.gather(values.double())
        log_p = values.cpu().numpy()
        if not np.isfinite(log_p).all():
            refuse_wrong_inputs(batch, method, "trusted" if trusted else "training")
            raise RunError(
                f"{method}: the network's values are NaN or infinite; lower the learning rate"
            )
        index = batch.index
        if index is not None:
            index = step.world.gather(index)[0].cpu()
        return cls(log_p, step.world.gather(batch.targets)[0].cpu().numpy(), index, mine)


def _averaged(
    step: Step, index: Tensor, mine: slice, odds: Floats, counted: NDArray[np.bool_]
) -> Floats:
    """(2, n) log odds averaged over the visits that counted; where none has, the present ones.

    Each process writes what it has of its own samples, and the memory passes it on to all.
    """
    kept = step.memory.read(ODDS, index, like=torch.empty(1, 3)).double().numpy()
    old, seen = kept[:, :2].T, kept[:, 2]
    never = np.isnan(seen)
    visits = np.where(never, 1.0, np.minimum(seen + 1, VISITS))
    new = np.where(never, odds, old + (odds - old) / visits)
    result = np.where(counted | never, new, old)
    visits = np.where(counted | never, visits, seen)
    rows = torch.as_tensor(np.stack([*result, visits], axis=1)[mine])
    step.memory.write(ODDS, index[mine], rows)
    return result


def _fold(index: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """(n,) the part of the training set that a sample belongs to, by a multiplicative hash."""
    mixed = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(folds)).astype(np.int64)
