"""How often each interval that a command prints holds the truth, and how often a test errs.

    python -m benchmarks intervals [--quick] [--save]

All 95% intervals besides that of the share of wrong labels in an audit (`label_share`): share of
wrong labels, ratios of classes and share of samples outside in `diw diagnose`, differences of
methods in a comparison. And the p-values of the diagnosis where nothing differs. With `--save` it
goes on where it was stopped.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import machine
from diw.auditing import diagnose
from diw.auditing.shift_tests import class_ratios, outside_share
from diw.files import write_json
from diw.reports import paired_interval

RESULTS = Path(__file__).parent / "results" / "intervals.json"
COMMAND = "python -m benchmarks intervals --save"
DRAWS, NULL_DRAWS = 200, 400
"""Of a draw the number is the seed."""
LEVELS = (0.01, 0.05, 0.1)
CLASSES = 3

Floats = NDArray[np.float64]
Cell = dict[str, Any]
Case = Callable[[np.random.Generator, int], Cell]
"""(generator, number of the draw) → the numbers of one draw."""


def normal(rng: np.random.Generator, rows: int, apart: float) -> tuple[Floats, Any]:
    """Inputs (n, 5) and classes (n,): normal, the means of classes √2 `apart` deviations away."""
    y = rng.integers(0, CLASSES, rows)
    return rng.normal(size=(rows, 5)) + apart * np.eye(5)[y], y


def share(m: int, apart: float, wrong: float) -> Case:
    """The share of wrong labels that `diagnose` finds, 500 rows and m trusted ones."""

    def case(rng: np.random.Generator, seed: int) -> Cell:
        x, y = normal(rng, 500 + m, apart)
        flipped = np.arange(len(y)) < np.where(rng.random(len(y)) < wrong, 500, 0)
        given = np.where(flipped, (y + rng.integers(1, CLASSES, len(y))) % CLASSES, y)
        found = diagnose(x[:500], given[:500], x[500:], y[500:], seed=seed).noise
        truth = float(flipped[:500].mean())
        return {
            "held": bool(found.low <= truth <= found.high) if np.isfinite(found.share) else None,
            "width": found.high - found.low,
        }

    return case


def ratio(m: int) -> Case:
    """The ratio of a class among m trusted and 500 other labels: 10% and 30% of them."""

    def case(rng: np.random.Generator, seed: int) -> Cell:
        train, trusted = (
            rng.multinomial(rows, p) for rows, p in zip((500, m), _SHARES, strict=True)
        )
        _, low, high = class_ratios(train, trusted)[0]
        return {"held": bool(low <= 3 <= high), "width": high - low}

    return case


_SHARES = ((0.1, 0.3, 0.6), (0.3, 0.3, 0.4))


def outside(m: int, moved: float) -> Case:
    """The share of m trusted samples outside of 500 others, against that of 5,000 more of them."""

    def case(rng: np.random.Generator, seed: int) -> Cell:
        train, trusted = rng.normal(size=(500, 5)), rng.normal(size=(5_000 + m, 5)) + moved
        truth, _, _ = outside_share(np.concatenate([train, trusted]), len(trusted), seed)
        found = outside_share(np.concatenate([train, trusted[:m]]), m, seed)
        return {"held": found[1] <= truth <= found[2], "width": found[2] - found[1]}

    return case


def difference(seeds: int, failing: float) -> Case:
    """The difference of two methods' accuracies on 2,000 test rows: 88% and 86%.

    In a share `failing` of the seeds the second ends 10 points lower: no normal differences.
    """

    def case(rng: np.random.Generator, seed: int) -> Cell:
        common = rng.normal(scale=0.005, size=seeds)
        own = rng.normal(scale=0.005, size=(2, seeds))
        failed = 0.1 * (rng.random(seeds) < failing)
        right = np.clip(np.array([0.88 + common + own[0], 0.86 + common + own[1] - failed]), 0, 1)
        first, second = rng.binomial(2000, right) / 2000
        low, high = paired_interval(list(first), list(second))
        return {"held": low <= 0.02 + 0.1 * failing <= high, "width": high - low}

    return case


INTERVALS: dict[str, Case] = {
    **{
        f"wrong labels, {m} trusted, classes {apart} apart, {wrong:.0%} wrong": share(
            m, apart, wrong
        )
        for m in (50, 150)
        for apart in (0.0, 1.0, 2.5)
        for wrong in (0.0, 0.2)
    },
    **{f"ratio of a class, {m} trusted": ratio(m) for m in (50, 500)},
    **{
        f"outside, {m} trusted, {'moved' if moved else 'not moved'}": outside(m, moved)
        for m in (50, 500)
        for moved in (0.0, 1.0)
    },
    **{
        f"difference, {seeds} seeds{', one in five fails' if failing else ''}": difference(
            seeds, failing
        )
        for seeds in (3, 5, 10)
        for failing in (0.0, 0.2)
    },
}


def words(rng: np.random.Generator, rows: int) -> tuple[Floats, Any]:
    """Zeros and ones, with many equal rows."""
    y = rng.integers(0, CLASSES, rows)
    return (rng.random((rows, 6)) < 0.2 + 0.6 * np.eye(6)[y]).astype(float), y


def heavy(rng: np.random.Generator, rows: int) -> tuple[Floats, Any]:
    """Inputs without a variance, one of them in units ten thousand times as large."""
    x, y = normal(rng, rows, 2.0)
    return (x + rng.standard_t(1.5, x.shape)) * np.array([1e4, 1, 1, 1, 1]), y


def rare(rng: np.random.Generator, rows: int) -> tuple[Floats, Any]:
    """Eight classes, the rarest of which has one row in a hundred."""
    y = rng.choice(8, rows, p=np.array([30, 25, 18, 12, 8, 4, 2, 1]) / 100)
    return rng.normal(size=(rows, 8)) + 2 * np.eye(8)[y], y


NULL: dict[str, tuple[Callable[[np.random.Generator, int], tuple[Floats, Any]], int, int]] = {
    "normal, 500 and 100 rows": (lambda rng, rows: normal(rng, rows, 2.0), 500, 100),
    "normal, 200 and 30 rows": (lambda rng, rows: normal(rng, rows, 2.0), 200, 30),
    "nothing to learn, 500 and 100 rows": (lambda rng, rows: normal(rng, rows, 0.0), 500, 100),
    "words, 500 and 100 rows": (words, 500, 100),
    "heavy tails, 500 and 100 rows": (heavy, 500, 100),
    "eight classes, 500 and 100 rows": (rare, 500, 100),
}


def covered(case: Case, draws: int) -> Cell:
    """How often intervals of a case hold the truth, and their mean width."""
    made = [case(np.random.default_rng([seed, 40]), seed) for seed in range(draws)]
    given = [one for one in made if one["held"] is not None]
    return {
        "held": sum(one["held"] for one in given),
        "of": len(given),
        "width": round(float(np.mean([one["width"] for one in given])), 4),
    }


def null(name: str, draws: int) -> Cell:
    """How often each test is below each level where nothing differs, and a shift is called."""
    make, n, m = NULL[name]
    found: list[Any] = []
    for seed in range(draws):
        x, y = make(np.random.default_rng([seed, 41]), n + m)
        found.append(diagnose(x[:n], y[:n], x[n:], y[n:], seed=seed))
    below = {
        test: {str(level): sum(one.p_values[test] <= level for one in found) for level in LEVELS}
        for test in ("features", "labels", "losses")
    }
    return {"of": draws, "below": below, "called": sum(bool(one.shifts) for one in found)}


def main(quick: bool = False, save: bool = False) -> None:
    """Print the shares, and with `save` write them, each as soon as it is known."""
    draws, null_draws = (20, 20) if quick else (DRAWS, NULL_DRAWS)
    kept: Cell = json.loads(RESULTS.read_text()) if save and RESULTS.exists() else {}
    for part, names, measure in (
        ("intervals", list(INTERVALS), lambda name: covered(INTERVALS[name], draws)),
        ("null", list(NULL), lambda name: null(name, null_draws)),
    ):
        cells: Cell = kept.setdefault(part, {})
        for name in names:
            if name not in cells:
                cells[name] = measure(name)
                if save:
                    write_json(RESULTS, {"machine": machine(), "command": COMMAND, **kept})
            print(f"{name}: {cells[name]}", flush=True)


if __name__ == "__main__":
    main(save=True)
