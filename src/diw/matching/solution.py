"""What a solver gives."""

from dataclasses import dataclass

from diw.matching.backend import Array


@dataclass(frozen=True)
class Solution:
    """Weights in [0, B], and how far they are from solving the problem."""

    weights: Array
    """(n,)"""
    residual: Array
    """(n,) δ: the weights solve the problem exactly with k + δ instead of k."""
    multiplier: float
    """λ of the sum of the weights; 0 where the band does not bind."""
    iterations: int
    done: bool
    """Whether the free weights settled."""
