"""What a weighting method is: it looks at one training step and gives one weight per sample."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from diw.config import RETIRED, field_values
from diw.errors import RunError, UsageError
from diw.step.batch import Batch, Criterion, Outputs, Weights, first_tensor
from diw.step.criteria import cross_entropy, losses_of_targets
from diw.step.look import Tap
from diw.step.rows import Rows
from diw.step.step import Horizon, Step

State = Mapping[str, Tensor]
"""Parameters and buffers by name, as `Module.state_dict` gives them."""
Need = Literal["train", "index", "pretrain", "true_weights", "one process"]

_definitions = itertools.count()


@dataclass(frozen=True)
class Task:
    """Data and criteria of one training, as every host hands them to an `Objective`.

    Attributes:
        trusted: The whole trusted set.
        train: The whole training set, if the host has it.
        trusted_index: (m,) places of the trusted samples in the training set; empty where they are
            kept out of it, None where the host does not know.
        trusted_given: (m,) labels of the trusted samples before they were checked; -1: unknown.
        true_weights: (n,) the true weight of each training sample, known for simulated shifts.
        criterion: (outputs, targets) → losses (n,) of training samples.
        trusted_criterion: The same for trusted samples; None: the criterion.
        horizon: How long the training goes on, as far as the host knows it.
        pretrain: (epochs) → a network trained without weights; an interrupted call is resumed.
    """

    trusted: Rows
    train: Rows | None = None
    trusted_index: Tensor | None = None
    trusted_given: Tensor | None = None
    true_weights: Tensor | None = None
    criterion: Criterion = cross_entropy
    trusted_criterion: Criterion | None = None
    horizon: Horizon = field(default_factory=Horizon)
    pretrain: Callable[[int], nn.Module] | None = None

    def __post_init__(self) -> None:
        index = _whole("trusted_index", self.trusted_index, 0)
        if index is not None:
            _check_places(index, len(self.trusted), self.train)
        given = _whole("trusted_given", self.trusted_given, -1)
        if given is not None and len(given) != len(self.trusted):
            raise UsageError(
                f"trusted_given: give a label for each of the {len(self.trusted)} trusted samples "
                f"(-1: unknown), not {len(given)}"
            )
        if self.pretrain is not None and not callable(self.pretrain):
            raise UsageError(
                "pretrain: give a function that takes a number of epochs and returns a network"
            )
        checked = {"trusted_index": index, "trusted_given": given}
        checked["true_weights"] = _checked_weights(self.true_weights)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def criterion_of(self, *, trusted: bool) -> Criterion:
        """The criterion of training or of trusted samples."""
        return (trusted and self.trusted_criterion) or self.criterion

    def pretrained(self, epochs: int, method: str) -> nn.Module:
        """A network that was trained without weights.

        Args:
            epochs: For how long.
            method: Who asks, for the message.
        """
        if self.pretrain is None:
            raise UsageError(f"pretrain: {method} needs it; give Objective(…, pretrain=…)")
        return self.pretrain(epochs)


@dataclass(kw_only=True)
class Method(ABC):
    """One method: its dataclass fields are its configuration.

    Subclasses with a `name` are registered by being defined. What their docstring says of a field
    under "Attributes" is its help on the command line. The weights that `weigh` returns need no
    scale: the objective normalises them to mean one.
    """

    name: ClassVar[str] = ""
    """The canonical name: the paper's, in lower case. Empty for shared parts."""
    aliases: ClassVar[tuple[str, ...]] = ()
    trains_on: ClassVar[Literal["train", "trusted"]] = "train"
    """"trusted" for a method that leaves the training data alone."""
    is_control: ClassVar[bool] = False
    """Whether training with it says nothing of the given labels: others are compared with it."""
    needs: ClassVar[frozenset[Need]] = frozenset()
    """What its host must give: the whole training set, each sample's index, a pretrained network,
    the true weights; or that it is one process. Those of the bases are added."""
    costs_like: ClassVar[str] = ""
    """A method whose steps cost about as much and that needs nothing beforehand; empty: none."""
    by_losses: ClassVar[bool] = False
    """Whether it compares losses of training and trusted samples, or what the network predicts for
    their labels; then the trusted samples have to be trained on too."""
    defined: ClassVar[int] = 0
    """Listings have methods in the order in which they are defined."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.defined = next(_definitions)
        bases = (base for base in cls.__mro__ if issubclass(base, Method))
        cls.needs = cls.needs.union(*(base.needs for base in bases))

    def tap(self, network: nn.Module) -> Tap | None:
        """Where the method wants a hidden output of `network` caught, if it does."""
        return None

    def adapt(self, horizon: Horizon) -> None:  # noqa: B027
        """Suit the configuration to the length of a training; for a method given by name alone."""

    def prepare(self, task: Task) -> State | None:
        """Get ready, once, before the first step; may return the parameters to start from."""
        return None

    @abstractmethod
    def weigh(self, step: Step) -> Weights:
        """The weights of one step, and what is trained on, where that is not the given labels."""

    def losses(
        self, outputs: Outputs, batch: Batch, targets: Tensor | None, criterion: Criterion
    ) -> Tensor:
        """The losses that are trained, (n,); asked after `weigh`.

        Args:
            outputs: The training forward, with the losses of the given labels.
            batch: The training batch.
            targets: (n, k) what `weigh` gave to train on; None: the given labels.
            criterion: (outputs, targets) → losses (n,).
        """
        if targets is None:
            return outputs.losses
        return losses_of_targets(criterion, outputs.values, targets)

    def after_step(self) -> None:  # noqa: B027
        """Act after an optimiser step, once; for a method with an optimiser of its own."""

    def state_dict(self) -> dict[str, Any]:
        """What the method has learned besides its configuration; tensors and plain values."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Take over what `state_dict` gave."""

    def fields(self) -> dict[str, Any]:
        """The configuration by field name, as a run's spec states it."""
        return {**field_values(self), **RETIRED.get(self.name, {})}


def check_needs(method: Method, task: Task, processes: int) -> None:
    """Refuse a host that does not give what a method needs."""
    if "one process" in method.needs and processes > 1:
        raise UsageError(
            f"world: {method.name} weighs the batch of one process; leave world out, or use diw"
        )
    if "train" in method.needs and task.train is None:
        raise UsageError(
            f"train: {method.name} looks at the whole training set beforehand; "
            "give Objective(…, train=…)"
        )
    if "true_weights" in method.needs and task.true_weights is None:
        raise UsageError(
            f"{method.name}: the true weights are unknown for these data; simulate a shift, "
            "give Objective(…, true_weights=…), or leave the method out"
        )


def normalised(weights: Tensor) -> Tensor:
    """Weights scaled to mean one, (n,); weights that are all zero stay zero.

    Fang et al. 2020, Section 5: normalised within each mini-batch.
    """
    mean = weights.mean()
    return torch.where(mean > 0, weights / torch.where(mean > 0, mean, 1), 0.0).to(weights.dtype)


def refuse_wrong_inputs(batch: Batch, method: str, part: str = "training") -> None:
    """Say which row of a batch has inputs that are NaN or infinite, if one has.

    Args:
        batch: The samples.
        method: The method's name, for the message.
        part: "training" or "trusted".
    """
    inputs = first_tensor(batch.inputs)
    wrong = ~inputs.isfinite().flatten(1).all(1)
    if wrong.any():
        place = int(wrong.nonzero()[0])
        index = "" if batch.index is None else f" (sample {int(batch.index[place])})"
        raise RunError(
            f"{method}: the inputs of a {part} batch are NaN or infinite in row {place}{index}; "
            "fill in or drop such rows"
        )


def check_labels(labels: Tensor, classes: int, method: str, part: str = "batch") -> None:
    """Refuse labels (n,) that are no class numbers, in a line that names the row.

    Args:
        labels: Whole numbers.
        classes: The network's number of scores.
        method: The method's name, for the message.
        part: The argument that holds them.
    """
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise UsageError(
            f"{part}: {method} needs labels in 0..{classes - 1}, and row {row} has "
            f"{int(labels[row])}; leave such rows out"
        )


def _checked_weights(weights: Any) -> Tensor | None:
    """True weights as a vector of finite numbers that are not negative."""
    if weights is None:
        return None
    values = torch.as_tensor(weights)
    if values.ndim != 1 or not bool((values >= 0).all()) or not bool(values.isfinite().all()):
        raise UsageError(
            "true_weights: give one finite number that is not negative for each training sample, "
            f"shape (n,); got shape {tuple(values.shape)}"
        )
    return values


def _check_places(index: Tensor, trusted: int, train: Rows | None) -> None:
    """Refuse places of trusted samples that are of others, or beyond the training set."""
    if len(index) > trusted:
        raise UsageError(
            f"trusted_index: give the places of the {trusted} trusted samples in the training set, "
            f"not {len(index)} numbers"
        )
    if bool((index.sort().values.diff() == 0).any()):
        raise UsageError("trusted_index: gives one place to several trusted samples")
    if train is not None and len(index) and int(index.max()) >= len(train):
        raise UsageError(
            f"trusted_index: {int(index.max())} is no place in the training set, which has "
            f"{len(train)} samples"
        )


def _whole(name: str, values: Any, least: int) -> Tensor | None:
    """A vector of whole numbers that are not below `least`."""
    if values is None:
        return None
    found = torch.as_tensor(values)
    wrong = found.ndim != 1 or found.is_floating_point() or found.dtype == torch.bool
    if wrong or bool((found < least).any()):
        what = "place in the training set" if least == 0 else "label before it was checked (or -1)"
        raise UsageError(
            f"{name}: give the {what} of each trusted sample, whole numbers of shape (m,); "
            f"got {found.dtype} of shape {tuple(found.shape)}"
        )
    return found.long()
