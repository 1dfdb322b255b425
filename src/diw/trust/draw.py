"""Which rows a person checks: drawn with known probabilities, in as many rounds as it takes.

Rounds of one kind go on as if all their rows had been drawn at once: m of n rows, or m_c of the n_c
rows given as class c. What was drawn in another way is another phase, drawn from the rows that were
left. With q_i the probability of row i in its phase t, and a share α_t of all checked rows in it,

    Σ_t α_t (wrong rows of earlier phases + Σ_{i in t} wrong_i / q_i)

estimates the number of wrong rows without a bias, since every phase does. So row i stands for
α_t / q_i + Σ_{s > t} α_s rows, and one over that is its probability of being drawn.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from diw.errors import UsageError
from diw.labels.transitions import Bools, Floats, Ints
from diw.seeding import numpy_generator
from diw.trust.items import Items

STATE = "draw.json"
"""The file, in the folder of a draw, that says what was drawn."""
RANDOM, STRATIFIED, INFORMED = WAYS = ("random", "stratified", "informed")
LEAST = 2
"""Rows of each class in a stratified draw."""
AT_RANDOM = 0.5
"""The part of an informed draw that does not look at probabilities."""


@dataclass(frozen=True)
class Round:
    """What was drawn at once, in the order in which it is checked.

    Attributes:
        way: How.
        rows: (m,) row numbers.
        chance: (m,) with which probability each was drawn among those left; of informed rounds
            alone, for the others it follows from the counts.
    """

    way: str
    rows: list[int]
    chance: list[float] = field(default_factory=list[float])


@dataclass(frozen=True)
class Draw:
    """All rows of a data set that were drawn, and what tells them from others.

    Attributes:
        source: The data, as they were named.
        home: The folder that `source` is relative to, seen from that of the draw.
        label: The column, array or file of the given labels.
        classes: Names by class number.
        counts: (k,) rows given as each class in all.
        rounds: In the order in which they were drawn.
        given: (m,) given labels of all drawn rows, round by round.
        places: (m,) file and row of each.
        contents: (m,) their fingerprints.
    """

    source: str
    home: str
    label: str | None
    text_encoding: str | None
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    rounds: tuple[Round, ...] = ()
    given: tuple[int, ...] = ()
    places: tuple[tuple[str, int | None], ...] = ()
    contents: tuple[str, ...] = ()

    @property
    def rows(self) -> list[int]:
        """(m,) numbers of all drawn rows."""
        return [row for one in self.rounds for row in one.rows]

    def continued(self, items: Items, new: Round) -> "Draw":
        """With another round."""
        rounds, added = (*self.rounds, new), new.rows
        return Draw(
            **{name: getattr(self, name) for name in ("source", "home", "label", "text_encoding")},
            classes=self.classes,
            counts=self.counts,
            rounds=rounds,
            given=(*self.given, *items.given[added].tolist()),
            places=(*self.places, *items.places(added)),
            contents=(*self.contents, *items.contents(added)),
        )

    def drawn(self, answered: Bools) -> Floats:
        """(m,) the probability of each drawn row to be among those that were checked.

        Rows are checked in random order, so those that nobody has come to yet are a random part.

        Args:
            answered: (m,) which of the drawn rows were checked; of others the value means nothing.
        """
        rows, given = np.array(self.rows), np.array(self.given)
        left, total = np.array(self.counts, float), max(int(answered.sum()), 1)
        stands_for, start = np.ones(len(rows)), 0
        for way, phase in self._phases():
            part = slice(start, start + sum(len(one.rows) for one in phase))
            done, start = answered[part], part.stop
            if way == INFORMED:
                asked = np.array(phase[0].chance)
                chance = asked * float(done.sum()) / max(len(done), 1)
            elif way == STRATIFIED:
                checked = np.bincount(given[part][done], minlength=len(left))
                chance = (checked / np.maximum(left, 1))[given[part]]
            else:
                chance = np.full(len(done), float(done.sum()) / max(float(left.sum()), 1))
            alpha = float(done.sum()) / total
            # A row of an earlier phase is known, and stands for itself in this one.
            stands_for[part] = alpha / np.maximum(chance, 1e-12)
            stands_for[: part.start] += alpha
            left -= np.bincount(given[part], minlength=len(left))
        return np.minimum(1.0, 1 / np.maximum(stands_for, 1e-12))

    def _phases(self) -> list[tuple[str, list[Round]]]:
        """Rounds that go on as one are one phase; each informed round is its own."""
        keys = ((one.way, place * (one.way == INFORMED)) for place, one in enumerate(self.rounds))
        grouped = groupby(zip(keys, self.rounds, strict=True), key=lambda pair: pair[0])
        return [(way, [one for _, one in group]) for (way, _), group in grouped]

    def as_json(self) -> dict[str, Any]:
        """For `draw.json`."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"draw": 1, **plain, "rounds": [vars(one) for one in self.rounds]}

    @classmethod
    def load(cls, folder: Path) -> "Draw":
        """What `as_json` wrote into a folder."""
        path = folder / STATE
        try:
            plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if plain.pop("draw") != 1:
                raise UsageError(f"{path}: written by a newer version of diw")
            rounds = tuple(Round(**one) for one in plain.pop("rounds"))
            places = tuple((file, row) for file, row in plain.pop("places"))
            names = {name: tuple(plain.pop(name)) for name in ("classes", "counts", "given")}
            found = cls(
                rounds=rounds,
                places=places,
                contents=tuple(plain.pop("contents")),
                **names,
                **plain,
            )
        except FileNotFoundError:
            raise UsageError(
                f"{folder}: holds no {STATE}; name the folder that diw trust draw wrote"
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"{path}: not a file that diw wrote ({error})") from None
        return found

    def check(self, items: Items) -> None:
        """Refuse data that hold something else than what was drawn from."""
        counts = np.bincount(items.given, minlength=len(items.classes)).tolist()
        where = f"{items.source}: has changed since rows were drawn from it"
        kept = "; what was marked is safe: bring the data back, or draw into another folder"
        if items.classes != self.classes:
            raise UsageError(f"{where}: its classes are {', '.join(items.classes[:10])} now{kept}")
        rows = self.rows
        if max(rows, default=0) >= len(items):
            raise UsageError(f"{where}: it has {len(items):,} rows now{kept}")
        now = zip(rows, items.contents(rows), items.given[rows].tolist(), strict=True)
        for (row, content, given), was, label in zip(now, self.contents, self.given, strict=True):
            if content != was or given != label:
                what = "label" if content == was else "content"
                raise UsageError(f"{where}: row {row} has another {what}{kept}")
        if counts != list(self.counts):
            raise UsageError(f"{where}: it has {sum(counts):,} rows now{kept}")


def draw_rows(
    given: Ints,
    k: int,
    n: int,
    *,
    way: str = STRATIFIED,
    before: Sequence[int] = (),
    wrong: Floats | None = None,
    seed: int = 0,
) -> Round:
    """Draw rows to check, none of which was drawn before.

    Args:
        given: (N,) given labels as class numbers.
        k: The number of classes.
        n: How many rows; all that are left if they are fewer.
        way: `stratified` by given class, in proportion and at least two a class where n suffices;
            `random`; or `informed`.
        before: Rows that were drawn in earlier rounds.
        wrong: (N,) the probability that each given label is wrong, for an informed draw.
        seed: Decides which rows, with the number of rows that were drawn before.
    """
    generator = numpy_generator(seed, "rows to check", len(before))
    free = np.ones(len(given), bool)
    free[np.asarray(before, np.int64)] = False
    left = np.flatnonzero(free)
    if not len(left):
        raise UsageError(f"rows: all {len(given):,} rows were drawn before")
    n = min(n, len(left))
    if way == INFORMED:
        if wrong is None:
            raise UsageError("way: an informed draw needs --from RUN or --probabilities FILE")
        chance = _informed_chances(np.asarray(wrong, float)[left], n)
        found = _systematic(chance, np.lexsort((wrong[left], given[left])), generator)
        order = generator.permutation(found)
        return Round(way, left[order].tolist(), chance[order].tolist())
    if way == RANDOM:
        return Round(way, generator.permutation(left)[:n].tolist())
    had = np.bincount(given[np.asarray(before, np.int64)], minlength=k)
    wanted = allocate(n, np.bincount(given[left], minlength=k), had)
    shuffled = generator.permutation(left)
    rows = [shuffled[given[shuffled] == c][: wanted[c]] for c in range(k)]
    return Round(way, generator.permutation(np.concatenate(rows)).tolist())


def allocate(n: int, counts: Ints, had: Ints) -> Ints:
    """(k,) how many of n rows are of each class: in proportion, but two a class where n suffices.

    Args:
        n: How many in all, at most the sum of the counts.
        counts: (k,) rows that are left of each class.
        had: (k,) rows of each class that were drawn before.
    """
    least = np.minimum(np.maximum(LEAST - had, 0), counts)
    if int(least.sum()) > n:
        raise UsageError(
            f"rows: {n} rows cannot hold {LEAST} of each of {len(counts):,} classes; draw "
            f"{int(least.sum()):,} or more, or --way {RANDOM}"
        )
    found = least.astype(np.int64)
    # One by one to the class that lacks most: n is what a person can check.
    for _ in range(n - int(found.sum())):
        lacking = n * counts / max(int(counts.sum()), 1) - found
        found[int(np.where(found < counts, lacking, -np.inf).argmax())] += 1
    return found


def _informed_chances(wrong: Floats, n: int) -> Floats:
    """(l,) probabilities that add up to n: in part equal, in part as √(p(1 − p)).

    With p the probability that a label is wrong, that is what makes an estimate of their share
    narrowest (Neyman 1934), and what teaches most.
    """
    tells = np.sqrt(np.clip(wrong, 0.0, 1.0) * np.clip(1 - wrong, 0.0, 1.0)) + 1e-6
    size = AT_RANDOM / len(wrong) + (1 - AT_RANDOM) * tells / tells.sum()
    chance = np.zeros(len(wrong))
    sure = np.zeros(len(wrong), bool)
    while not sure.all():
        chance[~sure] = (n - int(sure.sum())) * size[~sure] / size[~sure].sum()
        if not (chance[~sure] > 1).any():
            break
        sure |= chance >= 1
        chance[sure] = 1.0
    return np.minimum(chance, 1.0)


def _systematic(chance: Floats, order: Ints, generator: np.random.Generator) -> Ints:
    """Places drawn with these probabilities, evenly along an order: at equal steps of their sum."""
    total = np.cumsum(chance[order])
    steps = generator.random() + np.arange(round(float(total[-1])))
    return order[np.minimum(np.searchsorted(total, steps, side="right"), len(order) - 1)]
