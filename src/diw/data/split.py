"""From data as read to data as trained on: which rows are trusted, shifted and scored.

Trusted rows are drawn from rows whose labels are clean, before the shift, and
the shift leaves them alone. Whether they are also trained on is an explicit,
recorded choice; the paper includes them (Fang et al. 2020, Section 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diw.brief import in_a_line
from diw.data.dataset import Bundle, Dataset, JoinedInputs
from diw.data.marks import Verified
from diw.errors import UsageError
from diw.seeding import numpy_generator
from diw.shifts import Shift, parse_shift
from diw.shifts.shift import Ints, row_numbers

SIMULATED = "shift: is simulated on labels that are right; leave it out where rows are verified"
HELD_OUT = 0.3
"""The part of the trusted rows that is scored when there is no test set."""

Trusted = int | str | Sequence[int] | Ints | Verified
"""N rows at random, `"N/class"`, the row numbers themselves, or rows with their right labels."""


@dataclass(frozen=True)
class Split:
    """Everything a run trains on and is scored on.

    Attributes:
        train: The shifted training rows with their given labels.
        trusted: The trusted rows with clean labels.
        test: The scored rows.
        flipped: (n_train,) bool, labels known to be wrong; None where the truth is unknown.
        true_labels: (n_train,) int64, or None where the truth is unknown.
        true_weights: (n_train,) float64 with mean one, what the simulated shift knows; or None.
        scored_on: `"test"` or `"held-out trusted"`.
        trusted_index: (m,) int64, where the trusted rows stand in `train`; empty when they are
            not trained on.
        trusted_given: (m,) int64, the labels that the trusted rows were given before somebody
            verified them, or that the simulated shift would have given them: with
            `trusted.targets` they are pairs of given and right label. None where nothing is known
            of them, or if they are not trained on.
        facts: What was drawn and done, as JSON values, for the record of the run.
        selection: Trusted rows that are held out to choose the epoch whose network is kept: neither
            trained on, nor trusted, nor scored. None if there are none.
        rows: (n_train,) int64, where the training rows stand in the data as read, trusted rows from
            a file of their own after the others.
    """

    __repr__ = in_a_line

    train: Dataset
    trusted: Dataset
    test: Dataset
    flipped: Tensor | None
    true_labels: Tensor | None
    true_weights: Tensor | None
    scored_on: str
    trusted_index: Tensor = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    selection: Dataset | None = None
    trusted_given: Tensor | None = field(default=None, repr=False)
    rows: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64), repr=False)


def make_split(
    bundle: Bundle,
    *,
    shift: str | Shift = "none",
    trusted: Trusted | None = None,
    seed: int,
    trusted_in_train: bool = True,
    test_rows: int | None = None,
    selection: float = 0.0,
    trusted_wrong: float = 0.0,
) -> Split:
    """Draw the trusted rows, shift the rest, and set the test rows apart.

    Args:
        bundle: The data as read.
        shift: A `Shift` or its text.
        trusted: N rows at random, `"N/class"`, row numbers of the training data, or verified rows
            of it, which have their right labels from then on; None uses the trusted file of the
            bundle.
        seed: Determines every draw.
        trusted_in_train: Also train on the trusted rows, with their clean labels.
        test_rows: Score this many test rows only, drawn class by class.
        selection: Share of the trusted rows to hold out for choosing the epoch.
        trusted_wrong: Share of the trusted rows that get another label, drawn evenly, wherever they
            are used: trusted data are not always as good as one thinks.
    """
    if not 0 <= trusted_wrong < 1:
        raise UsageError(f"trusted_wrong: must be in [0, 1), and is {trusted_wrong}")
    change = parse_shift(shift) if isinstance(shift, str) else shift
    before = None
    if isinstance(trusted, Verified):
        if change.stages:
            raise UsageError(SIMULATED)
        before = bundle.train.targets.numpy()
        right = bundle.train.targets.clone()
        right[torch.from_numpy(trusted.places)] = torch.from_numpy(trusted.right)
        bundle = replace(bundle, train=replace(bundle.train, targets=right))
        trusted = trusted.places
    pool, chosen = _choose_trusted(bundle, trusted, bool(change.stages), seed)
    test, chosen, held = _choose_test(bundle, pool, chosen, test_rows, seed)
    chosen, choosing = _hold_out(pool, chosen, selection, seed)
    held = np.concatenate([held, choosing])

    left_out = held if trusted_in_train else np.concatenate([held, chosen])
    candidates = np.setdiff1d(np.arange(len(pool)), left_out)
    labels = pool.targets.numpy()
    shifted = change.apply(
        labels[candidates],
        pool.num_classes,
        seed,
        protected=np.isin(candidates, chosen),
        inputs=pool.subset(torch.from_numpy(candidates)).inputs,
    )
    if not len(shifted.keep):
        raise UsageError(f"shift: {change.text} leaves no training rows")
    kept = candidates[shifted.keep]
    all_clean = bundle.clean is not None and bool(bundle.clean.all())
    known = all_clean or change.moves_labels
    weights = shifted.true_weights if known or change.stages else None
    train, trusted_set = (pool.subset(torch.from_numpy(rows)) for rows in (kept, chosen))
    given, places = shifted.targets, np.flatnonzero(np.isin(kept, chosen))
    if trusted_wrong:
        believed = _mislabelled(labels[chosen], pool.num_classes, trusted_wrong, seed)
        trusted_set = replace(trusted_set, targets=torch.from_numpy(believed))
        given = given.copy()
        given[places] = believed[np.searchsorted(chosen, kept[places])]
    if before is not None:
        pairs = before[kept[places]]
    elif change.moves_labels:
        pairs = shifted.unprotected[places]
    else:
        pairs = None
    return Split(
        train=replace(train, targets=torch.from_numpy(given)),
        trusted=trusted_set,
        test=test,
        flipped=torch.from_numpy(given != labels[kept]) if known else None,
        true_labels=torch.from_numpy(labels[kept]) if known else None,
        true_weights=None if weights is None else torch.from_numpy(weights),
        scored_on="held-out trusted" if bundle.test is None else "test",
        trusted_index=torch.from_numpy(places),
        facts={
            **shifted.facts,
            "trusted_rows": len(chosen),
            "trusted_class_counts": trusted_set.class_counts.tolist(),
            "trusted_in_train": trusted_in_train,
            **({"trusted_wrong": trusted_wrong} if trusted_wrong else {}),
            "test_rows": len(test),
            **({"selection_rows": len(choosing)} if len(choosing) else {}),
        },
        selection=pool.subset(torch.from_numpy(choosing)) if len(choosing) else None,
        trusted_given=torch.from_numpy(pairs) if pairs is not None and trusted_in_train else None,
        rows=torch.from_numpy(kept),
    )


def _mislabelled(labels: Ints, k: int, share: float, seed: int) -> Ints:
    """The labels (m,), `share` of them replaced by another class."""
    rng = numpy_generator(seed, "wrong trusted labels")
    wrong = rng.permutation(len(labels))[: round(share * len(labels))]
    believed = labels.copy()
    believed[wrong] = (labels[wrong] + rng.integers(1, k, len(wrong))) % k
    return believed


def _hold_out(pool: Dataset, chosen: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """The trusted rows that remain, and the `share` of them that chooses the epoch."""
    count = round(share * len(chosen))
    if not count:
        return chosen, np.empty(0, np.int64)
    if count >= len(chosen):
        raise UsageError(f"selection: {share} of {len(chosen)} trusted rows leaves none")
    places = stratified(pool.targets.numpy()[chosen], count, seed, "selection")
    return np.delete(chosen, places), chosen[places]


def parse_trusted(text: str) -> Trusted | Path:
    """What `--trusted` means: `500`, `10/class`, `rows:3,17,40`, a .txt of row numbers, or a file.

    Returns:
        A value for `make_split(trusted=...)`, or the path of a data file for `load(trusted=...)`.
    """
    word, colon, numbers = text.partition(":")
    if word == "rows" and colon:
        return _row_numbers(numbers.split(","), text)
    if text.endswith(".txt"):
        try:
            return _row_numbers(Path(text).read_text(encoding="utf-8").split(), text)
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"trusted: {text} is not a readable text file") from None
    if "/" in text and Path(text).exists():
        return Path(text)
    if text.isascii() and text.isdigit():
        return int(text)
    if text.endswith("/class"):
        return text
    if not Path(text).exists():
        raise UsageError(
            f"trusted: there is no file {text!r}; give one, or a number of samples, N/class, "
            "or rows:0,7,…"
        )
    return Path(text)


def _row_numbers(cells: list[str], text: str) -> Ints:
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except (ValueError, OverflowError):
        raise UsageError(f"trusted: {text} must hold row numbers, counted from 0") from None


def _choose_trusted(
    bundle: Bundle, trusted: Trusted | None, simulated: bool, seed: int
) -> tuple[Dataset, Ints]:
    """All rows there are to train on, and which of them are trusted (ascending)."""
    train = bundle.train
    if trusted is None:
        if bundle.trusted is None:
            raise UsageError(
                "trusted: give a file, a number of rows, N/class, or row numbers of the "
                "training data"
            )
        pool = Dataset(
            JoinedInputs(train.inputs, bundle.trusted.inputs),
            torch.cat([train.targets, bundle.trusted.targets]),
            train.classes,
        )
        return pool, np.arange(len(train), len(pool))
    if isinstance(trusted, (int, str)):
        return train, _draw(trusted, _clean_rows(bundle, simulated), train, seed)
    rows = np.unique(row_numbers("trusted", np.asarray(trusted), len(train)))
    if not len(rows):
        raise UsageError("trusted: no rows given")
    return train, rows


def _clean_rows(bundle: Bundle, simulated: bool) -> Ints:
    """The rows trusted ones may be drawn from.

    Under a simulated shift the labels as read are the truth it starts from.
    """
    if bundle.clean is not None:
        return np.flatnonzero(bundle.clean.numpy())
    if simulated:
        return np.arange(len(bundle.train))
    raise UsageError(
        f"trusted: no rows of {bundle.name} are marked clean to draw from; add a column or array "
        "'clean', or give a trusted file or row numbers"
    )


def _draw(trusted: int | str, clean: Ints, train: Dataset, seed: int) -> Ints:
    """N rows at random, or `"N/class"` of each class, from the clean rows; ascending."""
    number, slash, word = str(trusted).partition("/")
    if not number.strip().isascii() or not number.strip().isdigit() or (slash and word != "class"):
        raise UsageError(f"trusted: cannot read {trusted!r}; write a number or N/class")
    count = int(number)
    if count == 0:
        raise UsageError("trusted: at least one trusted row is needed")
    rng = numpy_generator(seed, "trusted")
    if not slash:
        if count > len(clean):
            raise UsageError(f"trusted: {count} rows requested, but only {len(clean)} are clean")
        return np.sort(rng.permutation(clean)[:count])
    drawn: list[Ints] = []
    labels = train.targets.numpy()[clean]
    for label, name in enumerate(train.classes):
        rows = clean[labels == label]
        if len(rows) < count:
            raise UsageError(
                f"trusted: {count} rows per class requested, but class {name!r} has {len(rows)} "
                "clean ones"
            )
        drawn.append(rng.permutation(rows)[:count])
    return np.sort(np.concatenate(drawn))


def _choose_test(
    bundle: Bundle, pool: Dataset, chosen: Ints, test_rows: int | None, seed: int
) -> tuple[Dataset, Ints, Ints]:
    """The scored rows, the trusted rows that remain, and those held out of them."""
    none = np.empty(0, np.int64)
    if bundle.test is not None:
        if test_rows is None:
            return bundle.test, chosen, none
        part = stratified(bundle.test.targets.numpy(), test_rows, seed, "test")
        return bundle.test.subset(torch.from_numpy(part)), chosen, none
    count = round(HELD_OUT * len(chosen))
    if not 0 < count < len(chosen):
        raise UsageError(
            f"trusted: {len(chosen)} rows are too few to hold some out for scoring; give a test set"
        )
    places = stratified(pool.targets.numpy()[chosen], count, seed, "held-out")
    held = chosen[places]
    return pool.subset(torch.from_numpy(held)), np.delete(chosen, places), held


def stratified(labels: Ints, count: int, seed: int, purpose: str) -> Ints:
    """`count` row numbers (ascending), every class with its share to within one row."""
    n = len(labels)
    if not 0 < count <= n:
        raise UsageError(f"{purpose}: {count} rows requested of {n}")
    rng = numpy_generator(seed, "stratified", purpose)
    shuffled = rng.permutation(n)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    # Evenly spaced over rows in class order: each class gets its share, rounding is spread out.
    places = np.floor((np.arange(count) + rng.random()) * n / count).astype(np.int64)
    return np.sort(by_class[places])
