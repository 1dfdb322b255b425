"""Many small problems in one call: the per-class partitions of a mini-batch."""

from collections.abc import Sequence
from typing import Any

from diw.matching.match import Match
from diw.matching.options import BOUND, Backend, OnFailure, Options, Solver
from diw.matching.pipeline import match_all


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
    on_failure: OnFailure = "raise",
    solver: Solver = "diw",
    backend: Backend = "auto",
) -> list[Match]:
    """Match each training set to the trusted set at the same place; sizes may differ.

    Fang et al. 2020, Sec. 2: with hidden-layer outputs each class is matched alone. The
    options are those of `kmm` and hold for every problem; `gamma` and `slack`
    given as rules are worked out for each problem by itself. Small problems are solved side
    by side, which takes a fraction of the time of one after the other.

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
    options = Options(
        gamma, bound, slack, ridge, tol, None, max_iterations, on_failure, solver, backend
    )
    return match_all(list(zip(z_train, z_trusted, strict=True)), options)
