"""Support shift: classes or regions of the test data that training lacks."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diw.data.dataset import Bundle, Dataset, TensorInputs
from diw.data.split import make_split
from diw.errors import UsageError
from diw.shifts import parse_shift

N, K = 2_000, 10
LABELS = np.arange(N) % K


def rows(n: int = N, width: int = 3) -> TensorInputs:
    return TensorInputs(torch.from_numpy(np.random.default_rng(0).normal(size=(n, width))).float())


def test_the_last_classes_are_missing_and_the_others_untouched():
    shifted = parse_shift("support:0.2").apply(LABELS, K, 0)
    assert np.array_equal(shifted.keep, np.flatnonzero(LABELS < 8))
    assert np.array_equal(shifted.targets, LABELS[shifted.keep])
    assert shifted.facts["missing_classes"] == [8, 9]
    assert shifted.facts["class_counts"] == [200] * 8 + [0] * 2
    assert np.allclose(shifted.true_weights, 1)  # on what there is, nothing has shifted


@given(st.integers(0, 1000), st.sampled_from([0.1, 0.3, 0.5]))
def test_trusted_rows_of_missing_classes_stand_for_them(seed, share):
    """Weighted, the rows that are left have the class distribution from before the shift."""
    protected = np.sort(np.random.default_rng(seed).permutation(N)[:300])
    shifted = parse_shift(f"support:{share}").apply(LABELS, K, seed, protected=protected)
    first = K - round(share * K)
    expected = np.union1d(np.flatnonzero(first > LABELS), protected)
    assert np.array_equal(shifted.keep, expected)
    weighted = np.bincount(shifted.targets, shifted.true_weights, minlength=K)
    assert np.allclose(weighted / weighted.sum(), 1 / K)


def test_noise_and_missing_classes_combine_in_both_orders():
    protected = np.arange(0, N, 3)
    before = parse_shift("symmetric:0.3+support:0.2").apply(LABELS, K, 0, protected=protected)
    given_away = ~np.isin(before.keep, protected) & (before.targets >= 8)
    assert not given_away.any()  # the given label decides
    after = parse_shift("support:0.2+symmetric:0.3").apply(LABELS, K, 0, protected=protected)
    free = ~np.isin(after.keep, protected)
    assert (LABELS[after.keep][free] < 8).all()
    assert (after.targets[free] >= 8).any()
    for shifted in (before, after):
        wrong = shifted.targets != LABELS[shifted.keep]
        assert np.array_equal(shifted.true_weights == 0, wrong)


def test_a_region_is_cut_at_its_quantile():
    shifted = parse_shift("region:0.25,1").apply(LABELS, K, 0, inputs=rows())
    x = rows().take(torch.arange(N))[:, 1].numpy()
    assert np.array_equal(shifted.keep, np.flatnonzero(x <= np.sort(x)[1499]))
    assert shifted.facts["missing_share"] == 0.25
    assert np.allclose(shifted.true_weights, 1)


def test_trusted_rows_stand_for_a_missing_region():
    protected = np.arange(0, N, 5)
    shifted = parse_shift("region:0.25").apply(
        np.zeros(N, int), 1, 0, inputs=rows(width=1), protected=protected
    )
    x = rows(width=1).take(torch.arange(N))[:, 0].numpy()
    there = x[shifted.keep] <= np.quantile(x, 0.75)
    assert np.isin(shifted.keep[~there], protected).all()
    # One in five came through for sure beyond the cut, all of them before it.
    assert np.allclose(shifted.true_weights[~there] / shifted.true_weights[there][0], 5)


def test_nothing_happens_without_a_share_and_a_region_needs_inputs():
    for text in ("support:0", "region:0"):
        assert len(parse_shift(text).apply(LABELS, K, 0).keep) == N
    with pytest.raises(ValueError, match="inputs: a shift that depends on them needs them"):
        parse_shift("region:0.2").apply(LABELS, K, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("support:0.01", "support with 0.01 of 10 classes takes 0 of them, expected 1..9"),
        ("support:0.99", "takes 10 of them"),
        ("region:0.2,3", "region along feature 3, but inputs have 3"),
        ("region:0.2,2", "region:0.2,2 takes no row"),
    ],
)
def test_shares_that_cannot_be_taken_are_refused(text, words):
    values = rows().take(torch.arange(N)).clone()
    values[:, 2] = (values[:, 2] > 0).float()  # half of all rows share the largest value
    with pytest.raises(UsageError, match=words):
        parse_shift(text).apply(LABELS, K, 0, inputs=TensorInputs(values))


@pytest.mark.parametrize("in_train", [True, False])
@pytest.mark.parametrize("shift", ["support:0.2", "region:0.3"])
def test_trusted_and_test_rows_cover_what_is_missing(shift, in_train):
    data = Dataset(rows(), torch.from_numpy(LABELS), tuple(map(str, range(K))))
    bundle = Bundle("rows", "table", data, test=data, clean=torch.ones(N, dtype=torch.bool))
    split = make_split(bundle, shift=shift, trusted=400, seed=3, trusted_in_train=in_train)
    again = make_split(bundle, shift=shift, trusted=400, seed=3, trusted_in_train=in_train)
    assert torch.equal(split.rows, again.rows)
    assert len(split.test) == N
    assert (split.trusted.class_counts > 20).all()
    others = np.delete(split.rows.numpy(), split.trusted_index.numpy())
    x = rows().take(torch.arange(N)).double().numpy()
    if shift.startswith("support"):
        assert (LABELS[others] < 8).all()
    else:
        assert np.linalg.norm(x[others].mean(axis=0)) > np.linalg.norm(x.mean(axis=0))
    assert (len(split.trusted_index) == 400) == in_train
