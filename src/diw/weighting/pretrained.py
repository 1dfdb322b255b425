"""Dynamic weighting with a pretrained network: a frozen estimator (DIW1), or a start (DIW3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from diw.errors import UsageError
from diw.step.batch import Outputs
from diw.step.probe import unwrap
from diw.step.step import Step
from diw.weighting.base import State, Task
from diw.weighting.dynamic import DynamicMatching
from diw.weighting.matching import OnFeatures, OnLosses


@dataclass(kw_only=True)
class Pretrained(DynamicMatching):
    """A network is trained without weights first."""

    pretraining: int = 20
    """Epochs of the pretraining, on top of the training epochs (the paper: 20, on CIFAR 50)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretraining < 1:
            raise UsageError(
                f"{self.name}.pretraining: must be at least 1, and is {self.pretraining}"
            )


@dataclass(kw_only=True)
class DIW1(Pretrained):
    """The pretrained network is frozen and estimates the weights; another one is trained.

    The weights still move: by the trusted samples that each mini-batch meets.
    """

    _estimator: dict[str, Tensor] = field(default_factory=dict[str, Tensor], init=False, repr=False)

    def prepare(self, task: Task) -> State | None:
        """Pretrain, and keep parameters and buffers."""
        super().prepare(task)
        network = unwrap(task.pretrain(self.pretraining))
        tensors = [*network.named_parameters(), *network.named_buffers()]
        self._estimator = {name: tensor.detach().clone() for name, tensor in tensors}
        return None

    def see_train(self, step: Step) -> Outputs:
        """The training batch as the frozen network sees it."""
        return step.look(self._estimator, step.train)

    def see_trusted(self, step: Step) -> Outputs:
        """The trusted batch as the frozen network sees it."""
        return step.look(self._estimator, step.trusted, trusted=True)

    def state_dict(self) -> dict[str, Any]:
        """The frozen network, besides what every dynamic method keeps."""
        return {**super().state_dict(), "estimator": dict(self._estimator)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self._estimator = dict(state["estimator"])


@dataclass(kw_only=True)
class DIW3(Pretrained):
    """Training goes on from the pretrained network, which estimates its own weights."""

    def prepare(self, task: Task) -> State | None:
        """Pretrain, and hand over the parameters to start from."""
        super().prepare(task)
        return unwrap(task.pretrain(self.pretraining)).state_dict()


@dataclass(kw_only=True)
class DIW1F(OnFeatures, DIW1):
    """Matches the hidden outputs of a frozen, pretrained network, each class alone.

    Fang et al. 2020, supplement, method (4).
    """

    name: ClassVar[str] = "diw1-f"


@dataclass(kw_only=True)
class DIW1L(OnLosses, DIW1):
    """Matches the loss values of a frozen, pretrained network.

    Fang et al. 2020, supplement, method (5).
    """

    name: ClassVar[str] = "diw1-l"


@dataclass(kw_only=True)
class DIW3F(OnFeatures, DIW3):
    """Matches the hidden outputs of the network being trained, pretrained a little, by class.

    Fang et al. 2020, supplement, method (8).
    """

    name: ClassVar[str] = "diw3-f"


@dataclass(kw_only=True)
class DIW3L(OnLosses, DIW3):
    """Matches the loss values of the network being trained, pretrained a little.

    Fang et al. 2020, supplement, method (9).
    """

    name: ClassVar[str] = "diw3-l"
