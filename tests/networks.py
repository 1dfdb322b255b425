"""Small networks and data for tests: quick, but with everything that can leave a trace."""

import torch
from torch import Tensor, nn


def plain_network(dtype: torch.dtype = torch.float32, classes: int = 3) -> nn.Sequential:
    """One forward serves training and evaluation."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, classes)).to(dtype)


def noisy_network(dtype: torch.dtype = torch.float32, classes: int = 3) -> nn.Sequential:
    """Batch norm and dropout: modes, buffers and random numbers matter."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5)]
        return nn.Sequential(*layers, nn.Linear(8, classes)).to(dtype)


def samples(
    n: int, seed: int = 0, dtype: torch.dtype = torch.float32, classes: int = 3
) -> tuple[Tensor, Tensor]:
    """Inputs (n, 4) and labels (n,) that can be learned: where the largest input is."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, 4, generator=generator, dtype=torch.float64).to(dtype)
    return inputs, inputs[:, :classes].argmax(1)
