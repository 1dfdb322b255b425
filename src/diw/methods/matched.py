"""Methods that match, and the choices that make one.

| choice | classes |
|---|---|
| what is matched | `LossValues`, `HiddenOutputs`, `RawInputs` |
| which network looks | `Trained`, `Frozen`, `PretrainedStart`, or none |
| when | `EachBatch`, `Once` (paper.py) |
| by class or together | `ByClass`, or none |

Each adds a little behaviour, and the fields that it needs, to `Matching`; a method is a class of
one of each (`diw.methods.paper`).
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from diw.config import LATER, check_fields
from diw.errors import RunError, UsageError
from diw.matching import Match, MatchOptions, kmm_batch
from diw.methods.base import Method, Need, State, Task, normalised, refuse_wrong_inputs
from diw.methods.by_class import Classwise, share_at_bound
from diw.step.batch import Outputs, Weights
from diw.step.criteria import Transform, hidden_outputs, logits, loss_values, raw_inputs
from diw.step.look import Tap, unwrap
from diw.step.step import Step


@dataclass(kw_only=True)
class Matching(Method):
    """Weights by kernel mean matching (Fang et al. 2020, Eq. (10)); the choices say of what.

    Attributes:
        gamma: Width of the kernel exp(−γ‖z−z'‖²): a number, a rule such as "quantile:0.01" or
            "median", or None for the rule that suits the values: "quantile:0.01" for one number per
            sample, such as losses (the paper's for label noise), "median" for features and inputs.
        bound: B, the largest weight the match may give (the paper: 50, 10 or 100).
        slack: ε, how far the mean weight may be from one; None is (√n−1)/√n.
        ridge: ω, added to the kernel's diagonal.
        solver: "exact" solves the match exactly; "stopped" ends early, where the authors' solver
            ends, as the paper's results ask; "cvxopt" is that solver itself (extra `released`).
    """

    solvers: ClassVar[tuple[str, ...]] = ("exact", "stopped", "cvxopt")

    gamma: float | str | None = None
    bound: float = 50.0
    slack: float | None = None
    ridge: float = 1e-5
    solver: str = field(default="exact", metadata={"written": {"exact": "diw"}})

    def __post_init__(self) -> None:
        if self.solver == "diw":  # the word of specs
            self.solver = "exact"
        try:
            MatchOptions(gamma=self.gamma, bound=self.bound, slack=self.slack, ridge=self.ridge)
        except ValueError as error:
            raise UsageError(f"{self.name}.{error}") from None
        check_fields(self, "bound", least=1, of=self.name)
        if self.solver not in self.solvers:
            raise UsageError(
                f"{self.name}.solver: choose {', '.join(self.solvers)}, not {self.solver!r}"
            )

    @property
    @abstractmethod
    def transform(self) -> Transform:
        """π: what of a sample is matched."""

    @property
    def by_class(self) -> bool:
        """Whether each class is matched alone."""
        return False

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
        return step.train_eval, step.trusted_eval

    def solve(self, problems: Iterable[tuple[Tensor, Tensor]]) -> list[Match]:
        """Match the pairs (z_train, z_trusted), each by itself, in one call.

        A match that misses its tolerance is used all the same, with a warning:
        its weights are feasible, and a training of hours should not end there.
        """
        pairs = [(self.finite(ours), self.finite(theirs)) for ours, theirs in problems]
        return kmm_batch(
            [ours for ours, _ in pairs],
            [theirs for _, theirs in pairs],
            gamma=self.gamma,
            bound=self.bound,
            slack=self.slack,
            ridge=self.ridge,
            solver=cast(Any, self.solver),
            on_failure="warn",
        )

    def finite(self, z: Tensor) -> Tensor:
        """The values z (n, …), which are refused where they are NaN or infinite."""
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
    """π(x) = h(x), what enters a layer; or the logits, where a field says so.

    Attributes:
        features: "hidden": what enters `layer`; "output": the network's whole output, the logits.
        layer: The layer whose input is the representation, such as "encoder.fc2"; None is the last
            `nn.Linear`.
    """

    features: str = "hidden"
    layer: str | None = None

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
class RawInputs(Matching):
    """π(x) = x, the raw inputs, which no network looks at."""

    @property
    def transform(self) -> Transform:
        """The inputs."""
        return raw_inputs


@dataclass(kw_only=True)
class ByClass(Matching):
    """Each class is matched alone, because what is matched does not contain the label.

    Attributes:
        partition: Match each class alone, times p_trusted(y)/p_train(y). False matches all classes
            together and asks no labels of the trusted samples: right under covariate shift only.
        scale_within_class: Bring the matched weights of a class to mean one before that factor, so
            that a class has exactly the share which it says; False only multiplies, as the paper's
            Algorithm 1 does.
    """

    partition: bool = True
    scale_within_class: bool = field(default=True, metadata=LATER)

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
class Trained(Matching):
    """The network being trained, from its random initialisation.

    Attributes:
        warmup: Epochs at the start without weights: a random network has nothing to say yet. A loop
            that never says `start_epoch` has none; give it `warmup_steps`.
    """

    warmup: int = 1


@dataclass(kw_only=True)
class Pretrained(Matching):
    """A network that was trained without weights first.

    Attributes:
        pretraining: Epochs of the pretraining, on top of the training epochs (the paper: 20, on
            CIFAR 50).
    """

    needs: ClassVar[frozenset[Need]] = frozenset({"pretrain"})

    pretraining: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "pretraining", least=1, of=self.name)

    def estimator(self, task: Task) -> nn.Module:
        """The pretrained network."""
        return unwrap(task.pretrained(self.pretraining, self.name))


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


# When


@dataclass(kw_only=True)
class EachBatch(Matching):
    """When: each mini-batch is matched to a trusted one (Fang et al. 2020, Algorithm 1).

    Attributes:
        momentum: Share of a sample's weight of the last epoch in its new one (the paper's
            footnote 1).
        noise: Deviation of a random factor max(0, 1 + noise · N(0, 1)) on each weight, drawn anew
            for each sample in each epoch (in each step, where the loop gives no epochs or no
            index): a regulariser, which the early end of the authors' solver amounts to.
        normalise: Bring the weights of a mini-batch to mean one; False leaves their mean where the
            match has it, in 1 ± `slack`, as the authors' released example does.
        warmup: Epochs at the start without weights; a loop that never says `start_epoch` has none.
        warmup_steps: Optimiser steps at the start without weights, for a loop that has no epochs.
    """

    momentum: float = 0.0
    noise: float = 0.0
    normalise: bool = True
    warmup: int = 0
    warmup_steps: int = 0

    _classwise: Classwise | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "momentum", least=0, below=1, of=self.name)
        check_fields(self, "noise", "warmup", "warmup_steps", least=0, of=self.name)

    def prepare(self, task: Task) -> State | None:
        """Count the classes, if each is matched alone, and get the network ready."""
        self._classwise = Classwise.of(task, self.name) if self.by_class else None
        return self.begin(task)

    def weigh(self, step: Step) -> Weights:
        """The matched weights, (n,), blended with the last epoch's where `momentum` asks for it."""
        if self._classwise is not None:
            self._classwise.see(step.train)
        if 1 <= step.epoch <= self.warmup or step.t < self.warmup_steps:
            return Weights(step.ones())
        weights, metrics = self.match(step)
        weights = weights.to(step.ones())
        if self.noise:
            factors = 1 + self.noise * step.normal("noise on weights")
            weights = weights * factors.clamp(min=0).to(weights)
        if self.momentum:
            every, mine = step.world.gather(weights)
            weights = self._blend(step, normalised(every)[mine] if self.normalise else weights)
        return Weights(weights, metrics=metrics, normalise=self.normalise)

    def match(self, step: Step) -> tuple[Tensor, dict[str, float]]:
        """The matched weights of one step, (n,), and what the solver says."""
        z_train, z_trusted = self.values(step)
        if self._classwise is not None:
            if step.world.size > 1:
                raise UsageError(
                    f"world: {self.name} matches each class alone, which one process can only do "
                    "for its own batch; leave world out, or use diw"
                )
            return self._classwise.match(
                step,
                z_train,
                z_trusted,
                solve=self.solve,
                bound=self.bound,
                scale=self.scaled_by_class,
            )
        (z_train, mine), (z_trusted, _) = step.world.gather(z_train), step.world.gather(z_trusted)
        match = self.solve([(z_train, z_trusted)])[0]
        return match.weights[mine], {
            "share_bound": share_at_bound(match.weights, self.bound),
            "iterations": float(match.iterations),
        }

    def values(self, step: Step) -> tuple[Tensor, Tensor]:
        """What is matched, (n, …) and (m, …); rows whose inputs are not finite are refused."""
        found: list[Tensor] = []
        parts = (step.train, "training"), (step.trusted, "trusted")
        for outputs, (batch, part) in zip(self.see(step), parts, strict=True):
            z = self.transform(batch, outputs)
            if not z.isfinite().all():
                refuse_wrong_inputs(batch, self.name, part)
            found.append(z)
        return found[0], found[1]

    def _blend(self, step: Step, new: Tensor) -> Tensor:
        old = step.memory.read("weights", step.train.index).to(new)
        blended = torch.where(old.isnan(), new, self.momentum * old + (1 - self.momentum) * new)
        step.memory.write("weights", step.train.index, blended)
        return blended

    def state_dict(self) -> dict[str, Any]:
        """Class counts and trusted values, where classes are matched alone."""
        return {"classwise": None if self._classwise is None else self._classwise.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        kept = state["classwise"]
        self._classwise = None if kept is None else Classwise.from_state_dict(kept, self.name)
