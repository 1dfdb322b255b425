"""Generalised importance weighting: for test data with parts that training lacks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diw.config import check_fields
from diw.errors import UsageError
from diw.matching import OneClass
from diw.methods.base import Need, State, Task, normalised
from diw.methods.by_class import class_labels
from diw.methods.matched import EachBatch, LossValues, PretrainedStart
from diw.step.batch import Batch, Outputs, Weights
from diw.step.look import Tap, outputs_in_pieces
from diw.step.rows import Rows
from diw.step.step import Step

ROWS = 1000
"""Training samples that one region is found from, at most."""


@dataclass(kw_only=True)
class Giw(LossValues, PretrainedStart, EachBatch):
    """Matches losses where training has support, and trains on the trusted samples elsewhere.

    Fang et al. 2023: before training, a one-class support vector machine on hidden outputs of a
    pretrained network splits the trusted samples into those in the training support (a share α) and
    those out of it. The risk is α times the weighted training loss, matched to the former, plus
    1 − α times the mean loss of the latter. With α = 1 it is `diw3-l`.

    Attributes:
        pretraining: Epochs of the pretraining, on top of the training epochs.
        outside: ν of the one-class machine: the share of training samples that it may leave
            outside.
        partition: Look for each class where its own label was given, so that a class which training
            lacks is outside as a whole. False looks at the inputs alone, as the authors' example
            does.
        layer: The layer whose input is the representation, such as "encoder.fc2"; None is the last
            `nn.Linear`.
    """

    name: ClassVar[str] = "giw"
    needs: ClassVar[frozenset[Need]] = frozenset({"train", "one process"})

    pretraining: int = 10
    outside: float = 0.1
    partition: bool = True
    layer: str | None = None

    _inside: Tensor = field(
        default_factory=lambda: torch.empty(0, dtype=torch.bool), init=False, repr=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "outside", positive=True, below=1, of=self.name)

    def begin(self, task: Task) -> State | None:
        """Pretrain, split the trusted samples, and hand over the parameters to start from."""
        network = self.estimator(task)
        self._inside = self._split(network, task)
        return network.state_dict()

    def _split(self, network: nn.Module, task: Task) -> Tensor:
        """(m,) which trusted samples lie in the support of the training samples.

        Trusted samples in the training set do not count as training samples here: each would
        vouch for itself.
        """
        assert task.train is not None  # it is needed
        rows = torch.arange(len(task.train))
        if task.trusted_index is not None:
            rows = rows[~torch.isin(rows, task.trusted_index.cpu())]
        everyone = torch.arange(len(task.trusted))
        if not self.partition:
            return self._found(network, task, rows, everyone)
        given = class_labels(task.train.targets, "train")[rows]
        labels = class_labels(task.trusted.targets, "trusted")
        inside = torch.zeros(len(labels), dtype=torch.bool)
        for label in range(int(labels.max()) + 1):
            own = labels == label
            inside[own] = self._found(network, task, rows[given == label], everyone[own])
        return inside

    def _found(self, network: nn.Module, task: Task, train: Tensor, trusted: Tensor) -> Tensor:
        """(t,) which of some trusted rows lie in the support of some training rows."""
        if not len(train) or not len(trusted):
            return torch.zeros(len(trusted), dtype=torch.bool)
        assert task.train is not None
        some = train[torch.linspace(0, len(train) - 1, min(len(train), ROWS)).long()]
        ours = self._directions(network, task.train, some)
        theirs = self._directions(network, task.trusted, trusted)
        return torch.as_tensor(OneClass(nu=self.outside).fit(ours, theirs).inside_)

    def _directions(self, network: nn.Module, rows: Rows, index: Tensor) -> NDArray[np.float64]:
        """(b, d) the hidden outputs of some rows, scaled to length one."""
        pieces = outputs_in_pieces(network, rows, index, tap=Tap(network, self.layer))
        hidden = torch.cat([outputs.hidden.double().cpu() for _, outputs in pieces]).numpy()
        return hidden / np.linalg.norm(hidden, axis=1, keepdims=True).clip(min=1e-12)

    def weigh(self, step: Step) -> Weights:
        """α w for the training batch (n,), (1 − α) n/m_out for trusted samples outside, else 0."""
        inside = self._inside_of(step.trusted)
        matched = super().weigh(step) if inside.any() else Weights(step.ones())
        recorded = matched.as_tensor()
        recorded = normalised(recorded) if self.normalise else recorded
        share = float(self._inside.double().mean())
        out = (~inside).to(recorded)
        trusted = (1 - share) * len(recorded) / out.sum().clamp(min=1) * out
        return Weights(
            share * recorded,
            trusted=trusted,
            metrics={**matched.metrics, "share_inside": share},
            recorded=recorded,
            normalise=False,
        )

    def see(self, step: Step) -> tuple[Outputs, Outputs]:
        """The training batch, and the trusted samples that lie in its support."""
        train, trusted = super().see(step)
        inside = self._inside_of(step.trusted).to(trusted.losses.device)
        return train, replace(trusted, maybe_losses=trusted.losses[inside])

    def _inside_of(self, trusted: Batch) -> Tensor:
        """(m,) which samples of a trusted batch lie in the training support."""
        if trusted.index is None:
            raise UsageError('unit: giw splits trusted samples, not tokens; use unit="sample"')
        return self._inside[trusted.index.cpu()]

    def state_dict(self) -> dict[str, Any]:
        """The split of the trusted samples."""
        return {**super().state_dict(), "inside": self._inside}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self._inside = state["inside"].cpu()
