"""`Match`: weights with everything needed to judge them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Match:
    """The outcome of a matching problem: minimise ½wᵀ(K+ωI)w − kᵀw, 0 ≤ w ≤ B, |mean(w) − 1| ≤ ε.

    The numbers are those of the float64 solution, whatever the precision of
    `weights`. With multipliers λ of the mean, s ≥ 0 of w ≥ 0 and t ≥ 0 of w ≤ B:
    """

    weights: Any
    """(n,) the weights, of the kind, precision and device of the training values."""
    status: str
    """`"optimal"`; `"approximate"` when the kernel was cut at a rank cap; else what went wrong."""
    iterations: int
    """Steps of the solvers."""
    gamma: float
    """The kernel's γ; 0 when all training values are equal and a rule had to find it."""
    rank: int
    """Rank of the kernel's factor."""
    objective: float
    """½wᵀ(K+ωI)w − kᵀw."""
    primal_residual: float
    """Largest violation of 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε."""
    dual_residual: float
    """max|(K+ωI)w − k + λ − s + t| / max(|Kw|, |k|, min(1, B))."""
    complementarity: float
    """|λ|·(distance of Σw to the end of its band)/|objective|; s·w and t·(B − w) are 0."""
    trace_error: float
    """trace(K − VᵀV)/n, what the factor leaves out of the kernel: between 0 and 1."""
    error_bound: float
    """A bound on ‖w − w*‖₂: residual/ω by strong convexity, the factor's error included."""

    def is_optimal(self, tol: float = 1e-8) -> bool:
        """Whether every residual is at most `tol` and nothing was cut from the kernel."""
        worst = max(self.primal_residual, self.dual_residual, self.complementarity)
        return worst <= tol and self.status != "approximate"

    def explanation(self) -> str:
        """The status with the residuals, in one line."""
        return (
            f"{self.status} (residuals: primal {self.primal_residual:.1e}, "
            f"dual {self.dual_residual:.1e}, complementarity {self.complementarity:.1e}; "
            f"rank {self.rank}, gamma {self.gamma:g})"
        )
