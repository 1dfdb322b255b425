import numpy as np
import pytest
import torch

from diw.data.dataset import TensorInputs
from diw.errors import UsageError
from diw.shifts import parse_shift
from diw.shifts.inputs import keep_probability, positions, principal_direction

N = 20_000


def cloud(seed: int = 0) -> TensorInputs:
    """Standard normal but for the third feature, whose deviation is five."""
    values = np.random.default_rng(seed).normal(size=(N, 6)) * [1, 1, 5, 1, 1, 1]
    return TensorInputs(torch.from_numpy(values).float())


def test_the_principal_direction_is_found_with_a_fixed_sign():
    direction = principal_direction(cloud(), np.random.default_rng(0))
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert direction[2] > 0.99


def test_positions_are_standardised_projections():
    z = positions(cloud(), np.eye(6)[1])
    x = cloud().take(torch.arange(N))[:, 1].double().numpy()
    assert np.allclose(z, (x - x.mean()) / x.std())


def test_rows_are_kept_with_the_stated_probability_and_labels_stay():
    labels = np.arange(N) % 4
    shifted = parse_shift("covariate:1,2").apply(labels, 4, 0, inputs=cloud())
    z = positions(cloud(), np.eye(6)[2])
    s = keep_probability(z, 1.0)
    kept = np.isin(np.arange(N), shifted.keep)
    # z-score of the number kept, in each of ten slices of z
    for part in np.array_split(np.argsort(z), 10):
        spread = np.sqrt((s[part] * (1 - s[part])).sum())
        assert abs(kept[part].sum() - s[part].sum()) <= 4 * spread
    assert np.array_equal(shifted.targets, labels[shifted.keep])
    expected = 1 / s[shifted.keep]
    assert np.allclose(shifted.true_weights, expected / expected.mean())


def test_true_weights_bring_back_the_mean_of_the_inputs():
    shifted = parse_shift("covariate:1").apply(np.zeros(N, int), 2, 0, inputs=cloud())
    x = cloud().take(torch.from_numpy(shifted.keep))[:, 2].numpy()
    assert x.mean() < -0.5
    assert np.average(x, weights=shifted.true_weights) == pytest.approx(0, abs=0.25)


def test_trusted_rows_stay_and_count_in_the_weights():
    protected = np.arange(0, N, 10)
    shifted = parse_shift("covariate:2").apply(
        np.zeros(N, int), 1, 0, inputs=cloud(), protected=protected
    )
    assert np.isin(protected, shifted.keep).all()
    # A tenth of the rows come through for sure, so no row can count ten times its share.
    assert shifted.true_weights.max() / shifted.true_weights.min() <= 10 + 1e-9


def test_strength_zero_is_the_identity_and_needs_no_inputs():
    shifted = parse_shift("covariate:0").apply(np.arange(10) % 2, 2, 0)
    assert len(shifted.keep) == 10


def test_wrong_directions_are_refused():
    labels = np.zeros(N, int)
    with pytest.raises(UsageError, match="feature 6, but inputs have 6"):
        parse_shift("covariate:1,6").apply(labels, 1, 0, inputs=cloud())
    flat = TensorInputs(torch.ones(5, 3))
    with pytest.raises(UsageError, match="differ"):
        parse_shift("covariate:1").apply(labels[:5], 1, 0, inputs=flat)
    with pytest.raises(UsageError, match="differ"):
        parse_shift("covariate:1,0").apply(labels[:5], 1, 0, inputs=flat)
    with pytest.raises(ValueError, match="inputs"):
        parse_shift("covariate:1").apply(labels, 1, 0)
