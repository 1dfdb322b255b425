"""Max-pooling by two that is fast where a network is only looked at."""

from typing import ClassVar, final

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


@final
class HalvingMaxPool(nn.Module):
    """`nn.MaxPool2d(2)`, bit for bit.

    PyTorch's pooling finds out where each maximum is, for a backward pass, even if there
    will be none. On a processor that takes ten times as long as the maxima
    themselves, and more than the convolution before it. Without gradients, as for the losses of
    the trusted samples in every mini-batch, this takes the larger of two rows, then of two columns.
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
