"""The torch path, which GPU tensors take, run on CPU tensors: the same weights as NumPy's."""

import numpy as np
import pytest
import torch

from diw.matching import kmm
from diw.matching.gram import DIRECT_ROWS

RNG = np.random.default_rng(5)
CASES = {
    "losses": (RNG.exponential(size=256), RNG.exponential(size=200) / 2, {}),
    "losses at the median rule": (
        RNG.exponential(size=256),
        RNG.exponential(size=200) / 2,
        {"gamma": "median"},
    ),
    "a rank for the interior point": (
        RNG.normal(size=400),
        RNG.normal(size=50),
        {"gamma": 60.0, "bound": 3.0},
    ),
    "a few features": (RNG.normal(size=(20, 6)), RNG.normal(size=(9, 6)) + 0.5, {}),
    "full rank": (RNG.normal(size=(300, 8)), RNG.normal(size=(40, 8)) + 0.5, {}),
    "nearly diagonal": (RNG.normal(size=(300, 30)), RNG.normal(size=(40, 30)), {"gamma": 5.0}),
    "the band binds": (RNG.normal(size=200), RNG.normal(size=50) + 9, {"slack": 0.05}),
    "the band binds at full rank": (
        RNG.normal(size=(300, 8)),
        RNG.normal(size=(40, 8)) + 3,
        {"slack": 0.05, "bound": 4.0},
    ),
    "a rank cap": (RNG.normal(size=(400, 5)), RNG.normal(size=(50, 5)), {"rank": 30}),
    "ties": (np.floor(3 * RNG.normal(size=150)), np.floor(RNG.normal(size=40)), {}),
    "large differences": (
        RNG.standard_cauchy(size=(150, 2)) * 100,
        RNG.standard_cauchy(size=(40, 2)) * 100,
        {"gamma": 9.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_torch_and_numpy_agree(name):
    train, trusted, options = CASES[name]
    options = {"ridge": 1e-3} | options
    ours = kmm(train, trusted, **options)
    theirs = kmm(torch.tensor(train), torch.tensor(trusted), backend="torch", **options)
    assert isinstance(theirs.weights, torch.Tensor)
    assert theirs.status == ours.status
    assert theirs.gamma == pytest.approx(ours.gamma, rel=1e-9)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)
    assert np.abs(theirs.weights.numpy() - ours.weights).max() <= 1e-6


def test_precision_and_gradients_on_the_torch_path():
    train = torch.tensor(CASES["losses"][0], dtype=torch.float32, requires_grad=True)
    trusted = torch.tensor(CASES["losses"][1], dtype=torch.float32)
    match = kmm(train, trusted, backend="torch", bound=1.1)
    assert match.weights.dtype == torch.float32
    assert not match.weights.requires_grad
    assert float(match.weights.max()) <= 1.1


def test_the_cases_cover_small_and_large_factors():
    sizes = [len(train) for train, _, _ in CASES.values()]
    assert min(sizes) <= DIRECT_ROWS < max(sizes)


def test_the_torch_path_gives_numpy_for_arrays():
    match = kmm(*CASES["losses"][:2], backend="torch")
    assert isinstance(match.weights, np.ndarray)
