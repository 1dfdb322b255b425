"""ResNet-32 as the paper uses it.

He et al. 2016, Section 4.2 (CIFAR); Fang et al. 2020, Appendix A.1: 16, 32 and 64 channels, five
blocks each, batch norm after every convolution, dropout 0.3 at the end of every block.
"""

from typing import final

import torch.nn.functional as F  # noqa: N812 -- torch's own idiom
from torch import Tensor, nn


@final
class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters.

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
    """ResNet-32: 31 convolutions and one linear layer.

    Global average pooling takes images of any size.

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
