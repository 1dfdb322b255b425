"""The Gaussian kernel k(z, z') = exp(−γ‖z − z'‖²), with `gamma` in scikit-learn's meaning."""

from diw.matching.backend import Array, backend_of

BLOCK = 1 << 22
"""Numbers that a temporary block may hold."""

EPSILON = 2.3e-16
_EXACT = 1e3  # γ‖z‖² beyond which distances that matter are computed from differences
_ROUNDING = 1e-14  # relative to the norms: the error of a squared distance by a matrix product


def gaussian(a: Array, b: Array, gamma: float, norms: Array | None = None) -> Array:
    """exp(−γ‖a_i − b_j‖²) of shape (len(a), len(b)), of two (·, d) arrays or tensors.

    `norms` are the ‖a_i‖², for a caller that has them.
    """
    kernel = distances_for(a, b, gamma, gamma, norms)
    kernel *= -gamma
    backend_of(kernel).exp_(kernel)
    return kernel


def distances_for(
    a: Array, b: Array, least: float, most: float, norms: Array | None = None
) -> Array:
    """‖a_i − b_j‖², as exact as kernels with γ from `least` to `most` need them."""
    if a.shape[1] == 1:
        squares = a - b[:, 0]
        squares *= squares
        return squares
    # Rounding moves γ‖a − b‖² by about 1e-16·γ‖a‖². Where that is too much, the
    # distances that matter (a kernel value above 1e-20) are computed from differences.
    others = (b * b).sum(1)
    exact = most * float(others.max()) > _EXACT
    return squared_distances(a, b, 46.0 / least if exact else -1.0, norms, others)


def rounding(gamma: float, largest: float, columns: int) -> float:
    """How far a computed kernel value may be from the exact one.

    A value is exp(−x). From a difference, x has a relative error of a few ε, and x·exp(−x) is
    below one half; from a matrix product over d columns, an absolute error of
    (2d + 8)·ε·γ‖z‖². That is as large as `gaussian` lets it be.

    Args:
        gamma: γ.
        largest: The largest ‖z‖²; not used with one column.
        columns: d.
    """
    if columns == 1:
        return 2 * EPSILON
    return (2 + (2 * columns + 8) * min(gamma * largest, 4 * _EXACT)) * EPSILON


def squared_distances(
    a: Array, b: Array, below: float, norms_a: Array | None = None, norms_b: Array | None = None
) -> Array:
    """‖a_i − b_j‖² of shape (len(a), len(b)), of two (·, d) arrays or tensors.

    One matrix product gives all of them, with an absolute error of about
    1e-16·‖a‖²; those that may be at most `below` are computed again from differences.
    `norms_a` and `norms_b` are the ‖a_i‖² and ‖b_j‖², for a caller that has them.
    """
    xp = backend_of(a)
    norms_a = ((a * a).sum(1) if norms_a is None else norms_a)[:, None]
    norms_b = (b * b).sum(1) if norms_b is None else norms_b
    squares = a @ b.T
    squares *= -2.0
    squares += norms_a
    squares += norms_b
    if below >= 0:
        rows, columns = xp.where(squares <= below + _ROUNDING * (norms_a + norms_b))
        step = max(1, BLOCK // a.shape[1])
        for i in range(0, len(rows), step):
            left, right = rows[i : i + step], columns[i : i + step]
            difference = a[left] - b[right]
            squares[left, right] = (difference * difference).sum(1)
    return xp.floor(squares, 0.0, in_place=True)
