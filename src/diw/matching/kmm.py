"""Kernel mean matching: the one front door."""

from typing import Any

from diw.matching.match import Match
from diw.matching.options import BOUND, Backend, OnFailure, Options, Solver
from diw.matching.pipeline import match_all


def kmm(
    z_train: Any,
    z_trusted: Any,
    *,
    gamma: float | str | None = None,
    bound: float = BOUND,
    slack: float | None = None,
    ridge: float = 1e-5,
    tol: float = 1e-8,
    rank: int | None = None,
    max_iterations: int = 200,
    on_failure: OnFailure = "raise",
    solver: Solver = "diw",
    backend: Backend = "auto",
) -> Match:
    """Weights that make the training values' kernel mean match the trusted values'.

    Fang et al. 2020, Eq. (10), after Huang et al. 2007. Minimises
    ½wᵀ(K+ωI)w − kᵀw with K_ij = k(z_i, z_j) and
    k_i = (n/m) Σ_j k(z_i, z_j^trusted), over 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        gamma: The kernel's γ, or the name of a rule of `diw.matching.kernel`. The default is
            the paper's 1% quantile for (n,) values and the median heuristic for (n, d).
        bound: B, the largest weight allowed; 50 is the paper's for label noise.
        slack: ε; the default is (√n − 1)/√n.
        ridge: ω.
        tol: The largest relative residual that counts as solved.
        rank: The largest rank of the kernel's factor. By default there is none up to
            8,192 samples; beyond it is 100 for (n, d) values and up to 512 for (n,). A cap
            that cuts the kernel short makes the status `"approximate"`.
        max_iterations: Steps of either solver before it gives up.
        on_failure: What to do when `tol` is not reached: raise `MatchingError`, or
            warn and return the feasible weights found.
        solver: `"cvxopt"` is the authors' way, at its default tolerance (extra `released`).
        backend: Where to compute: `"auto"` is NumPy for arrays and CPU tensors, and
            torch on the tensor's own device for the rest.

    Returns:
        A `Match`; its weights have the kind, device and precision of `z_train`
        (half precisions become float32, whole numbers float64).

    Raises:
        ValueError: An argument cannot work; the message names it.
        MatchingError: The problem was not solved to `tol`; the message has the residuals.
    """
    options = Options(
        gamma, bound, slack, ridge, tol, rank, max_iterations, on_failure, solver, backend
    )
    return match_all([(z_train, z_trusted)], options)[0]
