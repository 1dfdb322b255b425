import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import diw
from diw.errors import UsageError
from diw.methods.by_class import (
    Classwise,
    Side,
    class_labels,
    match_by_class,
    prior_ratios,
)
from diw.step import Batch


def values(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def solve(problems):
    return [diw.kmm(z_train, z_trusted, bound=50) for z_train, z_trusted in problems]


def side(z: torch.Tensor, labels: list[int]) -> Side:
    return Side(torch.tensor(labels), lambda rows: z[rows])


def test_prior_ratios_are_the_papers_under_class_prior_shift() -> None:
    # Fang et al. 2020, supplement: 1 − μ + μ/ρ for a majority class, μ + ρ − μρ for a minority one.
    mu, rho = 0.2, 100
    train = torch.tensor([4000] * 8 + [40] * 2)
    ratios = prior_ratios(train, torch.tensor([10] * 10))
    torch.testing.assert_close(ratios[0].item(), 1 - mu + mu / rho)
    torch.testing.assert_close(ratios[9].item(), mu + rho - mu * rho)


def test_a_class_without_trusted_samples_counts_as_half_a_sample() -> None:
    ratios = prior_ratios(torch.tensor([50, 50]), torch.tensor([20, 0]))
    torch.testing.assert_close(ratios, torch.tensor([2.0, 0.5 / 20 * 2]).double())
    assert prior_ratios(torch.tensor([5, 0]), torch.tensor([1, 3]))[1] == 0  # nothing to weigh


@given(
    train=st.lists(st.integers(0, 50), min_size=2, max_size=6),
    trusted=st.lists(st.integers(0, 50), min_size=6, max_size=6),
)
def test_prior_ratios_are_finite_and_positive_where_there_is_something_to_weigh(
    train, trusted
) -> None:
    counts = torch.tensor(train)
    ratios = prior_ratios(counts, torch.tensor(trusted[: len(train)]))
    assert ratios.isfinite().all()
    assert torch.equal(ratios > 0, counts > 0)


def test_each_class_is_matched_alone_and_gets_its_priors_share() -> None:
    z_train, z_trusted = values(30, 0), values(12, 1)
    labels, trusted = [0] * 20 + [1] * 10, [0] * 5 + [1] * 7
    ratios = torch.tensor([0.5, 2.0]).double()
    weights, facts = match_by_class(
        side(z_train, labels), side(z_trusted, trusted), ratios, solve, bound=50
    )
    for label, ours, theirs in ((0, slice(0, 20), slice(0, 5)), (1, slice(20, 30), slice(5, 12))):
        expected = diw.kmm(z_train[ours], z_trusted[theirs], bound=50).weights
        expected = ratios[label] * expected / expected.mean()
        torch.testing.assert_close(weights[ours], expected)
        torch.testing.assert_close(weights[ours].mean(), ratios[label])
    assert facts["share_unmatched"] == 0


def test_without_scaling_the_matched_weights_are_only_multiplied() -> None:
    z_train, z_trusted, ratios = values(20, 0), values(12, 1), torch.tensor([0.5, 2.0]).double()
    labels, trusted = [0] * 12 + [1] * 8, [0] * 5 + [1] * 7
    weights, _ = match_by_class(
        side(z_train, labels), side(z_trusted, trusted), ratios, solve, bound=50, scale=False
    )
    for label, ours, theirs in ((0, slice(0, 12), slice(0, 5)), (1, slice(12, 20), slice(5, 12))):
        expected = ratios[label] * diw.kmm(z_train[ours], z_trusted[theirs], bound=50).weights
        torch.testing.assert_close(weights[ours], expected)


def test_a_class_absent_from_the_trusted_batch_is_matched_to_the_cache() -> None:
    z_train, z_trusted, cached = values(10, 0), values(4, 1), values(6, 2)
    labels = [0] * 6 + [1] * 4
    weights, facts = match_by_class(
        side(z_train, labels),
        side(z_trusted, [0] * 4),
        torch.ones(2).double(),
        solve,
        bound=50,
        spare=lambda label: cached if label == 1 else None,
    )
    expected = diw.kmm(z_train[6:], cached, bound=50).weights
    torch.testing.assert_close(weights[6:], expected / expected.mean())
    assert facts["share_unmatched"] == 0


def test_a_class_without_any_trusted_value_gets_its_prior_ratio_and_no_sample_is_lost() -> None:
    weights, facts = match_by_class(
        side(values(10, 0), [0] * 6 + [1] * 4),
        side(values(4, 1), [0] * 3 + [2]),  # class 2 has nothing to weigh
        torch.tensor([1.0, 0.25, 1.0]).double(),
        solve,
        bound=50,
        spare=lambda _label: None,
    )
    assert (weights[6:] == 0.25).all()
    assert facts["share_unmatched"] == 0.4


def seen(labels: list[int]) -> Batch:
    return Batch(torch.zeros(len(labels), 1), torch.tensor(labels))


def test_counts_of_the_whole_set_or_as_they_come_by() -> None:
    trusted = torch.tensor([0, 1, 1, 3])
    whole = Classwise(torch.tensor([0, 0, 1]), trusted, "diw2-f")
    whole.see(seen([1, 1, 1]))
    expected = prior_ratios(torch.tensor([2, 1]), torch.tensor([1, 2, 0, 1]))
    torch.testing.assert_close(whole.ratios(), expected)
    running = Classwise(None, trusted, "diw2-f")
    for labels in ([0, 0], [1]):
        running.see(seen(labels))
    torch.testing.assert_close(running.ratios(), expected)
    again = Classwise.from_state_dict(running.state_dict(), "diw2-f")
    again.see(seen([5]))
    counts = torch.tensor([2, 1, 0, 0, 0, 1])
    torch.testing.assert_close(again.ratios(), prior_ratios(counts, torch.tensor([1, 2, 0, 1])))


def test_the_latest_values_of_trusted_samples_are_kept_by_place() -> None:
    cache = Classwise(None, torch.tensor([0, 2, 1, 1, 0, 1]), "diw2-f")
    assert cache.kept(0) is None
    cache.keep(torch.tensor([3, 0]), torch.tensor([[3.0], [0.0]]))
    cache.keep(torch.tensor([3, 5]), torch.tensor([[3.5], [5.0]]))
    assert cache.kept(1).tolist() == [[3.5], [5.0]]
    assert cache.kept(2) is None
    again = Classwise.from_state_dict(cache.state_dict(), "diw2-f")
    assert torch.equal(again.kept(1), cache.kept(1))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (None, "trusted: matching class by class needs labels; set partition=false"),
        (torch.rand(3), r"class numbers \(n,\), not torch.float32 \(3,\); use a -L method"),
        (torch.zeros(3, 2, dtype=torch.int64), r"not torch.int64 \(3, 2\)"),
        (torch.tensor([1, -100]), r"^trusted: row 1 has the label -100; leave such rows out"),
    ],
)
def test_labels_that_cannot_partition(targets, message) -> None:
    with pytest.raises(UsageError, match=message):
        class_labels(targets, "trusted")
