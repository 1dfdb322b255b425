"""The authors' way to solve the problem: cvxopt at its default tolerance.

Only to reproduce and to compare: on real mini-batches it stops where weights are
still up to 4 away from the optimum. cvxopt is GPL, so it is an extra of its own.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from diw.errors import MatchingError
from diw.matching.certificate import Certificate
from diw.matching.kernel import gaussian, to_numpy
from diw.matching.problem import Problem

STATUS = "optimal to cvxopt's default tolerance"


@cache
def _constraints(n: int) -> tuple[list[float], list[int], list[int]]:
    """Entries, rows and columns of G: Σw ≤ high, −Σw ≤ −low, w ≤ B, −w ≤ 0.

    The example has all of G, zeros included, which gives the same steps at twice the cost.
    """
    each = list(range(n))
    entries = [1.0] * n + [-1.0] * n + [1.0] * n + [-1.0] * n
    rows = [0] * n + [1] * n + [2 + i for i in each] + [2 + n + i for i in each]
    return entries, rows, each * 4


def solve_released(problem: Problem) -> tuple[Any, Certificate, int, str]:
    """Solve with `cvxopt.solvers.qp` on the full kernel matrix.

    Returns the weights, clipped to [0, B], what is known about them, the
    iterations and the status. The error bound comes from the duality gap:
    ½ω‖w − w*‖² ≤ gap.
    """
    try:
        from cvxopt import matrix, solvers, spmatrix
    except ModuleNotFoundError as error:
        raise ValueError("solver: 'cvxopt' needs cvxopt, pip install 'diw[released]'") from error
    n, bound, ridge = problem.n, problem.bound, problem.ridge
    z = to_numpy(problem.z)
    z = z[:, None] if z.ndim == 1 else z
    K: Any = gaussian(z[:n], z[:n], problem.gamma) + ridge * np.eye(n)
    k: Any = gaussian(z[:n], z[n:], problem.gamma).sum(1) * (n / (len(z) - n))
    G = spmatrix(*_constraints(n))
    h = np.concatenate([[problem.high, -problem.low], np.full(n, bound), np.zeros(n)])
    try:
        answer: Any = solvers.qp(
            matrix(K), matrix(-k), G, matrix(h), options={"show_progress": False}
        )
    except (ArithmeticError, ValueError) as error:
        raise MatchingError(f"kernel mean matching: cvxopt failed: {error}") from error
    w = np.clip(np.array(answer["x"])[:, 0], 0.0, bound)
    above, below, at_bound, at_zero = np.split(np.array(answer["z"])[:, 0], [1, 2, 2 + n])
    pull = K @ w
    objective = float(0.5 * (w @ pull) - k @ w)
    scale = max(float(np.abs(k).max()), float(np.abs(pull).max()), min(1.0, bound))
    mean = float(w.mean())
    gap = float(answer["gap"])
    numbers = Certificate(
        objective=objective,
        primal_residual=max(0.0, abs(mean - 1.0) - problem.slack),
        dual_residual=float(np.abs(pull - k + above - below + at_bound - at_zero).max()) / scale,
        complementarity=gap / max(abs(objective), scale),
        trace_error=0.0,
        error_bound=math.sqrt(2.0 * max(gap, 0.0) / ridge),
    )
    status = STATUS if answer["status"] == "optimal" else f"cvxopt: {answer['status']}"
    return problem.xp.array(w), numbers, int(answer["iterations"]), status
