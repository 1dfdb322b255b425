"""What every method's weights must be, whatever the method."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diw.errors import DIWWarning, UsageError
from diw.step import Step, Weights
from tests.contract.cases import (
    CASES,
    CLASSES,
    WEIGHING,
    Case,
    N,
    batch,
    objective_of,
    true_weights,
)

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_weighing_case = pytest.mark.parametrize("case", WEIGHING, ids=str)


def weights_of(case: Case, part=None, dtype=torch.float32, **options) -> Weights:
    """The weights of one step."""
    return objective_of(case, dtype=dtype, **options)(batch(part, dtype)).weights


def assert_sound(weights: Weights, n: int, case: Case, trusted: int = 20) -> None:
    """Of n training and some trusted samples, those that count; as much in all as n plain ones."""
    sizes = ((weights.train, n), (weights.trusted, trusted))
    used = [(each, size) for each, size in sizes if each is not None]
    assert used
    for each, size in used:
        assert each.shape == (size,)
        assert each.isfinite().all()
        assert (each >= 0).all()
        assert not each.requires_grad
        assert each.grad_fn is None
    total = sum(each.sum() for each, _ in used)
    if total > 0 and case.fields.get("normalise", True):
        torch.testing.assert_close(total / used[0][1], torch.ones_like(total))


@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_one_finite_non_negative_detached_weight_per_sample_of_mean_one(case, dtype) -> None:
    objective = objective_of(case, dtype=dtype)
    result = objective(batch(dtype=dtype))
    assert_sound(result.weights, N, case)
    for weights in (result.weights.train, result.weights.trusted):
        assert weights is None or weights.dtype == dtype
    assert result.loss.dtype == dtype
    assert result.loss.isfinite()
    result.loss.backward()
    assert all(isinstance(value, float) for value in result.metrics.values())


@every_weighing_case
@pytest.mark.parametrize("size", [1, 2, 7])
def test_small_batches(case, size) -> None:
    assert_sound(weights_of(case, slice(1, 1 + size)), size, case)


@every_case
@pytest.mark.parametrize("trusted", [1, 2, 5])
def test_a_trusted_set_smaller_than_its_batch(case, trusted) -> None:
    weights = weights_of(case, trusted=trusted, trusted_batch_size=256)
    assert_sound(weights, N, case, trusted)


@every_weighing_case
def test_a_last_batch_that_is_smaller(case) -> None:
    objective = objective_of(case)
    for part in (slice(0, 32), slice(32, N), slice(0, 32)):
        assert_sound(objective(batch(part)).weights, len(range(N)[part]), case)
        objective.after_step()


@every_case
def test_the_seed_decides_and_nothing_else(case) -> None:
    def loss(seed: int) -> tuple[Tensor, bool]:
        objective = objective_of(case, seed=seed, trusted_batch_size=8)
        torch.rand(seed)  # the global random state does not matter
        result = objective(batch())
        return result.loss, objective.state_dict()["stream"]["drawn"] > 0

    first, looked = loss(3)
    assert torch.equal(loss(3)[0], first)
    if looked or case.method == "random":  # other trusted samples, other random weights
        assert not torch.equal(loss(4)[0], first)


@every_weighing_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_reordered_batch_gets_reordered_weights(case, dtype) -> None:
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    straight = weights_of(case, dtype=dtype).train
    shuffled = weights_of(case, order, dtype=dtype).train
    tolerance = 2e-3 if dtype == torch.float32 else 1e-6
    torch.testing.assert_close(shuffled, straight[order], rtol=tolerance, atol=tolerance)


@every_weighing_case
def test_a_batch_whose_weights_all_vanish_counts_nothing_and_is_counted(case) -> None:
    vanished = (true_weights() == 0).nonzero().flatten()
    result = objective_of(case)(batch(vanished))
    all_zero = case.method == "truth"
    assert bool(result.weights.train.any()) != all_zero
    assert result.metrics["vanished"] == float(all_zero)
    assert (result.loss == 0) == all_zero


@every_weighing_case
def test_targets_of_one_class_are_labels_bit_for_bit(case) -> None:
    def trained(one_hot: bool) -> tuple[Tensor, list[Tensor]]:
        objective = objective_of(case)
        weigh = objective.method.weigh

        def with_targets(step: Step) -> Weights:
            targets = torch.nn.functional.one_hot(step.train.targets, CLASSES)
            return replace(weigh(step), targets=targets.float() if one_hot else None)

        objective.method.weigh = with_targets
        loss = objective(batch()).loss
        return loss, list(torch.autograd.grad(loss, list(objective.network.parameters())))

    (ours, gradients), (theirs, expected) = trained(True), trained(False)
    assert torch.equal(ours, theirs)
    assert all(map(torch.equal, gradients, expected))


@every_weighing_case
def test_recorded_losses_are_those_of_the_given_labels(case) -> None:
    objective = objective_of(case)
    result = objective(batch())
    expected = torch.nn.functional.cross_entropy(
        result.outputs.detach(), batch().targets, reduction="none"
    )
    assert torch.equal(result.losses, expected)


@every_case
def test_without_an_index_a_method_works_or_says_what_to_yield(case) -> None:
    objective = objective_of(case)
    whole = replace(batch(), index=None)
    remembers = "momentum" in case.fields
    if "index" in objective.method.needs or remembers:
        with pytest.raises(UsageError, match=r"yield \(inputs, targets, index\)"):
            objective(whole)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DIWWarning)
            assert objective(whole).loss.isfinite()
