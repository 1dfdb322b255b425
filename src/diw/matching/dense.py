"""The kernel matrix itself, for problems that are small or whose kernel has full rank."""

from dataclasses import dataclass

from diw.matching.backend import Array
from diw.matching.kernel import gaussian
from diw.matching.problem import Problem

DENSE_ROWS = 8192  # up to this size an n × n matrix is worth its memory

_BLOCK = 1 << 22  # kernel values a temporary may hold


@dataclass(frozen=True)
class Dense:
    """K and k, with every kernel value."""

    K: Array
    """(n, n)"""
    pull: Array
    """(n,) k"""

    capped = False

    @property
    def rank(self) -> int:
        """n: nothing is left out."""
        return len(self.pull)

    def apply(self, w: Array) -> Array:
        """(n,) Kw."""
        return self.K @ w


def dense(problem: Problem) -> Dense:
    """K of shape (n, n) and k_i = (n/m) Σ_j k(z_i, z_j^trusted)."""
    n, gamma = problem.n, problem.gamma
    z = problem.z[:, None] if problem.z.ndim == 1 else problem.z
    train, ratio = z[:n], n / (len(z) - n)
    if n * len(z) <= _BLOCK:
        both = gaussian(train, z, gamma)
        return Dense(both[:, :n], both[:, n:].sum(1) * ratio)
    k = problem.xp.full(n, 0.0)
    step = max(1, _BLOCK // n)
    for start in range(n, len(z), step):
        k += gaussian(train, z[start : start + step], gamma).sum(1)
    return Dense(gaussian(train, train, gamma), k * ratio)
