"""The authors' way to solve the problem: cvxopt at its default tolerance.

Only to reproduce and to compare: on real mini-batches it stops where weights are
still up to 4 away from the optimum. cvxopt is GPL, so it is an extra of its own.
"""

import math
from typing import Any

import numpy as np

from diw.errors import MatchingError
from diw.kernels import gaussian, to_numpy
from diw.matching.certificate import Certificate
from diw.matching.problem import Problem

STATUS = "optimal to cvxopt's default tolerance"


def solve_released(problem: Problem) -> tuple[Any, Certificate, int, str]:
    """Solve with `cvxopt.solvers.qp` on the full kernel matrix.

    Returns the weights, clipped to [0, B], what is known about them, the
    iterations and the status. The error bound comes from the duality gap:
    ½ω‖w − w*‖² ≤ gap.
    """
    try:
        from cvxopt import matrix, solvers
    except ModuleNotFoundError as error:
        raise ValueError("solver: 'cvxopt' needs cvxopt, pip install 'diw[released]'") from error
    n, bound, ridge = problem.n, problem.bound, problem.ridge
    z = to_numpy(problem.z)
    z = z[:, None] if z.ndim == 1 else z
    K: Any = gaussian(z[:n], z[:n], problem.gamma) + ridge * np.eye(n)
    k: Any = gaussian(z[:n], z[n:], problem.gamma).sum(1) * (n / (len(z) - n))
    ones, eye = np.ones((1, n)), np.eye(n)
    G = np.concatenate([ones, -ones, eye, -eye])
    h = np.concatenate([[problem.high, -problem.low], np.full(n, bound), np.zeros(n)])
    try:
        answer: Any = solvers.qp(
            matrix(K), matrix(-k), matrix(G), matrix(h), options={"show_progress": False}
        )
    except (ArithmeticError, ValueError) as error:
        raise MatchingError(f"kernel mean matching: cvxopt failed: {error}") from error
    w = np.clip(np.array(answer["x"])[:, 0], 0.0, bound)
    multipliers = np.array(answer["z"])[:, 0]
    pull = K @ w
    objective = float(0.5 * (w @ pull) - k @ w)
    scale = max(float(np.abs(k).max()), float(np.abs(pull).max()), min(1.0, bound))
    mean = float(w.mean())
    gap = float(answer["gap"])
    numbers = Certificate(
        objective=objective,
        primal_residual=max(0.0, abs(mean - 1.0) - problem.slack),
        dual_residual=float(np.abs(pull - k + multipliers @ G).max()) / scale,
        complementarity=gap / max(abs(objective), scale),
        trace_error=0.0,
        error_bound=math.sqrt(2.0 * max(gap, 0.0) / ridge),
    )
    status = STATUS if answer["status"] == "optimal" else f"cvxopt: {answer['status']}"
    return problem.xp.array(w), numbers, int(answer["iterations"]), status
