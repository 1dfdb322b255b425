"""Kernel models of the ratio by least squares, against their definitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from diw.matching import ULSIF
from diw.matching.ulsif import spread_out

RNG = np.random.default_rng(1)
TRAIN, TRUSTED = RNG.normal(size=(80, 2)), RNG.normal(0.6, 0.8, (50, 2))
GAMMA = 0.4


def features(z, centres=TRUSTED):
    return np.exp(-GAMMA * cdist(z, centres, "sqeuclidean"))


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_it_is_its_closed_form(alpha):
    found = ULSIF(alpha=alpha, gamma=GAMMA, penalty=0.1).fit(TRAIN, TRUSTED)
    A, T = features(TRAIN), features(TRUSTED)
    H = (1 - alpha) * A.T @ A / 80 + alpha * T.T @ T / 50
    theta = np.maximum(np.linalg.solve(H + 0.1 * np.eye(50), T.mean(0)), 0)
    assert found.weights_ == pytest.approx(A @ theta, rel=1e-9, abs=1e-12)
    new = RNG.normal(size=(9, 2))
    assert found.predict(new) == pytest.approx(features(new) @ theta, rel=1e-9)
    assert (found.penalty_, found.gamma_) == (0.1, GAMMA)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_what_is_chosen_errs_little_on_values_it_has_not_seen(alpha):
    """½ mean r² − mean r, which least squares minimise, on a fresh draw."""
    rng = np.random.default_rng(2)

    def drawn():
        return rng.normal(size=(400, 1)), rng.normal(1, 0.5, (300, 1))

    train, trusted = drawn()
    new, new_trusted = drawn()

    def unseen(gamma, penalty):
        found = ULSIF(alpha=alpha, gamma=gamma, penalty=penalty).fit(train, trusted)
        ours, theirs = found.predict(new), found.predict(new_trusted)
        return 0.5 * ((1 - alpha) * (ours**2).mean() + alpha * (theirs**2).mean()) - theirs.mean()

    chosen = ULSIF(alpha=alpha).fit(train, trusted)
    least = unseen(chosen.gamma_, chosen.penalty_)
    assert least <= min(unseen(g, p) for g in (0.05, 1.0, 20.0) for p in (1e-3, 0.1, 10.0)) + 0.02


def test_relative_ratios_are_bounded():
    rng = np.random.default_rng(3)
    train, trusted = rng.normal(size=500), rng.normal(1.5, 0.3, 300)
    plain, relative = (ULSIF(alpha=alpha).fit(train, trusted).weights_ for alpha in (0, 0.5))
    assert relative.max() <= 2.2 < plain.max()


def test_centres_are_spread_out():
    values = np.repeat(np.linspace(0, 1, 5), 30)[:, None]
    assert sorted(values[spread_out(values, 30), 0]) == pytest.approx(np.linspace(0, 1, 5))
    line = np.linspace(0, 1, 101)[:, None]
    chosen = np.sort(line[spread_out(line, 5), 0])
    assert chosen == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.011)


def test_the_bound_holds():
    assert ULSIF(bound=1.2).fit_weights(TRAIN, TRUSTED).max() <= 1.2
