"""Kinds of input, kinds of output, and every wrong use."""

import warnings

import numpy as np
import pytest
import torch

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
    "tol: must be a number": ([1.0], [1.0], {"tol": "a"}),
    "bound: must be a number": ([1.0], [1.0], {"bound": None}),
    "rank: must be a whole": ([1.0], [1.0], {"rank": 1.5}),
    "tol: must": ([1.0], [1.0], {"tol": 0.0}),
    "rank: must": ([1.0], [1.0], {"rank": 0}),
    "max_iterations: must": ([1.0], [1.0], {"max_iterations": 0}),
    "on_failure: must": ([1.0], [1.0], {"on_failure": "ignore"}),
    "solver: must": ([1.0], [1.0], {"solver": "magic"}),
    "backend: must": ([1.0], [1.0], {"backend": "jax"}),
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
