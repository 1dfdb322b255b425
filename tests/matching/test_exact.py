"""Our optimum against the optima of independent solvers, on random problems."""

import numpy as np
import pytest

from diw.matching import kmm, kmm_batch
from tests.matching.oracles import ORACLES, Exact, compare
from tests.matching.random_problems import random_problem

BLOCK = 100


def check(number: int, largest: int, *solvers: str) -> None:
    """Solve problem `number` and hold it against the first of the solvers that has an answer."""
    train, trusted, options = random_problem(number, largest=largest)
    match = kmm(train, trusted, **options)
    where = f"problem {number}, n = {len(train)}, {options}, {match.explanation()}"
    assert match.status == "optimal", where
    assert match.is_optimal(1e-8), where
    exact = Exact.of(train, trusted, **(options | {"gamma": match.gamma}))
    w = match.weights
    assert w.min() >= 0, where
    assert w.max() <= options["bound"], where
    assert abs(w.mean() - 1) <= exact.slack + 1e-14, where
    mine = exact.objective(w)
    assert match.objective == pytest.approx(mine, rel=1e-9, abs=1e-11 * float(w @ w)), where
    gaps = compare(exact, w, *solvers)
    assert gaps is not None, f"{where}: none of {solvers} has an answer"
    # A solver that leaves the feasible set may reach a lower value than there is.
    assert gaps.objective <= 1e-9 + 10 * gaps.infeasible, f"{where}: {gaps}"
    if options["ridge"] >= 1e-3 and gaps.objective >= -1e-9:
        assert gaps.weights <= 1e-4, f"{where}: {gaps}"
    if gaps.solver == "daqp" and gaps.objective >= -1e-13:
        theirs = 1e-4 + np.sqrt(len(w)) * 1e-10 / options["ridge"]
        assert gaps.weights <= match.error_bound + theirs, f"{where}: {gaps}"


@pytest.mark.parametrize("block", range(10))
def test_random_problems_have_the_optimum_of_an_active_set_solver(block):
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        check(number, 300, *ORACLES)


@pytest.mark.parametrize("block", range(10, 12))
def test_random_problems_have_the_optimum_of_an_interior_point(block):
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        check(number, 100, "piqp", *ORACLES)


@pytest.mark.parametrize("block", range(12, 13))
def test_random_problems_have_the_optimum_of_highs(block):
    for number in range(block * BLOCK, block * BLOCK + 40):
        check(number, 25, "highs", *ORACLES)


@pytest.mark.parametrize(
    "options",
    [{}, {"bound": 1.5, "slack": 0.05}, {"gamma": "quantile:0.01", "ridge": 1e-3}],
    ids=str,
)
def test_a_batch_of_random_problems_has_the_optimum_of_each(options):
    drawn = [random_problem(number, largest=80)[:2] for number in range(60)]
    trains, trusteds = zip(*drawn, strict=True)
    for train, trusted, match in zip(
        trains, trusteds, kmm_batch(trains, trusteds, **options), strict=True
    ):
        assert match.is_optimal()
        alone = kmm(train, trusted, **options)
        assert match.objective == pytest.approx(alone.objective, rel=1e-9, abs=1e-12)
        assert np.linalg.norm(match.weights - alone.weights) <= (
            match.error_bound + alone.error_bound
        )


@pytest.mark.parametrize("n", [600, 1000])
def test_large_full_rank_problems_have_the_optimum_of_another_solver(n):
    rng = np.random.default_rng(n)
    train, trusted = rng.normal(size=(n, 8)), rng.normal(size=(60, 8)) + 0.3
    match = kmm(train, trusted, gamma=0.2, ridge=1e-3)
    assert match.rank == n
    exact = Exact.of(train, trusted, gamma=0.2, ridge=1e-3, bound=50.0, slack=None)
    gaps = compare(exact, match.weights, "piqp", "cvxopt", "daqp")
    assert gaps is not None
    assert abs(gaps.objective) <= 1e-9
    assert gaps.weights <= 1e-4


def test_cvxopt_at_a_tight_tolerance_agrees():
    cvxopt = pytest.importorskip("cvxopt")
    rng = np.random.default_rng(3)
    train, trusted = rng.exponential(size=120), rng.exponential(size=80) / 2
    match = kmm(train, trusted, ridge=1e-3, bound=3.0)
    exact = Exact.of(train, trusted, gamma=match.gamma, ridge=1e-3, bound=3.0, slack=None)
    n = len(train)
    G = np.vstack([np.ones(n), -np.ones(n), np.eye(n), -np.eye(n)])
    h = np.r_[n * (1 + exact.slack), n * (exact.slack - 1), np.full(n, 3.0), np.zeros(n)]
    tight = {"show_progress": False, "abstol": 1e-13, "reltol": 1e-13, "feastol": 1e-13}
    answer = cvxopt.solvers.qp(
        *map(cvxopt.matrix, (exact.K + 1e-3 * np.eye(n), -exact.k, G, h)), options=tight
    )
    theirs = np.array(answer["x"])[:, 0]
    assert exact.objective(match.weights) <= exact.objective(theirs) * (1 - 1e-12) or np.isclose(
        exact.objective(match.weights), exact.objective(theirs), rtol=1e-9
    )
    assert np.abs(match.weights - theirs).max() <= 1e-4
