"""Networks by name: the paper's two, one for tables, and your own; initialised by the seed.

Each ends in a linear layer `classifier` over `features`, which is what
hidden-output methods tap. LeNet-5 and ResNet-32 are as in Fang et al. 2020, Appendix A.1.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import torch
import torch.nn.functional as F  # noqa: N812 -- torch's own idiom
from torch import Tensor, nn
from torch.autograd import forward_ad

from diw.errors import UsageError
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


@final
class HalvingMaxPool(nn.Module):
    """`nn.MaxPool2d(2)`, bit for bit, and faster without gradients.

    PyTorch's pooling records where each maximum is, for a backward pass, even if there is none. On
    a CPU that takes ten times as long as the maxima themselves, and longer than the convolution
    before it. Without gradients, as for the losses of the trusted samples in every mini-batch, this
    takes the larger of two rows, then of two columns.
    """

    mode_free: ClassVar[bool] = True

    def forward(self, images: Tensor) -> Tensor:
        """Maxima (…, h // 2, w // 2) of images (…, h, w), each of two rows and two columns."""
        if torch.is_grad_enabled() or _is_dual(images) or images.device.type != "cpu":
            return nn.functional.max_pool2d(images, 2)
        height, width = images.shape[-2] // 2 * 2, images.shape[-1] // 2 * 2
        rows = torch.maximum(images[..., 0:height:2, :width], images[..., 1:height:2, :width])
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def _is_dual(tensor: Tensor) -> bool:
    """Whether forward-mode derivatives are being taken, which need no gradients enabled."""
    return forward_ad.unpack_dual(tensor).tangent is not None


@final
class LeNet5(nn.Module):
    """LeNet-5 for small images (LeCun et al. 1998).

    C(5x5, 6) - pool - C(5x5, 16) - pool - 120 - 84 - k with ReLU and max-pooling. Padding 2 in
    the first convolution is the same as padding the image itself to 32 x 32, without a copy. ReLU
    comes after pooling, which is the same function (both are monotone) on a quarter of the values.
    Tensors may come in `channels_last` format.

    Args:
        shape: (channels, height, width), at least 12 x 12.
        num_classes: k, the width of the output.
    """

    mode_free: ClassVar[bool] = True
    """Training and evaluation are the same arithmetic, so one forward serves both."""

    def __init__(self, shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        channels, height, width = shape
        # 28 x 28 images are padded to 32 x 32, the size LeNet-5 was made for; 32 x 32 are not.
        pad = 2 if min(height, width) < 32 else 0
        rows, columns = (((size + 2 * pad - 4) // 2 - 4) // 2 for size in (height, width))
        if rows < 1 or columns < 1:
            raise ValueError(f"shape: LeNet-5 needs images of at least 12 x 12, got {shape}")
        self.features = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=pad),
            HalvingMaxPool(),
            nn.ReLU(),
            nn.Conv2d(6, 16, 5),
            HalvingMaxPool(),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * rows * columns, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(84, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (b, num_classes) of images (b, channels, height, width)."""
        return self.classifier(self.features(inputs))


@final
class Block(nn.Module):
    """A block of ResNet-32: two 3x3 convolutions and a shortcut without parameters.

    Where the block narrows the image, the shortcut takes every second pixel and
    fills the new channels with zeros (He et al.'s option A).
    """

    def __init__(self, channels_in: int, channels: int, dropout: float) -> None:
        super().__init__()
        self.stride = 1 if channels_in == channels else 2
        self.new_channels = channels - channels_in
        self.conv1 = nn.Conv2d(channels_in, channels, 3, self.stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        """(b, channels_in, h, w) to (b, channels, h / stride, w / stride)."""
        shortcut = inputs
        if self.stride != 1 or self.new_channels:
            shortcut = inputs[:, :, :: self.stride, :: self.stride]
            shortcut = F.pad(shortcut, (0, 0, 0, 0, 0, self.new_channels))
        hidden = F.relu(self.norm1(self.conv1(inputs)))
        hidden = self.norm2(self.conv2(hidden))
        return self.dropout(F.relu(hidden + shortcut))


@final
class ResNet32(nn.Module):
    """ResNet-32 (He et al. 2016, Section 4.2): 31 convolutions and one linear layer.

    16, 32 and 64 channels, five blocks each, batch norm after every convolution, dropout 0.3 at the
    end of every block. Global average pooling takes images of any size.

    Args:
        shape: (channels, height, width).
        num_classes: k, the width of the output.
        dropout: Applied at the end of each block.
    """

    def __init__(self, shape: tuple[int, ...], num_classes: int, dropout: float = 0.3) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(shape[0], 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        ]
        before = 16
        for channels in (16, 32, 64):
            for _ in range(5):
                layers.append(Block(before, channels, dropout))
                before = channels
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(before, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (b, num_classes) of images (b, channels, height, width)."""
        return self.classifier(self.features(inputs))


@final
class MLP(nn.Module):
    """A multilayer perceptron, the default for tables: ReLU layers over the flattened input.

    Args:
        shape: The shape of one input.
        num_classes: k, the width of the output.
        hidden: The widths of the hidden layers.
    """

    mode_free: ClassVar[bool] = True
    """Training and evaluation are the same arithmetic, so one forward serves both."""

    def __init__(
        self, shape: tuple[int, ...], num_classes: int, hidden: tuple[int, ...] = (128, 128)
    ) -> None:
        super().__init__()
        widths = (prod(shape), *hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(widths[-1], num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (b, num_classes) of inputs (b, *shape)."""
        return self.classifier(self.features(inputs))


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
