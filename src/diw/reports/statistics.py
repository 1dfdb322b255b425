"""Methods over paired trials: means, deviations, and which differences are significant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

LEVEL = 0.05
"""Of all tests: below it a method is worse."""
MARK_FROM = 3
"""The fewest shared seeds with which `diw compare` claims a test."""

Mark = Literal["best", "comparable", "worse"]


@dataclass(frozen=True)
class Standing:
    """One method's trials, and where they stand against the best method's."""

    mean: float
    std: float | None
    """Over trials, with n − 1; None for a single trial."""
    trials: int
    mark: Mark | None = None
    """None where too few trials are shared to claim anything."""
    p_value: float | None = None
    """Of the paired test against the best method; None for the best itself."""
    difference: float | None = None
    """Mean of this method minus the best, over the seeds that both have; None for the best."""
    interval: tuple[float, float] | None = None
    """95% confidence interval of the difference, from paired trials; None below two of them."""


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and the standard deviation with n − 1; None in its place for a single value."""
    if len(values) == 0:
        raise ValueError("values: needs at least one trial")
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of the paired t-test.

    Differences without variance leave the statistic undefined; then the answer
    is its limit: 1 where the trials are equal, 0 where they differ by a constant.

    Args:
        first: One method's trials, shape (trials,), at least two.
        second: The other's, in the same order of seeds.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if differences.ndim != 1 or differences.size < 2:
        raise ValueError("first, second: a paired test needs at least two trials")
    rounding = 1e-12 * max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))
    if np.ptp(differences) <= rounding:
        return 1.0 if abs(differences[0]) <= rounding else 0.0
    from scipy.stats import ttest_rel

    return float(ttest_rel(first, second).pvalue)


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """The 95% confidence interval of the mean of first − second, by the paired t-test.

    d̄ ± t s / √n with n − 1 degrees of freedom; it excludes zero where `paired_p_value` is below 5%.

    Args:
        first: One method's trials, shape (trials,), at least two.
        second: The other's, in the same order of seeds.
    """
    from scipy.stats import t

    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if differences.ndim != 1 or differences.size < 2:
        raise ValueError("first, second: a paired interval needs at least two trials")
    centre = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(differences.size)
    half = float(t.ppf(1 - LEVEL / 2, differences.size - 1)) * float(error)
    return centre - half, centre + half


def standings(
    trials: Mapping[str, Mapping[int, float]],
    *,
    min_trials: int = MARK_FROM,
    higher_is_better: bool = True,
    resolution: float = 0.0,
) -> dict[str, Standing]:
    """Mark the best method and those that a paired t-test cannot distinguish from it.

    The best is the one with the best mean among those with enough trials; the
    others are compared with it on the seeds that both have. Where fewer than two
    methods have enough trials none is marked, and differences are those to the best mean of all.

    Args:
        trials: For each method its value by seed.
        min_trials: The fewest shared seeds for a mark, at least 2.
        higher_is_better: False for errors and distances.
        resolution: Means closer than this are comparable whatever the test says.
    """
    if min_trials < 2:
        raise ValueError(f"min_trials: a paired test needs at least 2, got {min_trials}")
    found = {
        name: Standing(*mean_and_std(list(values.values())), trials=len(values))
        for name, values in trials.items()
    }
    sign = 1.0 if higher_is_better else -1.0
    candidates = [name for name, standing in found.items() if standing.trials >= min_trials]
    if len(found) < 2:
        return found
    marked = len(candidates) >= 2
    best = max(candidates if marked else found, key=lambda name: sign * found[name].mean)
    if marked:
        found[best] = replace(found[best], mark="best")
    for name in found.keys() - {best}:
        own, shared = trials[name], sorted(trials[name].keys() & trials[best].keys())
        pairs = [own[s] for s in shared], [trials[best][s] for s in shared]
        if shared:
            found[name] = replace(
                found[name],
                difference=float(np.mean(pairs[0]) - np.mean(pairs[1])),
                interval=paired_interval(*pairs) if len(shared) > 1 else None,
            )
        if not marked:
            continue
        if len(shared) >= min_trials:
            p_value = paired_p_value(*pairs)
            apart = abs(found[best].mean - found[name].mean) >= resolution
            mark: Mark = "worse" if p_value < LEVEL and apart else "comparable"
            found[name] = replace(found[name], mark=mark, p_value=p_value)
    return found
