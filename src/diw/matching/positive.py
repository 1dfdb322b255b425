"""Solving with a matrix that is positive definite, if need be up to rounding."""

from collections.abc import Callable

from diw.errors import MatchingError
from diw.matching.backend import Array, Arrays


def plus_diagonal(xp: Arrays, matrix: Array, value: Array | float) -> Array:
    """A fresh matrix with `value` added to its diagonal."""
    xp.add_to_diagonal(matrix, value)
    return matrix


def positive(xp: Arrays, matrix: Callable[[float], Array]) -> Callable[[Array], Array]:
    """A function that solves with `matrix(0.0)`; `matrix(jitter)` has that much on its diagonal."""
    solve, jitter = xp.solver(matrix(0.0)), 1e-15
    while solve is None:
        if jitter > 1e-6:
            raise MatchingError("kernel mean matching: a linear system is singular; raise ridge")
        trace = float(matrix(0.0).trace())
        solve, jitter = xp.solver(matrix(jitter * trace)), 100 * jitter
    return solve
