"""Methods that match, and three of the four choices that make one.

| choice | here | elsewhere |
|---|---|---|
| what is matched | `LossValues`, `HiddenOutputs`, `Logits`, `RawInputs` | |
| which network looks | `NoNetwork`, `Frozen`, `Trained`, `PretrainedStart` | |
| by class or together | `ByClass`, `Together` | |
| when | | `Once` (static.py), `EachBatch` (dynamic.py) |

Each choice adds a little behaviour and the fields it needs to `Matching`.
`diw.methods.composed` puts one of each together: that is a method.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from diw.errors import RunError, UsageError
from diw.matching import Match, MatchOptions, kmm_batch
from diw.methods.base import Method, State, Task
from diw.runs.spec import LATER
from diw.step.batch import Batch, Outputs, first_tensor
from diw.step.probe import Tap, unwrap
from diw.step.step import Step
from diw.step.transforms import Transform, hidden_outputs, logits, loss_values, raw_inputs


@dataclass(kw_only=True)
class Matching(MatchOptions, Method):
    """Weights by kernel mean matching (Fang et al. 2020, Eq. (10)); the choices say of what."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except ValueError as error:
            raise UsageError(f"{self.name}.{error}") from None
        if self.bound < 1:
            raise UsageError(
                f"{self.name}.bound: must be at least 1, the mean weight, and is {self.bound}"
            )

    @property
    @abstractmethod
    def transform(self) -> Transform:
        """π: what of a sample is matched."""

    @property
    @abstractmethod
    def by_class(self) -> bool:
        """Whether each class is matched alone."""

    @property
    def scaled_by_class(self) -> bool:
        """Whether the matched weights of a class are brought to mean one."""
        return True

    def estimator(self, task: Task) -> nn.Module | None:
        """The network that looks at whole data sets before training; None if there is none."""
        return None

    def begin(self, task: Task) -> State | None:
        """Get the network ready that will look at mini-batches; may return parameters to start."""
        return None

    def see(self, step: Step) -> tuple[Outputs, Outputs]:
        """The training and the trusted batch as the network sees them: the one being trained."""
        return step.probe_train, step.probe_trusted

    def solve(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """Match the pairs (z_train, z_trusted), each by itself, in one call.

        A match that misses its tolerance is used all the same, with a warning:
        its weights are feasible, and a training of hours should not end there.
        """
        pairs = [(self._finite(ours), self._finite(theirs)) for ours, theirs in problems]
        return kmm_batch(
            [ours for ours, _ in pairs],
            [theirs for _, theirs in pairs],
            gamma=self.gamma,
            bound=self.bound,
            slack=self.slack,
            ridge=self.ridge,
            solver=self.solver,
            on_failure="warn",
        )

    def refuse_wrong_inputs(self, batch: Batch, z: Tensor, part: str) -> None:
        """Where the values z (n, …) to match are not finite because the inputs are not, say so."""
        if z.isfinite().all():
            return
        inputs = first_tensor(batch.inputs)
        wrong = ~inputs.isfinite().flatten(1).all(1)
        if wrong.any():
            place = int(wrong.nonzero()[0])
            index = "" if batch.index is None else f" (sample {int(batch.index[place])})"
            raise RunError(
                f"{self.name}: the inputs of a {part} batch are NaN or infinite in row "
                f"{place}{index}; fill in or drop such rows"
            )

    def _finite(self, z: Tensor) -> Tensor:
        if not z.isfinite().all():
            raise RunError(
                f"{self.name}: the network's values are NaN or infinite; lower the learning rate"
            )
        return z


# What is matched


@dataclass(kw_only=True)
class LossValues(Matching):
    """π(x, y) = ℓ(f(x), y), one number per sample."""

    by_losses: ClassVar[bool] = True

    @property
    def transform(self) -> Transform:
        """The losses."""
        return loss_values


@dataclass(kw_only=True)
class HiddenOutputs(Matching):
    """π(x) = h(x), what enters a layer; or the logits, where a field says so."""

    features: str = "hidden"
    """"hidden": what enters `layer`; "output": the network's whole output, the logits."""
    layer: str | None = None
    """The layer whose input is the representation, such as "encoder.fc2"; None is the last
    `nn.Linear`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features not in ("hidden", "output"):
            raise UsageError(
                f"{self.name}.features: choose hidden or output, not {self.features!r}"
            )

    @property
    def transform(self) -> Transform:
        """The hidden outputs, or the logits."""
        return hidden_outputs if self.features == "hidden" else logits

    def tap(self, network: nn.Module) -> Tap | None:
        """A tap of the layer, unless the logits are matched."""
        return Tap(network, self.layer) if self.features == "hidden" else None


@dataclass(kw_only=True)
class Logits(Matching):
    """π(x) = f(x), the network's whole output."""

    @property
    def transform(self) -> Transform:
        """The logits."""
        return logits


@dataclass(kw_only=True)
class RawInputs(Matching):
    """π(x) = x, the raw inputs."""

    @property
    def transform(self) -> Transform:
        """The inputs."""
        return raw_inputs


# By class or together


@dataclass(kw_only=True)
class Together(Matching):
    """All classes are matched together."""

    @property
    def by_class(self) -> bool:
        """Never."""
        return False


@dataclass(kw_only=True)
class ByClass(Matching):
    """Each class is matched alone, because what is matched does not contain the label."""

    partition: bool = True
    """Match each class alone, times p_trusted(y)/p_train(y). False matches all classes together
    and asks no labels of the trusted samples: right under covariate shift only."""
    scale_within_class: bool = field(default=True, metadata=LATER)
    """Bring the matched weights of a class to mean one before that factor, so that a class has
    exactly the share which it says; False only multiplies, as the paper's Algorithm 1 does."""

    @property
    def by_class(self) -> bool:
        """Unless the field says otherwise."""
        return self.partition

    @property
    def scaled_by_class(self) -> bool:
        """As the field says."""
        return self.scale_within_class


# Which network looks


@dataclass(kw_only=True)
class NoNetwork(Matching):
    """None: the inputs are matched as they are."""

    def see(self, step: Step) -> tuple[Outputs, Outputs]:
        """Nothing."""
        return Outputs(None, None), Outputs(None, None)


@dataclass(kw_only=True)
class Trained(Matching):
    """The network being trained, from its random initialisation."""

    warmup: int = 1
    """Epochs at the start without weights: a random network has nothing to say yet. A loop that
    never says `start_epoch` has none; give it `warmup_steps`."""


@dataclass(kw_only=True)
class Pretrained(Matching):
    """A network that was trained without weights first."""

    pretraining: int = 20
    """Epochs of the pretraining, on top of the training epochs (the paper: 20, on CIFAR 50)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pretraining < 1:
            raise UsageError(
                f"{self.name}.pretraining: must be at least 1, and is {self.pretraining}"
            )

    def estimator(self, task: Task) -> nn.Module:
        """The pretrained network."""
        return unwrap(task.pretrain(self.pretraining))


@dataclass(kw_only=True)
class PretrainedStart(Pretrained):
    """The network being trained, which goes on from a pretrained one."""

    def begin(self, task: Task) -> State | None:
        """Pretrain, and hand over the parameters to start from."""
        return self.estimator(task).state_dict()


@dataclass(kw_only=True)
class Frozen(Pretrained):
    """A pretrained network that stays as it is, while another one is trained.

    In mini-batches the weights still move: with the trusted samples that each one meets.
    """

    _estimator: dict[str, Tensor] = field(default_factory=dict[str, Tensor], init=False, repr=False)

    def begin(self, task: Task) -> State | None:
        """Pretrain, and keep parameters and buffers."""
        network = self.estimator(task)
        tensors = [*network.named_parameters(), *network.named_buffers()]
        self._estimator = {name: tensor.detach().clone() for name, tensor in tensors}
        return None

    def see(self, step: Step) -> tuple[Outputs, Outputs]:
        """Both batches as the frozen network sees them."""
        train = step.look(self._estimator, step.train)
        return train, step.look(self._estimator, step.trusted, trusted=True)

    def state_dict(self) -> dict[str, Any]:
        """The frozen network, if mini-batches need it, besides what others keep."""
        kept = {"estimator": dict(self._estimator)} if self._estimator else {}
        return {**super().state_dict(), **kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict(state)
        self._estimator = dict(state.get("estimator", {}))
