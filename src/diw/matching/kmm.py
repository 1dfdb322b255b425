"""Kernel mean matching: the one front door."""

import math
import warnings
from typing import Any, Literal

import numpy as np

from diw import kernels
from diw.errors import DIWWarning, MatchingError
from diw.kernels import Floats
from diw.matching.factor import pivoted_cholesky
from diw.matching.match import Match
from diw.matching.newton import solve

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
    max_iterations: int = 200,
    on_failure: Literal["raise", "warn"] = "raise",
) -> Match:
    """Weights that make the training values' kernel mean match the trusted values'.

    Fang et al. 2020, Eq. (4); Huang et al. 2007. Minimises ½wᵀ(K+ωI)w − kᵀw
    with K_ij = k(z_i, z_j) and k_i = (n/m) Σ_j k(z_i, z_j^trusted), over
    0 ≤ w ≤ B and |mean(w) − 1| ≤ ε.

    Args:
        z_train: (n,) or (n, d) training values, a NumPy array or a tensor.
        z_trusted: (m,) or (m, d) trusted values.
        gamma: The kernel's γ, or the name of a rule of `diw.kernels`; the default is
            the paper's 1% quantile for (n,) and the median heuristic for (n, d).
        bound: B, the largest weight allowed.
        slack: ε; the default is (√n − 1)/√n.
        ridge: ω.
        tol: Largest relative residual that counts as solved.
        max_iterations: Newton steps before giving up.
        on_failure: What to do when `tol` is not reached: raise `MatchingError`, or warn.
    """
    train, trusted = _values("z_train", z_train), _values("z_trusted", z_trusted)
    if train.ndim != trusted.ndim or train.shape[1:] != trusted.shape[1:]:
        raise ValueError(
            f"z_trusted: rows of shape {trusted.shape[1:]} do not match z_train's {train.shape[1:]}"
        )
    n = len(train)
    epsilon = (math.sqrt(n) - 1) / math.sqrt(n) if slack is None else float(slack)
    _check(bound, epsilon, ridge, on_failure)
    z, unit = _normalised(np.concatenate([train, trusted]))
    scaled, chosen = _gamma(gamma, z[:n], unit)
    tolerance = min(max(1e-8 * ridge, 1e-14), 1e-11)
    factor = pivoted_cholesky(z, n, scaled, tolerance=tolerance, max_rank=n + len(trusted))
    V, b = factor.V, factor.b
    solution = solve(V, b, ridge, bound, max_iterations=max_iterations)
    iterations = solution.iterations
    low, high = n * (1 - epsilon), n * (1 + epsilon)
    sum_ = float(solution.weights.sum())
    if not low <= sum_ <= high:
        total = low if sum_ < low else high
        solution = solve(V, b, ridge, bound, total=total, max_iterations=max_iterations)
        iterations += solution.iterations
    w = _into_band(solution.weights, low, high, bound)
    a = V @ w
    k = b @ V
    residual = solution.residual[: len(V)] @ V
    objective = float(0.5 * (a @ a) - b @ a + 0.5 * ridge * (w @ w))
    largest = max(float(k.max(initial=0.0)), 1e-300)
    mean = float(w.mean())
    off = min(abs(w.sum() - low), abs(w.sum() - high))
    trace = float(factor.left.sum())
    spread = float(np.sqrt(factor.left) @ w) + n * float(np.sqrt(factor.left_trusted).mean())
    rounding = 2.3e-16 * math.sqrt(n) * largest * 8
    error = float(np.linalg.norm(residual)) + math.sqrt(trace) * spread + rounding
    dual = float(np.abs(residual).max(initial=0.0)) / largest
    status = "optimal"
    if not dual <= tol:
        status = (
            f"not solved to tol={tol:g} after {iterations} iterations: dual residual {dual:.1e}"
        )
    match = Match(
        weights=_like(w, z_train, bound),
        status=status,
        iterations=iterations,
        objective=objective,
        primal_residual=max(0.0, abs(mean - 1) - epsilon, -float(w.min()), float(w.max()) - bound),
        dual_residual=dual,
        complementarity=abs(solution.multiplier) * off / max(abs(objective), 1e-300),
        gamma=chosen,
        rank=len(V),
        trace_error=trace / n,
        error_bound=error / ridge,
    )
    if status != "optimal":
        if on_failure == "raise":
            raise MatchingError(f"kernel mean matching: {status}")
        warnings.warn(f"kernel mean matching: {status}", DIWWarning, stacklevel=2)
    return match


def _values(name: str, z: Any) -> Floats:
    if hasattr(z, "detach"):
        z = z.detach().cpu().numpy()
    array = np.asarray(z, dtype=np.float64)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"{name}: needs shape (n,) or (n, d) with at least one value, not {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: holds NaN or infinite values")
    return array


def _check(bound: float, epsilon: float, ridge: float, on_failure: str) -> None:
    if not bound > 0 or math.isinf(bound):
        raise ValueError(f"bound: must be positive and finite, not {bound}")
    if not epsilon >= 0:
        raise ValueError(f"slack: must not be negative, not {epsilon}")
    if bound < 1 - epsilon:
        raise ValueError(
            f"bound: {bound} is below 1 - slack = {1 - epsilon:g}: no weights can reach that mean"
        )
    if not ridge > 0 or math.isinf(ridge):
        raise ValueError(f"ridge: must be positive and finite, not {ridge}")
    if on_failure not in ("raise", "warn"):
        raise ValueError(f"on_failure: must be 'raise' or 'warn', not {on_failure!r}")


def _normalised(z: Floats) -> tuple[Floats, float]:
    """Centre and scale by a power of two, so that no square overflows or vanishes."""
    low, high = z.min(axis=0), z.max(axis=0)
    z = z - (0.5 * low + 0.5 * high)
    size = float(np.abs(z).max())
    if size == 0:
        return z, 1.0
    unit = 2.0 ** math.frexp(size)[1] if size < 8e307 else 2.0**1023
    return z / unit, unit


def _gamma(gamma: float | str | None, z: Floats, unit: float) -> tuple[float, float]:
    """γ for the normalised values and for the given ones."""
    if gamma is None:
        gamma = kernels.LOSS_RULE if z.ndim == 1 else kernels.FEATURE_RULE
    if not isinstance(gamma, str):
        if not gamma > 0 or math.isinf(gamma):
            raise ValueError(f"gamma: must be positive and finite, not {gamma}")
        return min(float(gamma) * unit * unit, 1e300), float(gamma)
    value = kernels.width(z, gamma)
    if gamma.startswith("quantile"):  # the distance itself is γ
        return min(value * unit * unit * unit, 1e300), value * unit
    return min(value, 1e300), min(value / unit / unit, 1.7e308)


def _into_band(w: Floats, low: float, high: float, bound: float) -> Floats:
    """Move the free weights by the rounding error that keeps their sum out of the band."""
    for _ in range(4):
        total = float(w.sum())
        if low <= total <= high:
            return w
        free = (w > 0) & (w < bound)
        if total > high:
            w = (
                np.where(
                    free,
                    w
                    * max(
                        0.0, 1 - (total - high) * (1 + 1e-15) / max(float(w[free].sum()), 1e-300)
                    ),
                    w,
                )
                if free.any()
                else w * (high / total)
            )
        else:
            room = np.where(free, bound - w, 0.0) if free.any() else bound - w
            w = np.minimum(
                w + room * min(1.0, (low - total) / max(float(room.sum()), 1e-300)), bound
            )
    return w


def _like(w: Floats, z: Any, bound: float) -> Any:
    """The weights as the kind, precision and device of `z`; float32 never rounds up past B."""
    if not hasattr(z, "detach"):
        wanted = np.asarray(z).dtype
        if wanted == np.float32:
            w = np.minimum(w.astype(np.float32), _float32_below(bound))
        return w
    import torch

    if z.dtype != torch.float64:
        w = np.minimum(w.astype(np.float32), _float32_below(bound))
    return torch.from_numpy(w).to(z.device)


def _float32_below(bound: float) -> np.float32:
    value = np.float32(bound)
    return value if value <= bound else np.nextafter(value, np.float32(0))
