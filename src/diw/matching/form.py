"""In which form a problem is solved: on a low-rank factor of the kernel, or on all of it."""

from diw.matching.dense import DENSE_ROWS, Dense, dense
from diw.matching.gram import Factor, default_cap, pivoted
from diw.matching.problem import Problem

DIRECT_ROWS = 64  # up to this size the kernel matrix is faster than finding its rank
LOW_RANK = 512  # beyond this rank (and a third of n) the kernel matrix is faster


def form_of(problem: Problem, rank: int | None) -> Factor | Dense:
    """The form that suits the problem's size and rank; `rank` caps a factor."""
    n = problem.n
    if n > DENSE_ROWS or (rank is not None and rank < n):
        return pivoted(problem, min(rank or default_cap(problem), n))
    if n <= DIRECT_ROWS:
        return dense(problem)
    found = pivoted(problem, min(n // 3, LOW_RANK), hopeless=4.0)
    return dense(problem) if found.capped else found
