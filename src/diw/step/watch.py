"""What is likely to be wrong in somebody's training loop, said once in a warning.

Commands read a run's metrics for this; a loop of one's own has no records, so its objective watches
it: whether epochs are started, whether trusted samples are trained on, whether weights are healthy.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from diw.alerts import complaints
from diw.errors import DIWWarning
from diw.step.batch import Weights
from diw.step.overlap import Overlap
from diw.step.rows import Rows
from diw.step.step import Step

STEPS = 200
"""In a loop without epochs, health is looked at after so many steps."""
KNOWN_EPOCHS = 12
"""Epochs whose metrics are kept: more than a trend needs."""


class Watch:
    """Looks on while a loop trains, and warns of each kind of trouble once."""

    def __init__(self, method: str, fields: Mapping[str, Any], *, health: bool) -> None:
        """Start to look on.

        Args:
            method: The name of the weighting method, for the words.
            fields: The method's fields.
            health: Whether to look at weights and losses; a runner records them itself.
        """
        self._method = method
        self._fields = fields
        self._health = health
        self._overlap: Overlap | None = None
        self._trusted: Rows | None = None
        self._epoch = 0
        self._rows: list[dict[str, Any]] = []
        self._sums = _Sums()
        self._said: set[str] = set()

    def look_for(self, trusted: Rows) -> None:
        """Find out in the first epoch whether these trusted samples are trained on."""
        self._overlap, self._trusted = Overlap(), trusted

    def start_epoch(self, epoch: int) -> None:
        """Judge the epoch that has ended."""
        if epoch > 1 and self._overlap is not None and self._trusted is not None:
            if self._overlap.found(self._trusted) is False:
                self.not_trained_on("were not among the training samples of the first epoch")
            self._overlap = None
        self._judge("epoch", self._epoch)
        self._epoch = epoch

    def see(self, step: Step, weights: Weights) -> None:
        """Take note of a training step."""
        if not step.epoch:
            self._no_epochs()
        if self._overlap is not None and step.epoch == 1:
            self._overlap.see(step.train)
        if self._health:
            self._sums.add(step, weights)
            if not step.epoch and self._sums.steps == STEPS:
                self._judge("step", step.t + 2 - STEPS)

    def not_trained_on(self, what: str) -> None:
        """Warn that losses of seen and of unseen samples are compared.

        Args:
            what: What is known of the trusted samples, after "the trusted samples".
        """
        self._say(
            "overlap",
            f"trusted: the trusted samples {what}, so {self._method} compares the losses of "
            "unseen samples with those of training samples, and takes wrong labels for right ones; "
            "add them to the training set (and give their places, trusted_index=…)",
        )

    def _no_epochs(self) -> None:
        """A warm-up that is counted in epochs never comes in a loop that has none."""
        if self._fields.get("warmup") and not self._fields.get("warmup_steps"):
            self._say(
                "epochs",
                f"start_epoch: it was not called, so the warm-up of {self._method} is skipped; "
                "call objective.start_epoch(epoch) at the start of each epoch, or set warmup_steps",
            )

    def _judge(self, unit: str, first: int) -> None:
        """Look at what the steps since the last look have in common."""
        if not self._sums.steps:
            return
        self._rows = [*self._rows, {"epoch": first, **self._sums.means()}][-KNOWN_EPOCHS:]
        self._sums = _Sums()
        for kind, words in complaints(self._rows, self._method, unit=unit).items():
            self._say(kind, f"weights: {words}")

    def _say(self, kind: str, words: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            warnings.warn(words, DIWWarning, stacklevel=5)


class _Sums:
    """Sums over steps; they stay tensors, so that no step waits for a device."""

    def __init__(self) -> None:
        self.steps = 0
        self._sums: dict[str, Tensor | float] = {}
        self._looks = 0

    def add(self, step: Step, weights: Weights) -> None:
        w = weights.train
        if w is None or not len(w):
            return
        self.steps += 1
        squares = (w * w).sum()
        values: dict[str, Tensor | float] = {
            "weighted": (w != 1).any().float(),
            "ess": torch.where(squares > 0, w.sum() ** 2 / (len(w) * squares), 0.0),
            "share_zero": (w == 0).float().mean(),
            "share_bound": weights.diagnostics.get("share_bound", 0.0),
            "doubtful_trusted": weights.diagnostics.get("doubtful_trusted", 0.0),
            "train_loss": step.fit.losses.detach().mean(),
        }
        looked = step.looked_at_trusted
        if looked is not None:
            self._looks += 1
            values["selection_loss"] = looked.mean()
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def means(self) -> dict[str, Any]:
        """Mean values; the trusted loss is left out where some step did not look at it."""
        means = {name: float(value) / self.steps for name, value in self._sums.items()}
        if self._looks < self.steps:
            means.pop("selection_loss", None)
        return means
