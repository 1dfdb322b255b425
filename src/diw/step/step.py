"""One training step as a weighting method sees it.

A `Step` is lazy and memoised: a method asks for what it needs (the trusted
batch, losses, hidden outputs, a directional derivative), which is computed on
first use and kept for the step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from diw.config import check_fields
from diw.deprecated import Renamed
from diw.errors import UsageError
from diw.seeding import numpy_generator
from diw.step.batch import (
    Batch,
    Criterion,
    ModelOutput,
    Outputs,
    arguments,
    first_tensor,
    one_per_sample,
)
from diw.step.criteria import TargetsError, ToLogits, logits_of
from diw.step.look import Tap, is_mode_free, looking, run
from diw.step.world import LOCAL, Memory, World

TrainedLosses = Callable[[Outputs, Batch, Tensor | None, Criterion], Tensor]
"""(outputs, batch, targets, criterion) → the losses (n,) that a method trains on."""


@dataclass(frozen=True)
class Horizon:
    """How long a training goes on, as far as its host knows it.

    Attributes:
        steps: Optimiser steps in all.
        steps_per_pass: Steps of one pass over the training data.
        batch_size: Training samples per step.
    """

    steps: int | None = None
    steps_per_pass: int | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, "steps", "steps_per_pass", "batch_size", least=1)


@dataclass(frozen=True)
class StepContext:
    """What stays the same between steps; an `Objective` makes it once."""

    network: nn.Module
    criterion: Criterion
    trusted_criterion: Criterion
    tap: Tap | None
    shared: bool
    memory: Memory
    seed: int
    to_logits: ToLogits = logits_of
    world: World = LOCAL


class Step:
    """A lazy view of one training step, see the module's docstring."""

    def __init__(
        self,
        context: StepContext,
        train: Batch,
        draw_trusted: Callable[[], Batch],
        *,
        epoch: int,
        t: int,
        horizon: Horizon,
        model: nn.Module,
        outputs: ModelOutput = None,
        fits: bool = False,
    ):
        """Open a step.

        Args:
            context: The network, its criterion and the rest that outlives a step.
            train: The training batch.
            draw_trusted: Gives the step's trusted batch; called on first use only.
            epoch: The epoch, from 1; 0 in a loop without epochs.
            t: The optimiser step, from 0.
            horizon: How long the training goes on, as far as it is known.
            model: The host's wrapped network for the training forward.
            outputs: The training forward, where the host has run it already.
            fits: Whether the training forward is run in any case.
        """
        self.train = train
        self.epoch = epoch
        self.t = t
        self.horizon = horizon
        self.memory = context.memory
        self.world = context.world
        """The processes that train together; `world.gather` gives the values of all samples."""
        self._context = context
        self._draw_trusted = draw_trusted
        self._model = model
        self._outputs = outputs
        self._fits = fits or outputs is not None

    @cached_property
    def trusted(self) -> Batch:
        """The step's trusted batch."""
        return self._draw_trusted()

    @cached_property
    def train_forward(self) -> Outputs:
        """The training forward, with its graph."""
        if self._outputs is not None:
            return Outputs(self._outputs, self.given_losses(self._outputs, self.train))
        compiled = hasattr(self._model, "_orig_mod")  # a tap would be compiled in, or ignored
        return self._run(self._model, self.train, tapped=self._context.shared and not compiled)

    def trusted_loss(self, weights: Tensor) -> Tensor:
        """Σ_j v_j ℓ_j of a training forward of the trusted batch, for methods that train on it.

        Samples of weight zero are left out of the forward, unless samples may meet in the network
        (in batch norm, say).

        Args:
            weights: v, (m,).
        """
        counts = weights > 0
        whole = bool(counts.all()) or self.trusted.tokens is not None
        if whole or not is_mode_free(self._context.network):
            return (weights * self._run(self._model, self.trusted, trusted=True).losses).sum()
        if not counts.any():
            return weights.sum()
        some = self.trusted.part(counts)
        return (weights[counts] * self._run(self._model, some, trusted=True).losses).sum()

    @cached_property
    def train_eval(self) -> Outputs:
        """The training batch seen by the network in evaluation mode, without gradient.

        Where one forward provably serves both, this is the training forward.
        """
        context = self._context
        if context.shared and (context.tap is None or self.train_forward.maybe_hidden is not None):
            return _detached(self.train_forward)
        return self._look(self.train)

    @property
    def train_detached(self) -> Outputs:
        """The training batch, seen as cheaply as possible, without gradient.

        The training forward, in training mode, where it is run in any case; a look otherwise.
        """
        return _detached(self.train_forward) if self._fits else self.train_eval

    @cached_property
    def trusted_eval(self) -> Outputs:
        """The trusted batch seen by the network in evaluation mode, without gradient."""
        return self._look(self.trusted, trusted=True)

    fit = Renamed("train_forward")
    seen_train = Renamed("train_detached")
    probe_train = Renamed("train_eval")
    probe_trusted = Renamed("trusted_eval")

    @property
    def looked_at_trusted(self) -> Tensor | None:
        """The losses (m,) of the trusted batch, if the method has looked at them in this step."""
        seen: Outputs | None = self.__dict__.get("trusted_eval")
        return None if seen is None else seen.maybe_losses

    def given_losses(self, values: ModelOutput, batch: Batch, *, trusted: bool = False) -> Tensor:
        """The losses (n,) of the labels that a batch has, whatever is trained on.

        Args:
            values: What the network gave for the batch.
            batch: The samples.
            trusted: Whether they are trusted ones, whose criterion may differ.
        """
        context = self._context
        criterion = context.trusted_criterion if trusted else context.criterion
        values = self._counted(values, batch)
        assert batch.targets is not None
        try:
            losses = criterion(values, batch.targets)
        except TargetsError as error:
            raise UsageError(f"{'trusted' if trusted else 'batch'}: {error}") from error
        return one_per_sample(losses, len(batch), values)

    def trained_losses(self, losses: TrainedLosses, targets: Tensor | None) -> Tensor:
        """The losses (n,) that are trained, of the training forward and with its graph.

        Args:
            losses: `Method.losses`.
            targets: (n, k) what is trained on instead of the given labels, or None.
        """
        outputs = self.train_forward
        outputs = replace(outputs, values=self._counted(outputs.values, self.train))
        trained = losses(outputs, self.train, targets, self._context.criterion)
        return one_per_sample(trained, len(self.train), outputs.values)

    def _counted(self, values: ModelOutput, batch: Batch) -> ModelOutput:
        """The values of the tokens that count, where tokens are the samples; all others as is."""
        return values if batch.tokens is None else self._context.to_logits(values)[batch.tokens]

    def look(self, state: Mapping[str, Tensor], batch: Batch, *, trusted: bool = False) -> Outputs:
        """See `batch` with other parameters and buffers (a frozen estimator), in evaluation mode.

        Args:
            state: Parameters and buffers by name; the network's own where a name is missing.
            batch: The samples to look at.
            trusted: Whether they are trusted ones, whose criterion may differ.
        """
        network = self._context.network

        def estimator(*positional: Any, **named: Any) -> ModelOutput:
            return functional_call(network, dict(state), positional, named)

        with torch.no_grad(), looking(network):
            return self._run(estimator, batch, trusted=trusted, tapped=True)

    def ones(self, batch: Batch | None = None) -> Tensor:
        """A weight of one for each sample of the training (or a given) batch, (n,).

        On the network's device and in its precision, but float32 at least.
        """
        like = next(self._context.network.parameters(), torch.empty(0))
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        return torch.ones(
            len(self.train if batch is None else batch), dtype=dtype, device=like.device
        )

    def moved(self, weights: Tensor, length: float) -> dict[str, Tensor]:
        """The parameters after a step on the weighted losses, θ − length · Σ_i w_i ∇ℓ_i, by name.

        Args:
            weights: w, (n,).
            length: The step's length.
        """
        parameters = self._parameters()
        with torch.enable_grad(), looking(self._context.network, training=None):
            losses = self._run(self._context.network, self.train).losses
            wrt = list(parameters.values())
            gradients = torch.autograd.grad(losses, wrt, weights.to(losses), materialize_grads=True)
        return {
            name: (p - length * gradient).detach()
            for (name, p), gradient in zip(parameters.items(), gradients, strict=True)
        }

    def trusted_gradient(self, at: Mapping[str, Tensor] | None = None) -> list[Tensor]:
        """∇L of the mean trusted loss in training mode, one tensor per parameter.

        Args:
            at: Other values of the parameters, by name; None takes them as they are.
        """
        parameters = self._parameters()
        if not parameters:
            raise UsageError("model: every parameter is frozen; there is no gradient to weigh by")
        network = self._context.network
        if at is not None:
            parameters = {name: value.detach().requires_grad_() for name, value in at.items()}

        def forward(*positional: Any, **named: Any) -> ModelOutput:
            if at is None:
                return network(*positional, **named)
            return functional_call(network, parameters, positional, named)

        with torch.enable_grad(), looking(network, training=None):
            outputs = self._run(forward, self.trusted, trusted=True)
            loss = outputs.losses.mean()
            if self.world.size > 1:  # the mean over what all processes look at
                count = self.world.add(torch.tensor(float(len(self.trusted))))
                loss = outputs.losses.sum() / float(count)
            gradients = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
        return [self.world.add(gradient) for gradient in gradients]

    def loss_jvp(self, direction: Sequence[Tensor]) -> Tensor:
        """⟨∇ℓ_i, v⟩ for every training sample at once, (n,), by one forward-mode pass.

        In training mode, from the random state that the training forward will
        see (the same dropout masks), leaving no trace.

        Args:
            direction: v, one tensor per parameter.

        Raises:
            NotImplementedError: A layer has no forward-mode derivative; use
                `loss_jvp_by_double_backward`.
        """
        network = self._context.network
        with torch.no_grad(), looking(network, training=None), forward_ad.dual_level():
            dual = {
                name: forward_ad.make_dual(p.detach(), v)  # pyright: ignore[reportUnknownMemberType]
                for (name, p), v in zip(self._parameters().items(), direction, strict=True)
            }
            positional, named = arguments(self.train.inputs)
            values = functional_call(network, dual, tuple(positional), dict(named))
            losses = self.given_losses(values, self.train)
            tangent = forward_ad.unpack_dual(losses).tangent  # pyright: ignore[reportUnknownMemberType]
            return torch.zeros_like(losses) if tangent is None else tangent.clone()

    def loss_jvp_by_double_backward(self, direction: Sequence[Tensor]) -> Tensor:
        """The same as `loss_jvp` for networks without forward-mode derivatives, at twice the cost.

        J v = ∂/∂u ⟨Jᵀu, v⟩: Jᵀu is linear in u, so any u serves, and u = 0 is Ren
        et al.'s look-ahead at ε = 0.
        """
        parameters = self._parameters()
        with torch.enable_grad(), looking(self._context.network, training=None):
            outputs = self._run(self._context.network, self.train)
            u = torch.zeros_like(outputs.losses, requires_grad=True)
            pulled = torch.autograd.grad(
                outputs.losses,
                list(parameters.values()),
                u,
                create_graph=True,
                materialize_grads=True,
            )
            inner = torch.stack([(g * v).sum() for g, v in zip(pulled, direction, strict=True)])
            return torch.autograd.grad(inner.sum(), u)[0].detach()

    def normal(self, purpose: str) -> Tensor:
        """Standard normal numbers (n,) on the CPU, drawn by seed, epoch and sample.

        A sample keeps its number for a whole epoch, whatever batch it comes in. Without an
        index or without epochs, the step and the place in the batch decide instead.
        """
        seed, index = self._context.seed, self.train.index
        if index is None or not self.epoch:
            places, mine = self.world.gather(torch.arange(len(self.train)))
            draws = numpy_generator(seed, purpose, "step", self.t).standard_normal(len(places))
            return torch.as_tensor(draws)[mine]
        # Sizes are powers of two, so that one draw serves a whole epoch.
        size = 1 << int(index.max()).bit_length()
        return torch.as_tensor(_normals(seed, purpose, self.epoch, size))[index.cpu()]

    def _parameters(self) -> dict[str, Tensor]:
        return {n: p for n, p in self._context.network.named_parameters() if p.requires_grad}

    def _run(
        self,
        model: Callable[..., ModelOutput],
        batch: Batch,
        *,
        trusted: bool = False,
        tapped: bool = False,
    ) -> Outputs:
        try:
            outputs = run(model, batch, self._context.tap if tapped else None)
        except (RuntimeError, TypeError, ValueError) as error:
            if trusted and (reason := _differs(batch, self.train)):
                raise UsageError(f"trusted: {reason}") from error
            raise
        if batch.targets is None:
            return outputs
        return replace(
            outputs, maybe_losses=self.given_losses(outputs.values, batch, trusted=trusted)
        )

    def _look(self, batch: Batch, *, trusted: bool = False) -> Outputs:
        with torch.no_grad():
            if self._context.shared:  # proven to have no mode, no buffers that move, no randomness
                return self._run(self._context.network, batch, trusted=trusted, tapped=True)
            with looking(self._context.network):
                return self._run(self._context.network, batch, trusted=trusted, tapped=True)


def _detached(outputs: Outputs) -> Outputs:
    """The same without the graph."""
    values = outputs.values.detach() if isinstance(outputs.values, Tensor) else outputs.values
    return Outputs(values, outputs.losses.detach(), outputs.maybe_hidden)


def _differs(trusted: Batch, train: Batch) -> str | None:
    """How trusted inputs differ from those of the training batch; None if they look alike."""
    theirs, ours = arguments(trusted.inputs), arguments(train.inputs)
    if set(theirs[1]) != set(ours[1]) or len(theirs[0]) != len(ours[0]):
        return f"the inputs are {_names(*theirs)}, and those of the training batch {_names(*ours)}"
    ours, theirs = first_tensor(train.inputs), first_tensor(trusted.inputs)
    if ours.shape[1:] != theirs.shape[1:]:
        return (
            f"each input has shape {tuple(theirs.shape[1:])}, and one of the training batch "
            f"{tuple(ours.shape[1:])}"
        )
    if ours.dtype != theirs.dtype:
        return f"the inputs are {theirs.dtype}, and those of the training batch {ours.dtype}"
    return None


def _names(positional: Sequence[Any], named: Mapping[str, Any]) -> str:
    return ", ".join(map(str, named)) if named else f"{len(positional)} by place"


@lru_cache(maxsize=4)
def _normals(seed: int, purpose: str, epoch: int, size: int) -> NDArray[np.float64]:
    return numpy_generator(seed, purpose, "epoch", epoch).standard_normal(size)
