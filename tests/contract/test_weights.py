"""What every method's weights must be, whatever the method."""

import pytest
import torch

from tests.contract.cases import CASES, DEFAULTS, Case, N, batch, objective_of, true_weights

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_method = pytest.mark.parametrize("case", DEFAULTS, ids=str)


def weights_of(case: Case, part=None, dtype=torch.float32, **options) -> torch.Tensor:
    """The weights of one step: of the training batch, or of the trusted one where that is used."""
    result = objective_of(case, dtype=dtype, **options)(batch(part, dtype))
    weights = result.weights
    chosen = weights.train if weights.train is not None else weights.trusted
    assert chosen is not None
    return chosen


def assert_sound(weights: torch.Tensor, n: int, case: Case) -> None:
    assert weights.shape == (n,)
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    assert not weights.requires_grad
    assert weights.grad_fn is None
    if weights.any() and case.fields.get("normalise", True):
        torch.testing.assert_close(weights.mean(), torch.ones_like(weights.mean()))


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_one_finite_non_negative_detached_weight_a_sample_of_mean_one(case, dtype) -> None:
    objective = objective_of(case, dtype=dtype)
    result = objective(batch(dtype=dtype))
    for weights, n in ((result.weights.train, N), (result.weights.trusted, 20)):
        if weights is not None:
            assert_sound(weights, n, case)
            assert weights.dtype == dtype
    assert result.loss.dtype == dtype
    assert result.loss.isfinite()
    result.loss.backward()
    assert all(isinstance(value, float) for value in result.diagnostics.values())


@every_case
@pytest.mark.parametrize("size", [1, 2, 7])
def test_small_batches(case, size) -> None:
    if case.method != "clean":  # its batches are the trusted ones, below
        assert_sound(weights_of(case, slice(1, 1 + size)), size, case)


@every_case
@pytest.mark.parametrize("trusted", [1, 2, 5])
def test_a_trusted_set_smaller_than_its_batch(case, trusted) -> None:
    weights = weights_of(case, trusted=trusted, trusted_batch_size=256)
    assert_sound(weights, trusted if case.method == "clean" else N, case)


@every_method
def test_a_last_batch_that_is_smaller(case) -> None:
    objective = objective_of(case)
    for part in (slice(0, 32), slice(32, N), slice(0, 32)):
        weights = objective(batch(part)).weights.train
        if weights is not None:
            assert_sound(weights, len(range(N)[part]), case)
        objective.after_step()


@every_case
def test_the_seed_decides(case) -> None:
    assert torch.equal(weights_of(case, seed=3), weights_of(case, seed=3))


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_reordered_batch_gets_reordered_weights(case, dtype) -> None:
    if case.method == "clean":
        pytest.skip("looks at no training batch")
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    straight, shuffled = weights_of(case, dtype=dtype), weights_of(case, order, dtype=dtype)
    tolerance = 2e-3 if dtype == torch.float32 else 1e-6
    torch.testing.assert_close(shuffled, straight[order], rtol=tolerance, atol=tolerance)


@every_method
def test_a_batch_whose_weights_all_vanish_counts_nothing_and_is_counted(case) -> None:
    vanished = (true_weights() == 0).nonzero().flatten()
    result = objective_of(case)(batch(vanished))
    weights = result.weights.train
    if weights is None:
        return
    assert result.diagnostics["vanished"] == float(not weights.any())
    if not weights.any():
        assert result.loss == 0
    assert bool(weights.any()) == (case.method != "truth")
