"""Many small problems in one call: the per-class partitions of a mini-batch."""

from collections.abc import Sequence
from typing import Any, Literal

from diw.matching.kmm import BOUND, kmm
from diw.matching.match import Match


def kmm_batch(
    z_train: Sequence[Any],
    z_trusted: Sequence[Any],
    *,
    gamma: float | str | None = None,
    bound: float = BOUND,
    slack: float | None = None,
    ridge: float = 1e-5,
    tol: float = 1e-8,
    max_iterations: int = 200,
    on_failure: Literal["raise", "warn"] = "raise",
    solver: Literal["diw", "cvxopt"] = "diw",
    backend: Literal["auto", "numpy", "torch"] = "auto",
) -> list[Match]:
    """Match each training set to the trusted set at the same place; sizes may differ.

    Fang et al. 2020, Sec. 2: with hidden-layer outputs each class is matched alone. The
    options are those of `kmm` and hold for every problem; `gamma` and `slack`
    given as rules are worked out for each problem by itself.

    Args:
        z_train: Training values, one (n_c,) or (n_c, d) array or tensor for each problem.
        z_trusted: As many arrays of trusted values.
        gamma: See `kmm`, as for all that follow.
        bound: B.
        slack: ε.
        ridge: ω.
        tol: The largest relative residual that counts as solved.
        max_iterations: Steps of either solver before it gives up.
        on_failure: `"raise"` or `"warn"`.
        solver: `"diw"` or `"cvxopt"`.
        backend: `"auto"`, `"numpy"` or `"torch"`.

    Raises:
        ValueError: The two sequences differ in length, or an argument of `kmm` cannot work.
    """
    if len(z_train) != len(z_trusted):
        raise ValueError(
            f"z_trusted: {len(z_trusted)} sets do not match the {len(z_train)} of z_train"
        )
    return [
        kmm(
            train, trusted, gamma=gamma, bound=bound, slack=slack, ridge=ridge, tol=tol,
            max_iterations=max_iterations, on_failure=on_failure, solver=solver, backend=backend,
        )
        for train, trusted in zip(z_train, z_trusted, strict=True)
    ]  # fmt: skip
