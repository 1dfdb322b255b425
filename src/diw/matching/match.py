"""`Match`: weights with everything needed to judge them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Match:
    """The outcome of a matching problem; residuals are of the problem in float64.

    Residuals are relative: the dual one to the largest entry of k, the
    complementarity to the objective.
    """

    weights: Any
    """(n,) the weights, of the kind and on the device of the training values."""
    status: str
    """`"optimal"`, `"approximate"`, or why there is no solution to the tolerance."""
    iterations: int
    """Steps of the solver."""
    objective: float
    """½wᵀ(K+ωI)w − kᵀw."""
    primal_residual: float
    """Largest violation of 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε."""
    dual_residual: float
    """max|(K+ωI)w − k + multipliers| / max(k)."""
    complementarity: float
    """Largest product of a multiplier and the distance to its bound, over |objective|."""
    gamma: float
    """The kernel's γ."""
    rank: int
    """Rank of the factor of K that was used."""
    trace_error: float
    """trace(K − VᵀV)/n: the share of the kernel the factor leaves out."""
    error_bound: float
    """A bound on ‖w − w*‖₂: by strong convexity residual/ω, the factor's error included."""

    def is_optimal(self, tol: float = 1e-8) -> bool:
        """Whether every residual is at most `tol`."""
        return max(self.primal_residual, self.dual_residual, self.complementarity) <= tol
