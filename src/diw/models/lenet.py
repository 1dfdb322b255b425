"""LeNet-5 as the paper uses it.

LeCun et al. 1998; Fang et al. 2020, Appendix A.1: C(5x5, 6) - pool - C(5x5, 16) - pool - 120 -
84 - k with ReLU and max-pooling.
"""

from typing import ClassVar, final

from torch import Tensor, nn

from diw.models.pooling import HalvingMaxPool


@final
class LeNet5(nn.Module):
    """LeNet-5 for small images.

    Padding 2 in the first convolution is the same as padding the image itself
    to 32 x 32, and spares a copy. ReLU comes after pooling, which is the same
    function (both keep the order) on a quarter of the values. Tensors may come in
    `channels_last` format.

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
