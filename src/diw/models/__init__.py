"""Networks by name: the paper's two, one for tables, and your own; initialised by the seed."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from diw.errors import UsageError
from diw.models.networks import MLP, LeNet5, ResNet32
from diw.seeding import derive

if TYPE_CHECKING:
    from diw.data import Bundle

__all__ = [
    "MLP",
    "MODELS",
    "LeNet5",
    "ResNet32",
    "default_model",
    "make_model",
]

MODELS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "lenet5": LeNet5,
    "resnet32": ResNet32,
    "mlp": MLP,
}
"""The networks that have a name."""

SMALL = 32 * 32
"""Images of at most this many numbers get LeNet-5, larger ones ResNet-32."""

SMALL_ON_CPU = 3 * 64 * 64
"""The same where a CPU trains it on the user's own data."""


def make_model(
    name: str, *, shape: tuple[int, ...], num_classes: int, seed: int | None = None
) -> nn.Module:
    """A network with random initial parameters.

    Args:
        name: `lenet5`, `resnet32`, `mlp`, `auto`, or `module:factory` for your own, which is
            called with `shape` and `num_classes` and returns an `nn.Module`.
        shape: The shape of one input.
        num_classes: The number of logits.
        seed: Determines the initial parameters and leaves torch's global random state alone; None
            draws from the global state as any `nn.Module` does.
    """
    factory = _find(auto_model(shape) if name == "auto" else name)
    if seed is None:
        return _build(factory, name, shape, num_classes)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, "init"))
        return _build(factory, name, shape, num_classes)


def auto_model(shape: tuple[int, ...], *, on_cpu: bool = False) -> str:
    """The default network for inputs of this shape: by kind, then by size.

    `on_cpu` asks for one that a CPU trains in minutes: ResNet-32 takes hours for ten thousand
    small colour images.
    """
    if len(shape) != 3:
        return "mlp"
    channels, height, width = shape
    largest = SMALL_ON_CPU if on_cpu else SMALL
    small = channels * height * width <= largest and min(height, width) >= 12
    return "lenet5" if small else "resnet32"


def default_model(bundle: "Bundle", *, on_cpu: bool = False) -> str:
    """The default network for a data set; `on_cpu` as in `auto_model`."""
    if bundle.kind == "table":
        return "mlp"
    return auto_model(bundle.train.shape, on_cpu=on_cpu)


def _build(factory: Any, name: str, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    if factory in (LeNet5, ResNet32) and len(shape) != 3:
        raise UsageError(f"model: {name} needs images, but inputs have shape {shape}; choose mlp")
    try:
        model = factory(shape=shape, num_classes=num_classes)
    except (ValueError, TypeError) as error:
        raise UsageError(f"model: {name} cannot take inputs of shape {shape}: {error}") from error
    if not isinstance(model, nn.Module):
        raise UsageError(f"model: {name} returned a {type(model).__name__}, expected an nn.Module")
    return model


def _find(name: str) -> Any:
    if name in MODELS:
        return MODELS[name]
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        known = ", ".join([*MODELS, "auto", "module:factory"])
        raise UsageError(f"model: unknown {name!r}; choose {known}")
    try:
        module = _import(module_name)
    except ImportError as error:
        raise UsageError(f"model: cannot import {module_name!r}: {error}") from None
    factory = getattr(module, attribute, None)
    if not callable(factory):
        raise UsageError(f"model: {module_name!r} has no callable {attribute!r}")
    return factory


def _import(module_name: str) -> Any:
    """The module, found also in the working directory: installed commands do not look there."""
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        return import_module(module_name)
    finally:
        if added:
            sys.path.remove(here)
