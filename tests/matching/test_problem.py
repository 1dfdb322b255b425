"""Kinds of input, kinds of output, and every wrong use."""

import warnings

import numpy as np
import pytest
import torch

from diw.errors import DIWWarning
from diw.matching import kmm

RNG = np.random.default_rng(0)
TRAIN, TRUSTED = RNG.exponential(size=50), RNG.exponential(size=30)
ROWS, TRUSTED_ROWS = RNG.normal(size=(50, 4)), RNG.normal(size=(30, 4))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_come_back_as_arrays_of_their_precision(dtype):
    match = kmm(TRAIN.astype(dtype), TRUSTED.astype(dtype))
    assert isinstance(match.weights, np.ndarray)
    assert match.weights.dtype == dtype
    assert match.weights.shape == (50,)


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.int64, torch.float64),
    ],
)
def test_tensors_come_back_as_tensors(given, got):
    values = torch.tensor(TRAIN * 10).to(given)
    match = kmm(values, torch.tensor(TRUSTED * 10).to(given))
    assert isinstance(match.weights, torch.Tensor)
    assert match.weights.dtype == got
    assert not match.weights.requires_grad


def test_a_tensor_that_needs_gradients_is_only_looked_at():
    values = torch.tensor(TRAIN, requires_grad=True)
    assert not kmm(values, torch.tensor(TRUSTED)).weights.requires_grad


def test_lists_and_whole_numbers_are_taken():
    assert kmm([1, 2, 3], [2, 3]).weights.dtype == np.float64
    assert kmm(np.arange(5), np.arange(3)).status == "optimal"


def test_single_precision_never_rounds_past_the_bound():
    bound = 1.1  # float32(1.1) is larger than 1.1
    w = kmm(TRAIN.astype(np.float32), TRUSTED.astype(np.float32) * 0.1, bound=bound).weights
    assert float(w.max()) <= bound
    assert (w > 1.09).any()


def test_inputs_are_left_alone():
    before = TRAIN.copy(), ROWS.copy()
    kmm(TRAIN, TRUSTED)
    kmm(ROWS, TRUSTED_ROWS)
    assert np.array_equal(before[0], TRAIN)
    assert np.array_equal(before[1], ROWS)


def test_a_column_is_the_same_as_no_columns():
    one = kmm(TRAIN, TRUSTED, gamma="median", ridge=1e-3)
    other = kmm(TRAIN[:, None], TRUSTED[:, None], ridge=1e-3)
    assert one.gamma == pytest.approx(other.gamma, rel=1e-12)
    assert np.abs(one.weights - other.weights).max() <= 1e-8


def test_defaults():
    n = len(TRAIN)
    distances = np.abs(TRAIN[:, None] - TRAIN)[np.triu_indices(n, 1)]
    assert kmm(TRAIN, TRUSTED).gamma == pytest.approx(np.quantile(distances, 0.01), rel=1e-12)
    rows = np.linalg.norm(ROWS[:, None] - ROWS, axis=2)[np.triu_indices(n, 1)]
    wanted = 1 / (2 * np.median(rows) ** 2)
    assert kmm(ROWS, TRUSTED_ROWS).gamma == pytest.approx(wanted, rel=1e-9)
    far = kmm(TRAIN, TRUSTED + 1e6, gamma=1.0).weights  # nothing to match: the band's lower end
    assert far.mean() == pytest.approx(1 - (np.sqrt(n) - 1) / np.sqrt(n))


BAD = {
    "z_train: holds NaN": ([1.0, np.nan], [1.0], {}),
    "z_train: holds": ([1.0, np.inf], [1.0], {}),
    "z_trusted: holds NaN": ([1.0], [1.0, np.nan], {}),
    "z_trusted: holds": (np.ones((2, 2)), np.array([[1.0, -np.inf]]), {}),
    "z_train: needs shape": ([], [1.0], {}),
    "z_trusted: needs shape": ([1.0], [], {}),
    "z_train: needs": (np.ones((2, 0)), np.ones((2, 0)), {}),
    "z_train: needs shape (n,)": (np.ones((2, 2, 2)), np.ones((2, 2, 2)), {}),
    "z_train: is not": (["a", "b"], [1.0], {}),
    "z_trusted: rows of shape (3,)": (np.ones((4, 2)), np.ones((4, 3)), {}),
    "z_trusted: rows of shape (2,)": (np.ones(4), np.ones((4, 2)), {}),
    "bound: 0.5 is below 1 - slack = 0.9": ([1.0, 2.0], [1.0], {"bound": 0.5, "slack": 0.1}),
    "bound: must be positive": ([1.0], [1.0], {"bound": 0.0}),
    "bound: must": ([1.0], [1.0], {"bound": np.inf}),
    "slack: must": ([1.0], [1.0], {"slack": -0.1}),
    "ridge: must be positive": ([1.0], [1.0], {"ridge": -1e-5}),
    "ridge: must": ([1.0], [1.0], {"ridge": 0.0}),
    "gamma: must be positive": ([1.0], [1.0], {"gamma": 0.0}),
    "gamma: must": ([1.0], [1.0], {"gamma": -2}),
    "gamma: must be": ([1.0], [1.0], {"gamma": float("nan")}),
    "gamma: unknown rule 'mode'": ([1.0], [1.0], {"gamma": "mode"}),
    "gamma: 'quantile:2' needs": ([1.0], [1.0], {"gamma": "quantile:2"}),
    "gamma: unknown rule 'quantile'": ([1.0], [1.0], {"gamma": "quantile"}),
    "z_train: is not a dense": (torch.eye(3).to_sparse(), torch.eye(3), {}),
    "z_train: has masked": (np.ma.masked_invalid([1.0, np.nan]), [1.0], {}),
    "z_train: has complex": (np.array([1.0 + 1j]), [1.0], {}),
    "z_trusted: has complex": (torch.ones(2), torch.ones(2, dtype=torch.complex64), {}),
    "z_train: holds dates": (np.array(["2020-01-01", "NaT"], "M8[D]"), [1.0], {}),
    "z_trusted: holds dates": ([1.0], np.array([1, "NaT"], "m8[D]"), {}),
    "z_train: is a meta": (torch.ones(5, device="meta"), torch.ones(3), {}),
    "z_trusted: is a meta": (torch.ones(5), torch.ones(3, device="meta"), {}),
    "z_train: is not a dense array": ([10**400], [1.0], {}),
    "z_train: holds NaN or": ([[np.inf, -1.7e308]] * 600, [[1.0, 1.0]], {}),
    "bound: must be a number, not array([1., 2.])": ([1.0], [1.0], {"bound": np.array([1.0, 2])}),
    "bound: must be a number, not array([5.])": ([1.0], [1.0], {"bound": np.array([5.0])}),
    "bound: must be a number, not tensor": ([1.0], [1.0], {"bound": torch.ones(2)}),
    "bound: must be a number, not 1000": ([1.0], [1.0], {"bound": 10**400}),
    "gamma: must be a number": ([1.0], [1.0], {"gamma": torch.ones((), device="meta")}),
    "slack: must be a number": ([1.0], [1.0], {"slack": np.ones(3)}),
    "rank: must be a number": ([1.0], [1.0], {"rank": np.array([1, 2])}),
    "solver: must be": ([1.0], [1.0], {"solver": np.array(["exact", "exact"])}),
    "tol: must be a number": ([1.0], [1.0], {"tol": "a"}),
    "bound: must be a number": ([1.0], [1.0], {"bound": None}),
    "rank: must be a whole": ([1.0], [1.0], {"rank": 1.5}),
    "tol: must": ([1.0], [1.0], {"tol": 0.0}),
    "rank: must": ([1.0], [1.0], {"rank": 0}),
    "max_iterations: must": ([1.0], [1.0], {"max_iterations": 0}),
    "on_failure: must": ([1.0], [1.0], {"on_failure": "ignore"}),
    "solver: must": ([1.0], [1.0], {"solver": "magic"}),
    "penalty: solver='exact' does not": ([1.0], [1.0], {"penalty": 3}),
    "rate: solver='exact' does not": ([1.0], [1.0], {"rate": 0.5}),
    "steps: solver='stopped' does not": ([1.0], [1.0], {"solver": "stopped", "steps": 2}),
    "features: solver='exact' does not": ([1.0], [1.0], {"features": "linear"}),
    "tol: solver='stopped' does not": ([1.0], [1.0], {"solver": "stopped", "tol": 1e-3}),
    "rank: solver='cvxopt' does not": ([1.0], [1.0], {"solver": "cvxopt", "rank": 3}),
    "solver: 'pgd' is a step of": ([1.0], [1.0], {"solver": "pgd"}),
}


@pytest.mark.parametrize("message", BAD)
def test_wrong_use_names_the_argument(message):
    train, trusted, options = BAD[message]
    with pytest.raises(ValueError) as error:
        kmm(train, trusted, **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_no_warnings_escape():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kmm(np.array([1e308, -1e308, 1e-320]), np.array([0.0]), gamma="quantile:0.99")
        kmm(np.array([1e-320, 3e-320]), np.array([1e-320]), gamma="median")


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("far", [1e150, 1e155, 1.7e308, -1.7e308])
def test_one_value_far_away_changes_nothing_for_the_others(d, far):
    rng = np.random.default_rng(0)
    train, trusted = rng.normal(size=(60, d)), rng.normal(0.5, 1, (30, d))
    moderate, extreme = (np.vstack([train, np.full((1, d), x)]) for x in (1e6, far))
    wanted = kmm(moderate, trusted, gamma=0.5)
    match = kmm(extreme, trusted, gamma=0.5)
    error = np.linalg.norm(match.weights - wanted.weights)
    assert error <= match.error_bound + wanted.error_bound


def test_the_error_bound_counts_the_rounding_of_kernel_values():
    """Rows that are equal but for their last bits: K is all ones, and w* is n/(n + ω)."""
    last = 2.0**-52
    train = 1 + last * np.array([[0.0, 1.0], [3.0, 2.0], [0.0, 0.0]])
    match = kmm(train, train[[0, 0]], gamma=129.99431407308703, bound=2.0)
    error = np.linalg.norm(match.weights - 3 / (3 + 1e-5))
    assert 1e-9 < error <= match.error_bound <= 1e-4


def test_values_far_apart_keep_the_kernel_within_their_clusters():
    cluster, gamma = np.array([0.0, 1.0, 2.5]), 0.7
    train = np.r_[-1.7e308, cluster, 1e160, 1e160, 1.7e308]
    match = kmm(train, cluster[:2], gamma=gamma, ridge=1e-2, slack=1.0)
    K = np.zeros((7, 7))
    K[0, 0] = K[6, 6] = 1.0
    K[4:6, 4:6] = 1.0
    K[1:4, 1:4] = np.exp(-gamma * (cluster[:, None] - cluster) ** 2)
    k = np.zeros(7)
    k[1:4] = K[1:4, 1:3].mean(1) * 7
    gradient = (K + 1e-2 * np.eye(7)) @ match.weights - k
    assert np.abs(gradient[match.weights > 0]).max() <= 1e-10
    assert gradient[match.weights == 0].min() >= -1e-10


def test_finite_values_that_cannot_be_centred_are_taken():
    train = np.full((1200, 2), -1.7e308)
    train[::50] = 1.7e308
    match = kmm(train, train[:3], gamma=1.0)
    assert match.status == "optimal"


def test_a_bound_below_one_warns_because_the_mean_cannot_be_one():
    with pytest.warns(DIWWarning, match="bound: 0.5 is below one") as caught:
        match = kmm(TRAIN, TRUSTED, bound=0.5)
    assert caught[0].filename == __file__
    assert match.weights.max() == 0.5
