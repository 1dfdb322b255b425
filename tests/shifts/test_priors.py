import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diw.errors import UsageError
from diw.shifts import LongTail, Prior, parse_shift
from diw.shifts.priors import class_sizes


def balanced(per_class: int, k: int = 10) -> np.ndarray:
    return np.arange(per_class * k) % k


@pytest.mark.parametrize("ratio", [100, 200])
def test_the_papers_class_prior_shift(ratio):
    labels = balanced(6000)
    protected = np.concatenate([np.flatnonzero(labels == c)[:10] for c in range(10)])
    shifted = parse_shift(f"prior:0.2,{ratio},4000").apply(labels, 10, 0, protected=protected)
    counts = np.bincount(shifted.targets)
    assert counts.tolist() == [4000] * 8 + [4000 // ratio] * 2
    assert np.isin(protected, shifted.keep).all()
    assert np.array_equal(shifted.targets, labels[shifted.keep])
    mu = 0.2
    majority = shifted.targets < 8
    assert np.allclose(shifted.true_weights[majority], 1 - mu + mu / ratio)
    assert np.allclose(shifted.true_weights[~majority], mu + ratio - mu * ratio)
    assert shifted.true_weights.mean() == pytest.approx(1)


def test_too_few_minority_rows_for_the_trusted_set_are_refused_with_the_numbers():
    labels = balanced(600)
    protected = np.concatenate([np.flatnonzero(labels == c)[:10] for c in range(10)])
    with pytest.raises(UsageError, match=r"class 8 is left with 6 rows, .* holds 10"):
        parse_shift("prior:0.2,100").apply(labels, 10, 0, protected=protected)


def test_largest_size_that_the_data_allow_is_the_default():
    labels = np.repeat([0, 1, 2, 3], [500, 400, 30, 20])
    shifted = parse_shift("prior:0.5,10").apply(labels, 4, 0)
    assert np.bincount(shifted.targets).tolist() == [200, 200, 20, 20]


def test_long_tail_falls_exponentially():
    shifted = parse_shift("longtail:100").apply(balanced(1000, 3), 3, 0)
    assert np.bincount(shifted.targets).tolist() == [1000, 100, 10]
    assert np.allclose(LongTail(100).shares(3), [1, 0.1, 0.01])
    one_row_each = [shifted.true_weights[shifted.targets == c][0] for c in range(3)]
    assert np.allclose(np.divide(one_row_each, one_row_each[0]), [1, 10, 100])


def test_shares_refuse_a_fraction_that_makes_no_class_or_all():
    with pytest.raises(UsageError, match="takes 0 of them"):
        Prior(0.01, 10).shares(10)
    with pytest.raises(UsageError, match="takes 10 of them"):
        Prior(0.99, 10).shares(10)


def test_sizes_refuse_more_rows_than_there_are_and_classes_without_rows():
    with pytest.raises(UsageError, match="class 1 would need 50 rows and has 40"):
        class_sizes([100, 40], [1, 0.5], 100)
    with pytest.raises(UsageError, match="class 1 would be left without rows"):
        class_sizes([100, 100], [1, 0.001])


@given(st.integers(0, 2**31), st.integers(2, 12), st.floats(1, 20))
def test_true_weights_bring_back_the_class_distribution(seed, k, ratio):
    labels = np.random.default_rng(seed).permutation(balanced(60, k))
    shifted = parse_shift(f"longtail:{ratio}").apply(labels, k, seed)
    weighted = np.bincount(shifted.targets, shifted.true_weights, minlength=k)
    assert np.allclose(weighted / weighted.sum(), 1 / k)
    assert (np.diff(shifted.keep) > 0).all()


def test_noise_after_a_class_prior_keeps_both_weights():
    labels = balanced(3000, 4)
    shifted = parse_shift("prior:0.25,10+symmetric:0.3").apply(labels, 4, 0)
    true = labels[shifted.keep]
    intact = shifted.targets == true
    assert np.array_equal(shifted.true_weights > 0, intact)
    minority = shifted.true_weights[intact & (true == 3)][0]
    majority = shifted.true_weights[intact & (true == 0)][0]
    assert minority / majority == pytest.approx(10)


def test_a_class_prior_after_noise_selects_by_the_given_label():
    labels = balanced(3000, 4)
    shifted = parse_shift("symmetric:0.3+prior:0.25,10,2000").apply(labels, 4, 0)
    assert np.bincount(shifted.targets).tolist() == [2000, 2000, 2000, 200]
    assert (shifted.targets != labels[shifted.keep]).any()
    assert shifted.true_weights.mean() == pytest.approx(1)
