"""Many small dense problems side by side: the classes of a mini-batch.

A small problem is solved in microseconds and takes hundreds of them to ask for it. So
they are padded to one size, stacked, and solved by the primal–dual active-set method
(Hintermüller, Ito & Kunisch 2002): the gradient at the last solution tells which
weights are at 0, at B and free; solve for the free ones; until nothing changes. On
well-conditioned kernels that takes three to five rounds. What has not settled by then, or
leaves the band, is left to the method that always ends.
"""

from collections.abc import Sequence

import numpy as np

from diw.matching.backend import NumpyArrays
from diw.matching.dense import Dense
from diw.matching.gram import Factor
from diw.matching.problem import Problem
from diw.matching.solution import Solution

ROUNDS = 12
LARGEST = 64  # samples of a problem that is worth padding


def solve_together(
    problems: Sequence[Problem], forms: Sequence[Factor | Dense]
) -> list[Solution | None]:
    """The solutions of the small problems among these, where they were found; else None."""
    found: list[Solution | None] = [None] * len(problems)
    places = [
        i
        for i, (problem, form) in enumerate(zip(problems, forms, strict=True))
        if isinstance(form, Dense) and problem.n <= LARGEST and isinstance(problem.xp, NumpyArrays)
    ]
    if len(places) < 2:
        return found
    sizes = [problems[i].n for i in places]
    count, size = len(places), max(sizes)
    ridge, bound = problems[places[0]].ridge, problems[places[0]].bound
    # A padding sample is alike to no other and pulled by nothing: its weight is 0.
    eye = np.eye(size)
    H = np.repeat(eye[None], count, 0)
    k = np.zeros((count, size))
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        form = forms[i]
        assert isinstance(form, Dense)
        H[row, :n, :n], k[row, :n] = form.K + ridge * eye[:n, :n], form.pull
    w, g, settled, rounds = _settle(H, k, bound, eye)
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        weights = w[row, :n]
        if settled[row] and problems[i].low <= weights.sum() <= problems[i].high:
            residual = g[row, :n]
            held = ((weights <= 0) & (residual > 0)) | ((weights >= bound) & (residual < 0))
            found[i] = Solution(
                weights.copy(), np.where(held, 0.0, residual), 0.0, int(rounds[row]), True
            )
    return found


def _settle(
    H: np.ndarray, k: np.ndarray, bound: float, eye: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights (c, n), gradients, whether the free weights settled, and the rounds it took."""
    low, high = np.zeros(k.shape, bool), np.zeros(k.shape, bool)
    settled = np.zeros(len(k), bool)
    rounds = np.full(len(k), ROUNDS)
    w = g = k
    for count in range(ROUNDS):
        free = ~(low | high)
        fixed = bound * high
        A = np.where(free[:, :, None] & free[:, None, :], H, eye)
        right = np.where(free, k - (H @ fixed[:, :, None])[:, :, 0], fixed)
        w = np.linalg.solve(A, right[:, :, None])[:, :, 0]
        g = (H @ w[:, :, None])[:, :, 0] - k
        aim = np.where(free, w, w - g)
        low_now, high_now = aim <= 0, aim >= bound
        same = ((low_now == low) & (high_now == high)).all(1)
        rounds[same & ~settled] = count + 1
        settled |= same
        if settled.all():
            break
        low, high = low_now, high_now
    return w, g, settled, rounds
