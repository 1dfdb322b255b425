"""Pooling is PyTorch's, whoever looks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import forward_ad

from diw.models.pooling import HalvingMaxPool

POOL = HalvingMaxPool()
PYTORCHS = nn.MaxPool2d(2)


def images(seed: int, *shape: int) -> Tensor:
    """Images with many equal values, as behind a background, and a few that are not numbers."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator).round(decimals=1).clamp(min=-0.5)
    values[torch.rand(shape, generator=generator) < 0.01] = float("nan")
    return values


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 9), st.integers(2, 9))
def test_the_maxima_are_pytorchs_bit_for_bit(
    seed: int, channels: int, height: int, width: int
) -> None:
    batch = images(seed, 4, channels, height, width)
    for given_as in (batch, batch.contiguous(memory_format=torch.channels_last), batch[0]):
        with torch.no_grad():
            pooled = POOL(given_as)
        torch.testing.assert_close(pooled, PYTORCHS(given_as), rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(POOL(given_as), pooled, rtol=0, atol=0, equal_nan=True)


def test_gradients_are_pytorchs() -> None:
    batch = images(0, 8, 3, 10, 10).nan_to_num()
    of_ours, of_theirs = (batch.clone().requires_grad_() for _ in range(2))
    POOL(of_ours).square().sum().backward()
    PYTORCHS(of_theirs).square().sum().backward()
    torch.testing.assert_close(of_ours.grad, of_theirs.grad, rtol=0, atol=0)


@pytest.mark.parametrize("enabled", [False, True])
def test_forward_mode_derivatives_are_pytorchs(enabled: bool) -> None:
    batch, direction = images(1, 8, 3, 10, 10).nan_to_num(), torch.randn(8, 3, 10, 10)
    with torch.set_grad_enabled(enabled), forward_ad.dual_level():
        dual = forward_ad.make_dual(batch, direction)
        ours, theirs = (forward_ad.unpack_dual(pool(dual)).tangent for pool in (POOL, PYTORCHS))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
