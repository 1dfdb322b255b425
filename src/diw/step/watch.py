"""What is likely to be wrong in somebody's training loop, said once in a warning.

Commands read a run's metrics for this; a loop of one's own has no records, so its objective watches
it: whether epochs are started, whether trusted samples are trained on, whether weights are healthy.

Methods that judge a sample by its loss compare training samples with trusted ones. A trusted sample
that is not trained on has the loss of an unseen sample, which is higher than that of an intact
training sample; so wrong labels, whose losses are higher too, look trusted.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from diw.alerts import complaints, warn
from diw.step.batch import Batch, Weights, first_tensor
from diw.step.rows import Rows
from diw.step.step import Step

STEPS = 200
"""In a loop without epochs, health is looked at after so many steps."""
KNOWN_EPOCHS = 12
"""Epochs whose metrics are kept: more than a trend needs."""
MOST = 1_000_000
"""Training samples looked at, at most."""
ASKED = 64
"""Trusted samples looked for among them."""
COLUMNS = 512
"""Values of a sample that are looked at, evenly spaced."""
EQUAL = 1e-9
"""Relative difference below which two samples are one."""


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
        self._places: Tensor | None = None
        self._others = 0
        self._epoch = 0
        self._rows: list[dict[str, Any]] = []
        self._sums = _Sums()
        self._said: set[str] = set()

    def look_for(self, trusted: Rows) -> None:
        """Find out in the first epoch whether these trusted samples are trained on."""
        self._overlap, self._trusted = Overlap(), trusted

    def look_for_places(self, places: Tensor) -> None:
        """Find out in the first epoch whether these places of trusted samples (m,) come up."""
        self._places = places.cpu()

    def start_epoch(self, epoch: int) -> None:
        """Judge the epoch that has ended."""
        if epoch > 1 and self._overlap is not None and self._trusted is not None:
            if self._overlap.found(self._trusted) is False:
                self.not_trained_on("were not among the training samples of the first epoch")
            self._overlap = None
        if epoch > 1 and self._places is not None and self._others:
            self._say(
                "places",
                "trusted_index: none of these places was an index of the first epoch; give the "
                "places that the loader gives to the trusted samples",
            )
            self._places = None
        self._judge("epoch", self._epoch)
        self._epoch = epoch

    def see(self, step: Step, weights: Weights) -> None:
        """Take note of a training step."""
        if not step.epoch:
            self._no_epochs()
        if self._overlap is not None and step.epoch == 1:
            self._overlap.see(step.train)
        if self._places is not None:
            index = step.train.index
            self._others += 1
            if index is None or bool(torch.isin(index.cpu(), self._places).any()):
                self._places = None
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

    def not_finite(self, step: Step) -> None:
        """Warn of a loss that no input explains; a runner says so itself."""
        if self._health:
            where = f"epoch {step.epoch}, step {step.t + 1}" if step.epoch else f"step {step.t + 1}"
            self._say(
                "loss",
                f"loss: it is NaN or infinite in {where}; lower the learning rate, or look at the "
                "criterion",
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
            warn(words)


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
            "share_bound": weights.metrics.get("share_bound", 0.0),
            "doubtful_trusted": weights.metrics.get("doubtful_trusted", 0.0),
            "train_loss": step.train_forward.losses.detach().mean(),
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


class Overlap:
    """Marks of the training samples of an epoch, among which trusted ones are then looked for.

    A mark is one number: a projection of the inputs on a fixed direction. Equal inputs have
    equal marks; others have the same mark with a chance of about 1e-9.
    """

    def __init__(self) -> None:
        self._marks: list[Tensor] = []
        self._count = 0

    def see(self, batch: Batch) -> None:
        """Keep the marks of a training batch."""
        if self._count < MOST:
            marks = _marks(batch)
            self._marks.append(marks)
            self._count += len(marks)

    def found(self, trusted: Rows) -> bool | None:
        """Whether any of the trusted samples was among those seen; None if none was seen."""
        if not self._marks:
            return None
        rows = torch.linspace(0, len(trusted) - 1, min(ASKED, len(trusted))).round().long()
        asked = _marks(Batch(*trusted.take(rows)))
        seen = torch.cat(self._marks).sort().values
        near = torch.searchsorted(seen, asked).clamp(max=len(seen) - 1)
        gaps = torch.minimum(
            (seen[near] - asked).abs(), (seen[(near - 1).clamp(min=0)] - asked).abs()
        )
        return bool((gaps <= EQUAL * asked.abs().clamp(min=1e-300)).any())


def _marks(batch: Batch) -> Tensor:
    """(n,) float64 on the CPU."""
    values = first_tensor(batch.inputs).detach().flatten(1)
    columns = torch.linspace(0, values.shape[1] - 1, min(COLUMNS, values.shape[1])).round().long()
    picked = values[:, columns.to(values.device)].cpu().double()
    direction = torch.cos(torch.arange(1, len(columns) + 1, dtype=torch.float64) ** 2)
    return (picked * direction).sum(1)
