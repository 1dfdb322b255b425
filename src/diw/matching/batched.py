"""Many small dense problems side by side: the classes of a mini-batch.

A small problem takes microseconds to solve and hundreds of them in calls. So small problems
are padded to one size, stacked, and solved by the primal–dual active-set method
(Hintermüller, Ito & Kunisch 2002): the gradient at the last solution determines which
weights are at 0, at B and free; solve for the free ones; repeat until nothing changes. On
well-conditioned kernels that takes three to five rounds. Problems that have not settled by
then, or whose sum leaves the band, are solved one by one by a method that always ends.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from diw.matching.backend import NUMPY, FloatArray, to_numpy
from diw.matching.gram import Dense, Gram
from diw.matching.match import Solution
from diw.matching.problem import Problem

ROUNDS = 12
LARGEST = 64  # samples of a problem that is worth padding


def solve_batched(problems: Sequence[Problem], grams: Sequence[Gram]) -> list[Solution | None]:
    """The solutions of the small problems among these, where they were found; else None."""
    found: list[Solution | None] = [None] * len(problems)
    places = [
        i
        for i, (problem, gram) in enumerate(zip(problems, grams, strict=True))
        if isinstance(gram, Dense) and problem.n <= LARGEST and problem.xp is NUMPY
    ]
    if len(places) < 2:
        return found
    sizes = [problems[i].n for i in places]
    count, size = len(places), max(sizes)
    ridge, bound = problems[places[0]].ridge, problems[places[0]].bound
    # A padding sample is similar to no other and has k = 0: its weight is 0.
    eye = np.eye(size)
    H = np.repeat(eye[None], count, 0)
    k = np.zeros((count, size))
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        gram = grams[i]
        assert isinstance(gram, Dense)
        H[row, :n, :n], k[row, :n] = to_numpy(gram.K) + ridge * eye[:n, :n], to_numpy(gram.k)
    w, g, settled, rounds = _settle(H, k, bound, eye)
    for row, (i, n) in enumerate(zip(places, sizes, strict=True)):
        weights = w[row, :n]
        if settled[row] and problems[i].low <= weights.sum() <= problems[i].high:
            residual = g[row, :n]
            held = ((weights <= 0) & (residual > 0)) | ((weights >= bound) & (residual < 0))
            residual = np.where(held, 0.0, residual)
            array = NUMPY.array
            found[i] = Solution(array(weights.copy()), array(residual), 0.0, int(rounds[row]))
    return found


def _settle(
    H: FloatArray, k: FloatArray, bound: float, eye: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_], NDArray[np.int64]]:
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
