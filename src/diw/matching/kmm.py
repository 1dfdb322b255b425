"""Kernel mean matching: the one front door."""

import warnings
from typing import Any, Literal

from diw.errors import DIWWarning, MatchingError
from diw.matching.band import into_band
from diw.matching.certificate import certify
from diw.matching.dense import Dense
from diw.matching.form import form_of
from diw.matching.match import Match
from diw.matching.output import like
from diw.matching.problem import problem
from diw.matching.released import STATUS as RELEASED
from diw.matching.released import solve_released
from diw.matching.solve import solve

BOUND = 50.0


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
    on_failure: Literal["raise", "warn"] = "raise",
    solver: Literal["diw", "cvxopt"] = "diw",
    backend: Literal["auto", "numpy", "torch"] = "auto",
) -> Match:
    """Weights that make the training values' kernel mean match the trusted values'.

    Fang et al. 2020, Eq. (10), after Huang et al. 2007. Minimises
    ½wᵀ(K+ωI)w − kᵀw with K_ij = k(z_i, z_j) and
    k_i = (n/m) Σ_j k(z_i, z_j^trusted), over 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        gamma: The kernel's γ, or the name of a rule of `diw.kernels`. The default is
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
    if on_failure not in ("raise", "warn"):
        raise ValueError(f"on_failure: must be 'raise' or 'warn', not {on_failure!r}")
    if not tol > 0:
        raise ValueError(f"tol: must be positive, not {tol}")
    if rank is not None and rank < 1:
        raise ValueError(f"rank: must be at least 1, not {rank}")
    if max_iterations < 1:
        raise ValueError(f"max_iterations: must be at least 1, not {max_iterations}")
    if solver not in ("diw", "cvxopt"):
        raise ValueError(f"solver: must be 'diw' or 'cvxopt', not {solver!r}")
    task = problem(
        z_train, z_trusted, gamma=gamma, bound=bound, slack=slack, ridge=ridge, backend=backend
    )
    if solver == "cvxopt":
        weights, numbers, iterations, status = solve_released(task)
        weights, full_rank = into_band(task, weights), task.n
        solved = status == RELEASED
    else:
        form = form_of(task, rank)
        found = solve(task, form, max_iterations=max_iterations)
        weights, iterations, full_rank = into_band(task, found.weights), found.iterations, form.rank
        numbers = certify(task, form, found, weights)
        solved = max(numbers.dual_residual, numbers.complementarity) <= tol
        status = "optimal" if isinstance(form, Dense) or not form.capped else "approximate"
        if not solved:
            status = f"not solved to tol={tol:g} in {iterations} iterations"
    match = Match(
        weights=like(z_train, weights, bound),
        status=status,
        iterations=iterations,
        gamma=task.given_gamma,
        rank=full_rank,
        **vars(numbers),
    )
    if not solved:
        message = f"kernel mean matching: {match.explanation()}"
        if on_failure == "raise":
            raise MatchingError(message)
        warnings.warn(message, DIWWarning, stacklevel=2)
    return match
