"""Empirical likelihood, entropy and least squares against a cone solver and their definitions."""

import clarabel
import numpy as np
import pytest
import qpsolvers
from scipy import sparse
from scipy.spatial.distance import cdist

from diw.matching import EL, Chi2, Entropy, chi2, el, entropy, kmm, kmm_batch

RNG = np.random.default_rng(0)
CASES = {
    "losses": (RNG.exponential(2.5, 60), RNG.exponential(0.8, 40)),
    "columns": (RNG.normal(size=(50, 2)), RNG.normal(0.5, 1, (30, 2))),
}
ESTIMATORS = {"el": el, "entropy": entropy, "chi2": chi2}


def kernels(train, trusted, gamma):
    a, b = np.reshape(train, (len(train), -1)), np.reshape(trusted, (len(trusted), -1))
    return tuple(np.exp(-gamma * cdist(x, y, "sqeuclidean")) for x, y in ((a, a), (a, b), (b, b)))


def mmd(w, p, q, K, cross, own) -> float:
    """‖Σ p_i w_i φ(z_i) − Σ q_j φ(z'_j)‖² for shares p and q."""
    v = p * w
    return float(v @ K @ v - 2 * v @ cross @ q + q @ own @ q)


def penalty(name, w):
    if name == "chi2":
        return (w - 1) ** 2 / 2
    return w - 1 - np.log(w) if name == "el" else w * np.log(w) - w + 1


def by_quadratic_programme(train, trusted, gamma, nu, bound, p, q):
    """The optimal weights of "chi2" by piqp."""
    K, cross, _ = kernels(train, trusted, gamma)
    n = len(train)
    P, c = p[:, None] * K * p + nu * np.diag(p), -p * (cross @ q) - nu * p
    scale = 1 / np.abs(P).max()  # its tolerances are absolute
    return qpsolvers.solve_qp(
        scale * P, scale * c, lb=np.zeros(n), ub=np.full(n, bound), solver="piqp",
        eps_abs=1e-12, eps_rel=1e-12,
    )  # fmt: skip


def by_cones(name, train, trusted, gamma, nu, bound, p, q):
    """The optimal weights by clarabel: variables w and t, with t_i ≥ the curved part of p(w_i)."""
    K, cross, _ = kernels(train, trusted, gamma)
    n = len(train)
    P = sparse.block_diag([p[:, None] * K * p + 1e-13 * np.eye(n), sparse.csc_matrix((n, n))])
    linear = nu * p * (1.0 if name == "el" else -1.0)  # t is −log w, or w log w
    c = np.concatenate([-p * (cross @ q) + linear, nu * p])
    rows, b, cones = [], [], []
    for i in range(n):  # exponential cone: (x, y, z) with y·exp(x/y) ≤ z
        w, t = sparse.csr_matrix(([1.0], ([0], [i])), (1, 2 * n)), n + i
        minus_t = sparse.csr_matrix(([1.0], ([0], [t])), (1, 2 * n))  # s = b − Ax
        none = sparse.csr_matrix((1, 2 * n))
        if name == "el":  # exp(−t) ≤ w
            rows += [minus_t, none, -w]
            b += [0.0, 1.0, 0.0]
        else:  # w·exp(−t/w) ≤ 1
            rows += [minus_t, -w, none]
            b += [0.0, 0.0, 1.0]
        cones.append(clarabel.ExponentialConeT())
    rows.append(sparse.hstack([sparse.eye(n), sparse.csr_matrix((n, n))]))
    b += [bound] * n
    cones.append(clarabel.NonnegativeConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sparse.vstack(rows).tocsc()
    answer = clarabel.DefaultSolver(
        sparse.triu(P).tocsc(), c, A, np.array(b), cones, settings
    ).solve()
    return np.array(answer.x)[:n]


@pytest.mark.parametrize("nu", [1e-3, 3e-2, 1.0])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("bound", [1.3, 50.0])
def test_a_fixed_penalty_has_the_optimum_of_a_cone_solver(name, case, nu, bound):
    train, trusted = CASES[case]
    match = ESTIMATORS[name](train, trusted, penalty=nu, gamma=0.7, bound=bound)
    assert match.is_optimal()
    assert match.penalty == nu
    n, m = len(train), len(trusted)
    p, q = np.full(n, 1 / n), np.full(m, 1 / m)
    if name == "chi2":
        theirs = by_quadratic_programme(train, trusted, 0.7, nu, bound, p, q)
    else:
        theirs = by_cones(name, train, trusted, 0.7, nu, bound, p, q)
    parts = kernels(train, trusted, 0.7)

    def objective(w):
        return 0.5 * mmd(w, p, q, *parts) + nu * penalty(name, w).mean()

    assert match.objective == pytest.approx(objective(match.weights), rel=1e-9, abs=1e-13)
    assert match.objective <= objective(np.clip(theirs, 1e-12, bound)) + 1e-9
    assert np.abs(match.weights - theirs).max() <= 1e-3
    assert match.error_bound <= 1e-2


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_mass_is_as_many_copies(name):
    train, trusted = CASES["losses"]
    mass, trusted_mass = RNG.integers(1, 4, len(train)), RNG.integers(1, 4, len(trusted))
    gathered = ESTIMATORS[name](
        train, trusted, gamma=0.7, train_mass=mass, trusted_mass=trusted_mass
    )
    copies = np.repeat(train, mass)
    spread = ESTIMATORS[name](copies, np.repeat(trusted, trusted_mass), gamma=0.7)
    assert gathered.penalty == pytest.approx(spread.penalty, rel=1e-4)
    assert np.abs(np.repeat(gathered.weights, mass) - spread.weights).max() <= 1e-4


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_discrepancy_principle_takes_the_largest_penalty_that_fits(name, case):
    train, trusted = CASES[case]
    match = ESTIMATORS[name](train, trusted, gamma=0.7)
    assert match.is_optimal()
    n, m = len(train), len(trusted)
    p, q = np.full(n, 1 / n), np.full(m, 1 / m)
    parts = kernels(train, trusted, 0.7)
    wanted = (1 - q @ parts[2] @ q) / m
    assert mmd(match.weights, p, q, *parts) == pytest.approx(wanted, rel=1e-4)
    more = ESTIMATORS[name](train, trusted, gamma=0.7, penalty=1.01 * match.penalty)
    assert mmd(more.weights, p, q, *parts) > wanted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_weights_where_they_fit(name):
    match = ESTIMATORS[name](CASES["losses"][0], CASES["losses"][0], gamma=0.5)
    assert match.is_optimal()
    assert np.abs(match.weights - 1).max() <= 1e-4


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_discrepancy_out_of_reach_says_so(name):
    match = ESTIMATORS[name](RNG.normal(size=50), RNG.normal(50, 1, 40), gamma=1.0)
    assert "the discrepancy is not met" in match.status
    assert np.isfinite(match.weights).all()


@pytest.mark.parametrize("bound", [3.0, 49.0, 50.0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_at_the_bound_are_at_it_exactly_and_take_few_steps(name, bound):
    rng = np.random.default_rng(1)
    train, trusted = rng.normal(size=(300, 3)), rng.normal(1.5, 0.5, (40, 3))
    match = ESTIMATORS[name](train, trusted, penalty=1e-4, bound=bound, gamma=1.0)
    assert match.is_optimal()
    assert match.weights.max() == bound
    assert match.iterations <= 40


def test_least_squares_have_exact_zeros():
    train, trusted = CASES["losses"]
    weights = chi2(train, trusted, gamma=0.7, penalty=1e-4).weights
    assert (weights == 0).any()
    assert (weights >= 0).all()


def test_a_capped_rank_is_approximate():
    match = el(RNG.normal(size=(300, 6)), RNG.normal(0.3, 1, (100, 6)), rank=20)
    assert match.status == "approximate"
    assert match.rank == 20
    assert match.trace_error > 0


def test_the_front_door_gives_the_same():
    train, trusted = CASES["losses"]
    for name, function in ESTIMATORS.items():
        direct = function(train, trusted).weights
        assert np.array_equal(kmm(train, trusted, solver=name).weights, direct)
        assert np.array_equal(kmm_batch([train], [trusted], solver=name)[0].weights, direct)
    assert np.array_equal(EL().fit_weights(train, trusted), el(train, trusted).weights)
    assert np.array_equal(Entropy().fit_weights(train, trusted), entropy(train, trusted).weights)
    assert np.array_equal(Chi2().fit_weights(train, trusted), chi2(train, trusted).weights)
    assert repr(EL(penalty=0.1)) == "EL(penalty=0.1)"


BAD = {
    "penalty: must be positive": {"penalty": 0.0},
    "train_mass: needs one number": {"train_mass": [1.0]},
    "train_mass: holds negative": {"train_mass": np.full(60, -1.0)},
    "trusted_mass: all masses": {"trusted_mass": np.zeros(40)},
    "trusted_mass: is not": {"trusted_mass": "many"},
}


@pytest.mark.parametrize("message", BAD)
def test_wrong_use_names_the_argument(message):
    with pytest.raises(ValueError) as error:
        el(*CASES["losses"], **BAD[message])
    assert str(error.value).startswith(message)
