"""Entropy and least squares against other solvers and their definitions."""

import warnings

import clarabel
import numpy as np
import pytest
import qpsolvers
from scipy import sparse
from scipy.spatial.distance import cdist

from diw.errors import DIWWarning, MatchingError
from diw.matching import Chi2, Entropy
from tests.matching.random_problems import random_problem

RNG = np.random.default_rng(0)
CASES = {
    "losses": (RNG.exponential(2.5, 60), RNG.exponential(0.8, 40)),
    "columns": (RNG.normal(size=(50, 2)), RNG.normal(0.5, 1, (30, 2))),
}
ESTIMATORS = {"entropy": Entropy, "chi2": Chi2}


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
    return w * np.log(w) - w + 1


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


def by_cones(train, trusted, gamma, nu, bound, p, q):
    """The optimal weights by clarabel: variables w and t, with t_i ≥ w_i log w_i."""
    K, cross, _ = kernels(train, trusted, gamma)
    n = len(train)
    P = sparse.block_diag([p[:, None] * K * p + 1e-13 * np.eye(n), sparse.csc_matrix((n, n))])
    c = np.concatenate([-p * (cross @ q) - nu * p, nu * p])  # t is w log w
    rows, b, cones = [], [], []
    for i in range(n):  # exponential cone: (x, y, z) with y·exp(x/y) ≤ z
        w, t = sparse.csr_matrix(([1.0], ([0], [i])), (1, 2 * n)), n + i
        minus_t = sparse.csr_matrix(([1.0], ([0], [t])), (1, 2 * n))  # s = b − Ax
        none = sparse.csr_matrix((1, 2 * n))
        rows += [minus_t, -w, none]  # w·exp(−t/w) ≤ 1
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
    found = ESTIMATORS[name](penalty=nu, gamma=0.7, bound=bound).fit(train, trusted)
    assert (found.penalty_, found.gamma_) == (nu, 0.7)
    n, m = len(train), len(trusted)
    p, q = np.full(n, 1 / n), np.full(m, 1 / m)
    solve = by_quadratic_programme if name == "chi2" else by_cones
    theirs = solve(train, trusted, 0.7, nu, bound, p, q)
    parts = kernels(train, trusted, 0.7)

    def objective(w):
        return 0.5 * mmd(w, p, q, *parts) + nu * penalty(name, w).mean()

    assert objective(found.weights_) <= objective(np.clip(theirs, 1e-12, bound)) + 1e-9
    assert np.abs(found.weights_ - theirs).max() <= 1e-3
    assert np.linalg.norm(found.weights_ - theirs) <= found.error_bound_ + 1e-3
    assert found.error_bound_ <= 1e-2
    assert found.mmd_**2 == pytest.approx(mmd(found.weights_, p, q, *parts), abs=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_discrepancy_principle_takes_the_largest_penalty_that_fits(name, case):
    train, trusted = CASES[case]
    found = ESTIMATORS[name](gamma=0.7).fit(train, trusted)
    n, m = len(train), len(trusted)
    p, q = np.full(n, 1 / n), np.full(m, 1 / m)
    parts = kernels(train, trusted, 0.7)
    spread, squares = 1 - q @ parts[2] @ q, (found.weights_**2).mean()
    wanted = spread * (1 / m + squares / (2 * n))
    assert mmd(found.weights_, p, q, *parts) == pytest.approx(wanted, rel=1e-4)
    more = ESTIMATORS[name](gamma=0.7, penalty=1.01 * found.penalty_).fit(train, trusted)
    assert mmd(more.weights_, p, q, *parts) > wanted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_few_training_values_are_not_matched_to_their_own_noise(name):
    """With ten times as many trusted ones, weights are still closer to the ratio than ones."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        train, trusted = rng.normal(size=(100, 2)), rng.normal(0.7, 1, (1000, 2))
        ratio = np.exp(0.7 * train.sum(1) - 0.49)
        weights = ESTIMATORS[name]().fit_weights(train, trusted)
        errors.append([((w / w.mean() - ratio) ** 2).mean() for w in (weights, np.ones(100))])
    ours, equal = np.mean(errors, axis=0)
    assert ours < 0.5 * equal


@pytest.mark.parametrize("name", ESTIMATORS)
def test_equal_weights_where_they_fit(name):
    losses = CASES["losses"][0]
    assert ESTIMATORS[name](gamma=0.5).fit_weights(losses, losses) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("bound", [1.0, 50.0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_discrepancy_out_of_reach_is_proved_and_the_weights_are_nearly_as_close_as_can_be(
    name, bound
):
    """The bound of the status holds for the exact match, which is the closest there is."""
    rng = np.random.default_rng(0)
    train, trusted = rng.uniform(size=200), rng.uniform(1.5, 2.5, 80)
    with pytest.warns(DIWWarning, match="no training values"):
        found = ESTIMATORS[name](gamma=2.0, bound=bound).fit(train, trusted)
    lower = float(found.status_.split("MMD² ")[1].split(",")[0])
    p, q = np.full(200, 1 / 200), np.full(80, 1 / 80)
    K, cross, own = kernels(train, trusted, 2.0)
    closest = qpsolvers.solve_qp(
        K / 200, -(cross @ q), lb=np.zeros(200), ub=np.full(200, bound), solver="piqp"
    )
    least = mmd(closest, p, q, K, cross, own)
    assert lower <= least * 1.01
    assert found.mmd_**2 <= 1.15 * least + 0.02


@pytest.mark.parametrize("name", ESTIMATORS)
def test_random_problems_are_solved_also_where_no_weight_exceeds_one(name):
    for number in range(60):
        train, trusted, options = random_problem(number, largest=80)
        for bound in (1.0, options["bound"]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DIWWarning)
                found = ESTIMATORS[name](gamma=options["gamma"], bound=bound).fit(train, trusted)
            assert 0 <= found.weights_.min() <= found.weights_.max() <= bound
            assert found.predict(train) == pytest.approx(found.weights_, abs=1e-3, rel=1e-3)


@pytest.mark.parametrize("bound", [3.0, 49.0, 50.0])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_at_the_bound_are_at_it_exactly(name, bound):
    rng = np.random.default_rng(1)
    train, trusted = rng.normal(size=(300, 3)), rng.normal(1.5, 0.5, (40, 3))
    options = {"penalty": 1e-4, "bound": bound, "gamma": 1.0}
    assert ESTIMATORS[name](**options).fit(train, trusted).weights_.max() == bound


def test_least_squares_have_exact_zeros():
    weights = Chi2(gamma=0.7, penalty=1e-4).fit_weights(*CASES["losses"])
    assert (weights == 0).any()
    assert (weights >= 0).all()


def test_a_capped_rank_is_approximate():
    found = Entropy(rank=20).fit(RNG.normal(size=(300, 6)), RNG.normal(0.3, 1, (100, 6)))
    assert found.status_ == "approximate"


def test_a_problem_not_solved_is_said():
    with pytest.raises(MatchingError, match="Entropy: not solved to tol=1e-30"):
        Entropy(tol=1e-30).fit(*CASES["losses"])
    with pytest.warns(DIWWarning, match="Chi2: not solved to tol=1e-30"):
        assert Chi2(tol=1e-30, on_failure="warn").fit(*CASES["losses"]).weights_.max() <= 50
