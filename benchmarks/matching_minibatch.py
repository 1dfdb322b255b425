"""Mini-batches of DIW: our solver against cvxopt, five others and the released way.

The problems are recorded: losses (n = m = 256) and last hidden outputs of a LeNet-5
during training on noisy labels (`scripts/record_minibatches.py`). Every contender starts
from the values and ends with the weights: the width of the kernel and the
kernel matrix are part of its time. Competitors run at their default tolerances.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import qpsolvers
from scipy.spatial.distance import pdist

from benchmarks.measuring import Row, Times, take_turns
from diw.matching import kmm, kmm_batch

RECORDED = Path(__file__).parents[1] / "tests" / "matching" / "minibatches.npz"
RIDGE, BOUND = 1e-5, 50.0
OTHERS = ("daqp", "piqp", "proxqp", "osqp", "highs")
FIRST_RULE, FURTHER_RULES = "quantile:0.01", ("median", "quantile:0.99")
TURNS = 3
RELEASED_CALLS = 6


@dataclass(frozen=True)
class Losses:
    """The losses of one training and one trusted mini-batch."""

    train: np.ndarray
    trusted: np.ndarray


def losses() -> list[Losses]:
    """48 recorded mini-batches: 24 under symmetric noise and 24 under pair flips, in turn."""
    with np.load(RECORDED) as file:
        return [
            Losses(file[f"{kind}_train"][i], file[f"{kind}_trusted"][i])
            for i in range(len(file["symmetric_train"]))
            for kind in ("symmetric", "pair")
        ]


def width(x: np.ndarray, rule: str) -> float:
    """The kernel's γ by the rules of `diw.matching.problem`, from SciPy's list of all distances."""
    distances = pdist(x[:, None])
    if rule == "median":
        return float(1 / (2 * np.median(distances) ** 2))
    return float(np.quantile(distances, float(rule.partition(":")[2])))


def width_by_loop(x: np.ndarray) -> float:
    """The same at 1%, pair by pair in Python, as the released example does."""
    rows = x[:, None]
    distances = []
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            distances.append(np.sqrt(np.sum((rows[i] - rows[j]) ** 2)))
    return float(np.quantile(np.array(distances), 0.01))


def kernels(batch: Losses, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """K + ωI and k."""
    x, z = batch.train.astype(np.float64), batch.trusted.astype(np.float64)
    K = np.exp(-gamma * (x[:, None] - x) ** 2)
    K.flat[:: len(x) + 1] += RIDGE
    k = np.exp(-gamma * (x[:, None] - z) ** 2).sum(1) * (len(x) / len(z))
    return K, k


def constraints(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The band of the mean as Gw ≤ h."""
    slack = (np.sqrt(n) - 1) / np.sqrt(n)
    return np.vstack([np.ones(n), -np.ones(n)]), n * np.array([1 + slack, slack - 1])


def by_cvxopt(batch: Losses, gamma: float) -> np.ndarray:
    """The weights by cvxopt at its default tolerance."""
    from cvxopt import matrix, solvers

    K, k = kernels(batch, gamma)
    n = len(k)
    G, h = constraints(n)
    G = np.vstack([G, np.eye(n), -np.eye(n)])
    h = np.r_[h, np.full(n, BOUND), np.zeros(n)]
    arguments = (matrix(part) for part in (K, -k, G, h))
    return np.array(solvers.qp(*arguments, options={"show_progress": False})["x"])[:, 0]


def by_other(batch: Losses, gamma: float, solver: str) -> np.ndarray | None:
    """The weights by a solver of qpsolvers; None when it gives up."""
    K, k = kernels(batch, gamma)
    n = len(k)
    G, h = constraints(n)
    bounds = {"lb": np.zeros(n), "ub": np.full(n, BOUND)}
    try:
        return qpsolvers.solve_qp(K, -k, G, h, solver=solver, **bounds)
    except qpsolvers.exceptions.SolverError:
        return None


def contenders(rule: str) -> dict[str, Callable[[Losses], Any]]:
    """Ours first, then those this environment has."""
    found: dict[str, Callable[[Losses], Any]] = {
        "ours": lambda batch: kmm(batch.train, batch.trusted, gamma=rule).weights
    }
    if "cvxopt" in qpsolvers.available_solvers:
        found["cvxopt"] = lambda batch: by_cvxopt(batch, width(batch.train, rule))
    if rule != FIRST_RULE:
        return found
    for name in OTHERS:
        if name in qpsolvers.available_solvers:
            found[name] = lambda batch, name=name: by_other(batch, width(batch.train, rule), name)
    if "cvxopt" in found:
        found["released way"] = lambda batch: by_cvxopt(batch, width_by_loop(batch.train))
    return found


def goal(rule: str, competitor: str) -> float:
    """The part of a competitor's time that ours may take."""
    if rule != FIRST_RULE:
        return 1 / 3
    return {"cvxopt": 1 / 10, "released way": 1 / 150}.get(competitor, 1 / 5)


def objective_gap(batch: Losses, rule: str, ours: np.ndarray, theirs: np.ndarray | None) -> float:
    """How far their objective is above ours, relative to ours; NaN when they gave up."""
    if theirs is None:
        return float("nan")
    K, k = kernels(batch, width(batch.train.astype(np.float64), rule))
    mine, other = (0.5 * w @ (K @ w) - k @ w for w in (np.asarray(ours, np.float64), theirs))
    return float((other - mine) / abs(mine))


def loss_rows(rule: str, quick: bool) -> list[Row]:
    """Ours against each contender at one rule."""
    batches = losses()[:: 6 if quick else 1] * (1 if quick else TURNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other solvers' remarks on dense input
        times, answers = take_turns(contenders(rule), batches, {"released way": RELEASED_CALLS})
    rows = []
    for name in times:
        if name == "ours":
            continue
        quotient = goal(rule, name)
        gaps = [
            objective_gap(batch, rule, ours, theirs)
            for batch, ours, theirs in zip(batches, answers["ours"], answers[name], strict=False)
        ]
        gave_up = int(np.isnan(gaps).sum())
        note = f"its objective minus ours: {np.nanmin(gaps):.0e} to {np.nanmax(gaps):.0e}, relative"
        row = Row(
            f"256 losses, {rule}", times["ours"], f"1/{1 / quotient:.0f}", None, name, times[name],
            note + (f"; gave up on {gave_up} of {len(gaps)}" if gave_up else ""),
        )  # fmt: skip
        assert row.ratio is not None
        rows.append(Row(**(vars(row) | {"reached": row.ratio <= quotient})))
    return rows or [Row(f"256 losses, {rule}", times["ours"], "", None, note="no competitor here")]


def stopped_row(quick: bool) -> Row:
    """Our early stop against cvxopt, which it stops with: the same weights in less time."""
    names = {"ours": "stopped", "cvxopt": "cvxopt"}
    if "cvxopt" not in qpsolvers.available_solvers:
        del names["cvxopt"]
    contenders: dict[str, Callable[[Losses], Any]] = {
        name: lambda batch, solver=solver: kmm(batch.train, batch.trusted, solver=solver).weights
        for name, solver in names.items()
    }
    times, answers = take_turns(contenders, losses()[:: 6 if quick else 1], {})
    problem = f"256 losses, {FIRST_RULE}, stopped"
    if "cvxopt" not in names:
        return Row(problem, times["ours"], "", None, note="no competitor here")
    pairs = zip(answers["ours"], answers["cvxopt"], strict=True)
    difference = np.mean([np.abs(ours - theirs).mean() for ours, theirs in pairs])
    note = f"mean absolute difference of the weights: {difference:.0e}"
    row = Row(problem, times["ours"], "1/4", None, "cvxopt", times["cvxopt"], note)
    assert row.ratio is not None
    return Row(**(vars(row) | {"reached": row.ratio <= 1 / 4}))


def partition_row(quick: bool) -> Row:
    """The -F step: the classes of one mini-batch, 84 features, in one call."""
    with np.load(RECORDED) as file:
        train, trusted = file["features_train"], file["features_trusted"]
        labels, checked = file["labels_train"], file["labels_trusted"]
    classes = [c for c in np.unique(labels) if (checked == c).any()]
    parts = [train[labels == c] for c in classes], [trusted[checked == c] for c in classes]
    times = Times()
    kmm_batch(*parts)
    for _ in range(20 if quick else 300):
        times.call(kmm_batch, *parts)
    reached = bool(np.median(times.wall) <= 5e-3)
    problem = f"{len(classes)} classes of about {len(train) // len(classes)} × {train.shape[1]}"
    return Row(problem, times, "5 ms", reached)


def rows(quick: bool) -> list[Row]:
    """All lines of the table that a mini-batch is in."""
    found = [row for rule in (FIRST_RULE, *FURTHER_RULES) for row in loss_rows(rule, quick)]
    return [*found, stopped_row(quick), partition_row(quick)]
