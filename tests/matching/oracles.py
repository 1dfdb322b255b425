"""Independent solutions of the matching problem: exact kernel values, other solvers."""

import warnings
from dataclasses import dataclass

import numpy as np
import qpsolvers
from scipy.spatial.distance import cdist

ORACLES = ("daqp", "piqp", "highs", "cvxopt")
"""In this order: the fastest first, the next where one gives up."""

SETTINGS = {
    "daqp": {"primal_tol": 1e-12, "dual_tol": 1e-12, "iter_limit": 100_000},
    "piqp": {
        "eps_abs": 1e-12,
        "eps_rel": 0.0,
        "eps_duality_gap_abs": 1e-12,
        "eps_duality_gap_rel": 0.0,
        "max_iter": 500,
    },
    "highs": {
        "time_limit": 2.0,
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
    },
    "cvxopt": {"abstol": 1e-13, "reltol": 1e-13, "feastol": 1e-13, "maxiters": 200},
}


@dataclass(frozen=True)
class Exact:
    """A matching problem with its kernel values written out."""

    K: np.ndarray
    k: np.ndarray
    ridge: float
    bound: float
    slack: float

    @classmethod
    def of(cls, z_train, z_trusted, *, gamma, ridge, bound, slack) -> "Exact":
        n, m = len(z_train), len(z_trusted)
        a, b = np.reshape(z_train, (n, -1)), np.reshape(z_trusted, (m, -1))
        if slack is None:
            slack = (np.sqrt(n) - 1) / np.sqrt(n)
        K = np.exp(-gamma * cdist(a, a, "sqeuclidean"))
        k = np.exp(-gamma * cdist(a, b, "sqeuclidean")).sum(1) * n / m
        return cls(K, k, ridge, bound, slack)

    def objective(self, w) -> float:
        return float(0.5 * w @ (self.K @ w) + 0.5 * self.ridge * (w @ w) - self.k @ w)

    def violation(self, w) -> float:
        """How far weights are from 0 ≤ w ≤ B and |mean(w) − 1| ≤ ε."""
        return float(max(-w.min(), w.max() - self.bound, abs(w.mean() - 1) - self.slack, 0.0))

    def solve(self, solver: str) -> np.ndarray | None:
        """The weights by one of the solvers, or None when it gives up."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # dense matrices and missing answers are expected
                return self._solve_qp(solver)
        except (qpsolvers.exceptions.SolverError, ArithmeticError, ValueError):
            return None

    def _solve_qp(self, solver: str) -> np.ndarray | None:
        n = len(self.k)
        ones = np.ones(n)
        return qpsolvers.solve_qp(
            self.K + self.ridge * np.eye(n),
            -self.k,
            np.vstack([ones, -ones]),
            n * np.array([1 + self.slack, self.slack - 1]),
            lb=np.zeros(n),
            ub=np.full(n, float(self.bound)),
            solver=solver,
            **SETTINGS[solver],
        )


@dataclass(frozen=True)
class Gaps:
    """Ours against a solver's."""

    solver: str
    objective: float
    """(ours − theirs)/|theirs|: positive when theirs is better."""
    weights: float
    """max |ours − theirs|."""
    infeasible: float
    """How far theirs violates the constraints."""


def compare(exact: Exact, ours: np.ndarray, *solvers: str) -> Gaps | None:
    """The gaps to the first of the solvers that has an answer; None when they all gave up.

    Which problems a solver gives up on depends on the last bits of the kernel
    values, and so on the processor: no test may count on one of them alone.
    """
    for solver in solvers:
        theirs = exact.solve(solver)
        if theirs is not None and np.isfinite(theirs).all():
            break
    else:
        return None
    reference = exact.objective(theirs)
    scale = max(abs(reference), abs(exact.objective(ours)), 1e-12)
    return Gaps(
        solver,
        (exact.objective(ours) - reference) / scale,
        float(np.abs(ours - theirs).max()),
        exact.violation(theirs),
    )
