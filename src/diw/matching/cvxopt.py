"""The solver of the authors' released example: cvxopt at its default tolerance.

It is there to reproduce and to compare: on real mini-batches it stops where weights are
still up to 4 away from the optimum. cvxopt is GPL, so it is an extra of its own.
"""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from diw.errors import MatchingError
from diw.matching.backend import to_numpy
from diw.matching.gram import Dense
from diw.matching.match import Solution
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


def solve_by_cvxopt(problem: Problem, gram: Dense) -> Solution:
    """Solve with `cvxopt.solvers.qp` on the full kernel matrix; weights are clipped to [0, B]."""
    try:
        cvxopt: Any = import_module("cvxopt")
    except ModuleNotFoundError as error:
        raise ValueError("solver: 'cvxopt' needs cvxopt, pip install 'diw[released]'") from error
    matrix, n, bound = cvxopt.matrix, problem.n, problem.bound
    K, k = to_numpy(gram.K) + problem.ridge * np.eye(n), to_numpy(gram.k)
    h = np.concatenate([[problem.high, -problem.low], np.full(n, bound), np.zeros(n)])
    arguments = (matrix(K), matrix(-k), cvxopt.spmatrix(*_constraints(n)), matrix(h))
    try:
        answer: Any = cvxopt.solvers.qp(*arguments, options={"show_progress": False})
    except (ArithmeticError, ValueError) as error:
        raise MatchingError(f"kernel mean matching: cvxopt failed: {error}") from error
    w = np.clip(np.array(answer["x"])[:, 0], 0.0, bound)
    above, below, at_bound, at_zero = np.split(np.array(answer["z"])[:, 0], [1, 2, 2 + n])
    solved = answer["status"] == "optimal"
    return Solution(
        weights=problem.xp.array(w),
        residual=problem.xp.array(K @ w - k + above - below + at_bound - at_zero),
        multiplier=0.0,
        iterations=int(answer["iterations"]),
        gap=max(float(answer["gap"]), 0.0),
        status=STATUS if solved else f"cvxopt: {answer['status']}",
        solved=solved,
    )
