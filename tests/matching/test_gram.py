"""The kernel against its definition."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diw.matching.gram import gaussian


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("gamma", [1e-6, 0.3, 40.0, 1e5])
def test_the_kernel_is_accurate_even_far_from_the_origin(gamma, scale):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 4)) + scale, rng.normal(size=(20, 4)) + scale
    b[:5] = a[:5] + 1e-3
    wanted = np.exp(-gamma * cdist(a, b, "sqeuclidean"))
    assert np.abs(gaussian(a, b, gamma) - wanted).max() <= 1e-9


def test_a_value_is_alike_to_itself_even_where_rounding_is_larger_than_the_width():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 30)) * 10 ** rng.uniform(0, 8, (50, 1))
    kernel = gaussian(rows, rows, 1e5)
    assert np.array_equal(np.diag(kernel), np.ones(50))
    expected = np.exp(-1e5 * cdist(rows, rows, "sqeuclidean"))
    assert np.abs(kernel - expected).max() <= 1e-9
