"""Rounds of drawing, checking and reading: how often the interval holds the share, how wide it is.

    python -m benchmarks trust [--quick] [--save]

1,000 rounds for each way of drawing, on tables of 5,000 rows in ten classes of very different
size (from 40% to 1%), with about 5% and 40% wrong labels, which are more common in some classes
and among some rows: for informed drawing a model knows that in part. Each round checks 100 rows;
for informed drawing the first 50 are in proportion to the classes. `docs/trust.md` shows the
figures.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from diw.files import write_json
from diw.trust import Draw, draw_rows, known
from diw.trust.draw import INFORMED, RANDOM, STRATIFIED, WAYS, Round
from diw.trust.sheet import Answer

RESULTS = Path(__file__).parent / "results" / "trust.json"
SIZES = np.array([0.4, 0.2, 0.12, 0.08, 0.06, 0.05, 0.04, 0.03, 0.01, 0.01])
ROWS, CHECKED, ROUNDS = 5000, 100, 1000
RATES = 0.05, 0.4


def table(rate: float, seed: int) -> tuple[Any, Any, Any]:
    """Given labels (n,), which of them are wrong, and how probably a model thinks so."""
    rng = np.random.default_rng([seed, int(100 * rate)])
    given = rng.choice(len(SIZES), ROWS, p=SIZES)
    by_class = rng.gamma(2.0, 1.0, len(SIZES))
    doubt = by_class[given] * rng.gamma(0.5, 1.0, ROWS)
    low, high = 0.0, 1e6
    for _ in range(60):  # the scale at which so many are wrong
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - np.exp(-middle * doubt)).mean() < rate else (low, middle)
    truth = 1 - np.exp(-low * doubt)
    logits = np.log(truth + 1e-6) - np.log(1 - truth + 1e-6) + rng.normal(size=ROWS)
    return given, rng.random(ROWS) < truth, 1 / (1 + np.exp(-logits))


def one(way: str, rate: float, seed: int) -> tuple[float, ...]:
    """Of a round: whether its interval holds the share, its width, and the error of the share.

    Then how many intervals by class and by pair of classes there are, and how many hold theirs.
    """
    given, wrong, doubt = table(rate, seed % 20)
    k = len(SIZES)
    if way == INFORMED:
        first = draw_rows(given, k, CHECKED // 2, seed=seed)
        second = draw_rows(
            given, k, CHECKED // 2, way=way, before=first.rows, wrong=doubt, seed=seed
        )
        rounds: tuple[Round, ...] = (first, second)
    else:
        rounds = (draw_rows(given, k, CHECKED, way=way, seed=seed),)
    rows = [row for part in rounds for row in part.rows]
    draw = Draw(
        *("made", ".", None, None, tuple(map(str, range(k)))),
        counts=tuple(np.bincount(given, minlength=k).tolist()),
        rounds=rounds,
        given=tuple(given[rows].tolist()),
    )
    answers = {
        place: Answer(int(given[row] + wrong[row]) % k, "", 0) for place, row in enumerate(rows)
    }
    found = known(draw, [answers])
    share, truth = found.share, float(wrong.mean())
    assert share is not None
    parts = [(label, part) for label, part in enumerate(found.by_class) if part is not None]
    parts += [(label, part) for (label, _), part in found.pairs.items()]  # all of a class are one
    held = [part.low <= wrong[given == label].mean() <= part.high for label, part in parts]
    holds = share.low <= truth <= share.high
    return holds, share.high - share.low, share.value - truth, len(held), sum(held)


def main(*, quick: bool = False, save: bool = False) -> None:
    """Run all rounds, and say for each way what its intervals are."""
    rounds = 50 if quick else ROUNDS
    found: dict[str, Any] = {"rows": ROWS, "checked": CHECKED, "rounds": rounds, "ways": {}}
    for rate in RATES:
        for way in WAYS:
            start = time.process_time()
            done = np.array([one(way, rate, seed) for seed in range(rounds)], float)
            figures = {
                "coverage": round(float(done[:, 0].mean()), 3),
                "coverage of parts": round(float(done[:, 4].sum() / done[:, 3].sum()), 3),
                "width": round(100 * float(done[:, 1].mean()), 2),
                "bias": round(100 * float(done[:, 2].mean()), 2),
                "error": round(100 * float(np.sqrt((done[:, 2] ** 2).mean())), 2),
            }
            found["ways"][f"{way}, {rate:.0%} wrong"] = figures
            print(
                f"{way:12} {rate:4.0%}  {json.dumps(figures)}  {time.process_time() - start:.0f} s"
            )
    for rate in RATES:
        wide = [found["ways"][f"{way}, {rate:.0%} wrong"]["width"] for way in (STRATIFIED, RANDOM)]
        print(f"{rate:4.0%}: stratified is {100 * (wide[0] / wide[1] - 1):+.1f}% as wide as random")
    if save:
        write_json(RESULTS, found)
