"""Looking at a network without leaving a trace.

Weight estimation regards the network as fixed (Fang et al. 2020, Section 2):
it runs the network in evaluation mode, without gradients. Afterwards every
submodule's mode, all buffers and the random state must be as they were before.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from diw.errors import UsageError
from diw.step.batch import Batch, ModelOutput, Outputs, arguments
from diw.step.rows import PIECE, Rows, in_pieces

# Modules whose training and evaluation forwards are the same arithmetic, by exact type: a
# subclass may do anything.
_SAME_IN_BOTH_MODES: frozenset[type[nn.Module]] = frozenset(
    {
        *(nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.Identity, nn.Flatten, nn.Unflatten),
        *(nn.Linear, nn.Bilinear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding),
        *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, nn.ZeroPad2d),
        *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SELU, nn.SiLU, nn.Mish),
        *(nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Hardtanh, nn.Hardswish, nn.Softmax, nn.LogSoftmax),
        *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
        *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
        *(nn.LayerNorm, nn.GroupNorm),
    }
)


def unwrap(model: nn.Module) -> nn.Module:
    """The user's own network inside `torch.compile` and data-parallel wrappers."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in (
            "DistributedDataParallel",
            "DataParallel",
            "FullyShardedDataParallel",
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def is_mode_free(model: nn.Module) -> bool:
    """Whether one forward provably serves training and evaluation, bit for bit.

    True when every submodule is on a list of types without batch norm, dropout
    or the like, or is of a class that declares `mode_free = True` (its own
    `forward` never asks for `self.training`), and none carries forward hooks.
    """
    return all(
        (type(module) in _SAME_IN_BOTH_MODES or vars(type(module)).get("mode_free") is True)
        and not vars(module)["_forward_hooks"]
        and not vars(module)["_forward_pre_hooks"]
        for module in model.modules()
    )


@contextmanager
def looking(model: nn.Module, *, training: bool | None = False) -> Generator[None]:
    """Run `model` inside this block, and afterwards it is as it was before.

    Args:
        model: The unwrapped network.
        training: The mode inside the block: False for evaluation, None to keep each module's.
    """
    modes = [(module, module.training) for module in model.modules()]
    own: list[tuple[dict[str, Tensor | None], dict[str, Tensor | None]]] = []
    cuda = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    try:
        # It works on copies, so that a graph which holds the buffers stays valid.
        for module in model.modules():
            buffers: dict[str, Tensor | None] = vars(module)["_buffers"]
            if buffers:
                own.append((buffers, dict(buffers)))
                buffers.update({k: None if v is None else v.clone() for k, v in buffers.items()})
        if training is not None:
            model.train(training)
        with torch.random.fork_rng(devices=cuda):  # pyright: ignore[reportUnknownMemberType]
            yield
    finally:
        for buffers, before in own:
            buffers.clear()
            buffers.update(before)
        for module, mode in modes:
            module.training = mode


class Tap:
    """Catches what enters one layer during a forward: the hidden representation of -F methods."""

    def __init__(self, model: nn.Module, layer: str | None = None):
        """Choose the layer.

        Args:
            model: The unwrapped network.
            layer: A submodule's name, e.g. `"encoder.fc2"`; None for the last `nn.Linear` that a
                forward runs, wherever it is defined.
        """
        modules: dict[str, nn.Module] = dict(model.named_modules())  # pyright: ignore[reportUnknownArgumentType]
        if layer is None:
            self._modules = [module for module in modules.values() if isinstance(module, nn.Linear)]
            if not self._modules:
                raise UsageError(
                    "layer: the network has no nn.Linear; "
                    "name the layer whose input is the representation"
                )
        elif layer in modules:
            self._modules = [modules[layer]]
        else:
            raise UsageError(
                f"layer: the network has no submodule {layer!r}; "
                f"choose one of {', '.join(name for name in modules if name)}"
            )

    @contextmanager
    def listening(self) -> Generator["Caught"]:
        """Catch the layer's input of the last forward inside the block."""
        caught = Caught()

        def catch(_module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
            caught.value = positional[0] if positional else next(iter(named.values()))

        handles = [
            module.register_forward_pre_hook(catch, with_kwargs=True) for module in self._modules
        ]
        try:
            yield caught
        finally:
            for handle in handles:
                handle.remove()


class Caught:
    """What a `Tap` caught."""

    value: Tensor | None = None

    @property
    def hidden(self) -> Tensor:
        """The layer's last input, without gradient, flattened to (n, d)."""
        if self.value is None:
            raise UsageError("layer: the forward did not run this layer; name another one")
        return self.value.detach().flatten(1)


def run(model: Callable[..., ModelOutput], batch: Batch, tap: Tap | None = None) -> Outputs:
    """What `model` gives for a batch, and the hidden output if tapped; losses are left to others.

    In the mode that the model is in, with gradients if they are enabled.
    """
    positional, named = arguments(batch.inputs)
    if tap is None:
        return Outputs(model(*positional, **named), None)
    with tap.listening() as caught:
        values = model(*positional, **named)
    return Outputs(values, None, caught.hidden)


def outputs_in_pieces(
    network: nn.Module,
    rows: Rows,
    index: Tensor | None = None,
    *,
    tap: Tap | None = None,
    piece: int = PIECE,
) -> Iterator[tuple[Batch, Outputs]]:
    """Run a network over many rows, some at a time, in evaluation mode without gradient.

    Rows are read as the iteration goes on, and the network is as it was whenever a
    piece is handed out, also if the iteration is given up half way.

    Args:
        network: The unwrapped network.
        rows: The samples.
        index: Row numbers (b,), in the order wanted; all rows by default.
        tap: Where to catch a hidden output.
        piece: Rows per forward.

    Yields:
        Batches on the network's device, each with the outputs for it (without losses).
    """
    parameter = next(network.parameters(), None)
    for batch in in_pieces(rows, index, piece=piece):
        batch = batch if parameter is None else batch.to(parameter.device)
        with torch.no_grad(), looking(network):
            outputs = run(network, batch, tap)
        yield batch, outputs
