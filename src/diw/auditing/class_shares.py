"""Class shares of rows without labels, from labelled rows with other shares.

`diw.matching.LabelShift` needs probabilities by a classifier that has not learned the rows: here it
is the quick one of labels/crossfit.py, on plain vectors.
"""

from collections.abc import Sequence

import numpy as np

from diw.auditing.rows import FEWEST as FEWEST_ROWS
from diw.errors import UsageError
from diw.labels.crossfit import RIDGE, CrossFit, Embedding
from diw.labels.transitions import Floats
from diw.matching import LabelShift
from diw.matching.label_shift import FEWEST


def shares_lines(shift: LabelShift, classes: Sequence[str]) -> list[str]:
    """A line a class: its share there, with a 95% interval, and here."""
    figures = zip(classes, shift.shares_, shift.errors_, shift.train_shares_, strict=True)
    return [
        f"{name}: {100 * there:.1f}% ± {196 * error:.1f} there, {100 * here:.1f}% here"
        for name, there, error, here in figures
    ]


def class_shares(
    vectors: Floats, labels: Sequence[str], target: Floats, *, seed: int = 0, level: float = 0.05
) -> tuple[LabelShift, tuple[str, ...]]:
    """Class shares of a target, and the classes in their order.

    Args:
        vectors: (n, d) labelled rows.
        labels: (n,) their classes.
        target: (m, d) rows without labels.
        seed: Decides folds and the bootstrap.
        level: As in `LabelShift`.
    """
    names, codes, counts = np.unique(np.array(labels), return_inverse=True, return_counts=True)
    if counts.min() < FEWEST:
        few = counts.argmin()
        raise UsageError(
            f"label: class {str(names[few])!r} has {counts[few]} rows; {FEWEST} or more are needed"
        )
    if len(names) < 2:
        raise UsageError(
            f"label: all rows are of class {str(names[0])!r}; there are no shares to tell"
        )
    if len(target) < FEWEST_ROWS:
        raise UsageError(f"trusted: {len(target)} rows; {FEWEST_ROWS} or more are needed")
    embedding = Embedding.fit(vectors, seed, columns=True)
    ours, theirs = (embedding.components(part) for part in (vectors, target))
    fit = CrossFit(len(ours), len(names), seed)
    every = slice(0, len(ours))
    fit.add(every, embedding.features(ours), codes, np.ones(len(ours)))
    fit.solve(RIDGE)
    held = fit.predict(every, embedding.features(ours))
    others = fit.predict_others(embedding.features(theirs))
    shift = LabelShift(seed=seed, level=level)
    shift.fit(held, codes, others, rows=ours, target_rows=theirs)
    return shift, tuple(map(str, names))
