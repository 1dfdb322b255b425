"""Methods that estimate, from the trusted samples, which labels are given to which class.

C_ij = p(ỹ = j | y = i), the transition matrix, is estimated before training: a network learns
the given labels, and its mean prediction for the trusted samples of class i is row i
(Hendrycks et al. 2018, Eq. (2)). Then either the loss is corrected by it (`glc`), or the samples
are weighted by it (`iw-t`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from diw.config import check_fields
from diw.errors import UsageError
from diw.methods.base import Method, Need, State, Task, check_labels
from diw.step.batch import Batch, Criterion, Outputs, Weights
from diw.step.criteria import logits_of
from diw.step.look import outputs_in_pieces, unwrap
from diw.step.rows import Rows
from diw.step.step import Step

TINY = 1e-12


def transition_matrix(network: nn.Module, trusted: Rows, method: str) -> Tensor:
    """C (k, k): the mean prediction of a network of given labels, by the true class.

    A class without trusted samples keeps its labels.

    Args:
        network: Trained on the given labels.
        trusted: The trusted samples.
        method: The method's name, for messages.
    """
    labels = trusted.targets
    if labels is None or labels.ndim != 1 or labels.is_floating_point():
        raise UsageError(f"trusted: {method} needs a class number for each trusted sample")
    pieces = outputs_in_pieces(network, trusted)
    p = torch.cat([_probabilities(outputs.values, method).cpu() for _, outputs in pieces])
    labels = labels.cpu().long()
    matrix = torch.eye(p.shape[1], dtype=torch.float64)
    for label in range(len(matrix)):
        own = labels == label
        if own.any():
            matrix[label] = p[own].mean(dim=0)
    return matrix


def _probabilities(values: Any, method: str) -> Tensor:
    """(n, k) in float64."""
    logits = logits_of(values)
    if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape[1] < 2:
        raise UsageError(f"model: {method} needs one score for each class, outputs (n, k)")
    return logits.double().softmax(dim=1)


@dataclass(kw_only=True)
class FromTransitions(Method):
    """A method that knows C, and which training samples are trusted ones.

    Attributes:
        pretraining: Epochs of the network that learns the given labels, on top of the training
            epochs.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pretrain"})

    pretraining: int = 20

    _matrix: Tensor = field(default_factory=lambda: torch.empty(0), init=False, repr=False)
    _trusted_index: Tensor = field(
        default_factory=lambda: torch.empty(0, dtype=torch.int64), init=False, repr=False
    )

    def __post_init__(self) -> None:
        check_fields(self, "pretraining", least=1, of=self.name)

    def prepare(self, task: Task) -> State | None:
        """Train a network on the given labels and estimate C with it."""
        network = unwrap(task.pretrained(self.pretraining, self.name))
        self._matrix = transition_matrix(network, task.trusted, self.name)
        if task.trusted_index is not None:
            self._trusted_index = task.trusted_index.cpu()
        return None

    def known(self, batch: Batch) -> Tensor:
        """(n,) which samples of a training batch are trusted ones, where that is known."""
        if batch.index is None:
            return torch.zeros(len(batch), dtype=torch.bool)
        return torch.isin(batch.index.cpu(), self._trusted_index)

    def given(self, p: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """(n,) the probability of each given label, as it is and as C makes it: p_ỹ, (Cᵀp)_ỹ."""
        assert batch.targets is not None
        check_labels(batch.targets, p.shape[1], self.name)
        labels = batch.targets.long().unsqueeze(1)
        own = p.gather(1, labels).squeeze(1)
        noisy = (p @ self._matrix.to(p)).gather(1, labels).squeeze(1)
        return own, torch.where(self.known(batch).to(p.device), own, noisy)

    def state_dict(self) -> dict[str, Any]:
        """C, and the places of the trusted samples."""
        return {"matrix": self._matrix, "trusted_index": self._trusted_index}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._matrix, self._trusted_index = state["matrix"].cpu(), state["trusted_index"].cpu()


@dataclass(kw_only=True)
class Glc(FromTransitions):
    """Corrects the loss by the transitions between labels (gold loss correction).

    Hendrycks et al. 2018: ℓ = −log (Cᵀp)_ỹ for samples whose label may be wrong, so that the
    network learns the true labels from the given ones; −log p_y for trusted samples. All weights
    are one.
    """

    name: ClassVar[str] = "glc"

    def weigh(self, step: Step) -> Weights:
        """Ones, (n,)."""
        return Weights(step.ones())

    def losses(
        self, outputs: Outputs, batch: Batch, targets: Tensor | None, criterion: Criterion
    ) -> Tensor:
        """The corrected losses (n,)."""
        logits = logits_of(outputs.values)
        _, noisy = self.given(_probabilities(logits, self.name), batch)
        return -noisy.clamp(min=TINY).log().to(logits.dtype)


@dataclass(kw_only=True)
class IwT(FromTransitions):
    """Weighs each sample by how likely its label is in a clean world, over how likely it is here.

    w = p_ỹ / (Cᵀp)_ỹ with p the predictions of the network being trained (Liu and Tao 2016, with
    C estimated from the trusted samples). Where C says that labels are right, weights are one.

    Attributes:
        warmup: Epochs at the start without weights: a random network has nothing to say yet.
    """

    name: ClassVar[str] = "iw-t"

    warmup: int = 1

    def weigh(self, step: Step) -> Weights:
        """p_ỹ / (Cᵀp)_ỹ, (n,)."""
        if 1 <= step.epoch <= self.warmup:
            return Weights(step.ones())
        own, noisy = self.given(_probabilities(step.train_detached.values, self.name), step.train)
        return Weights((own / noisy.clamp(min=TINY)).to(step.ones()))
