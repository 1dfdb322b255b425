"""What checked rows say of all labels: how many are wrong, of which class, given for which."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from diw.labels.share import Share, estimate_share
from diw.labels.transitions import Bools, Floats, Ints
from diw.trust.draw import Draw
from diw.trust.sheet import CANNOT, DROP, Answer, Answers

MORE = 50
"""Rows of which it is said what they would bring."""


@dataclass(frozen=True)
class Agreement:
    """How far two sheets agree.

    Attributes:
        first: The number of the one sheet.
        second: That of the other.
        both: Rows to which both give a class.
        same: Those to which they give the same.
        kappa: Cohen's; None where it is not defined, since both name one class only.
    """

    first: int
    second: int
    both: int
    same: int
    kappa: float | None


@dataclass(frozen=True)
class Known:
    """What was found out.

    Attributes:
        share: The share of wrong labels, rows that nobody could tell left out; None without any.
        by_class: (k,) the same among rows given as each class.
        pairs: By (given, right): the share of the rows given so that are of the other class.
        bounds: The share if all labels that nobody could tell are right, and if all are wrong.
        checked: (k,) rows with an answer, by given class.
        wrong: (k,) those whose given label is wrong.
        unresolved: Rows that nobody could tell, by note, and those that sheets disagree about.
        more: The share as it may be with so many more rows.
        cost: Rows drawn at random that would say as much of the share, per row that was checked.
        answers: What all sheets say together.
        sheets: What each says.
        agreements: Of each pair of sheets that share rows.
        talk: Places of the rows that sheets disagree about.
    """

    draw: Draw
    share: Share | None
    by_class: tuple[Share | None, ...]
    pairs: dict[tuple[int, int], Share]
    bounds: tuple[Share, Share] | None
    checked: Ints
    wrong: Ints
    unresolved: dict[str, int]
    more: Share | None
    cost: float
    answers: dict[int, Answer]
    sheets: tuple[Answers, ...]
    agreements: tuple[Agreement, ...]
    talk: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        classes = self.draw.classes

        def plain(share: Share | None) -> list[float] | None:
            return None if share is None else share.as_list()

        return {
            "data": self.draw.source,
            "rows": sum(self.draw.counts),
            "drawn": len(self.draw.rows),
            "checked": int(self.checked.sum()),
            "wrong": plain(self.share),
            "bounds": None if self.bounds is None else [one.as_list() for one in self.bounds],
            "unresolved": self.unresolved,
            "by_class": {
                name: {
                    "rows": self.draw.counts[number],
                    "checked": int(self.checked[number]),
                    "wrong": plain(self.by_class[number]),
                }
                for number, name in enumerate(classes)
            },
            "pairs": [
                {"given": classes[given], "right": classes[right], "share": share.as_list()}
                for (given, right), share in self.pairs.items()
            ],
            "with_more": {"rows": MORE, "wrong": plain(self.more)},
            "agreement": [vars(one) for one in self.agreements],
            "talk_about": [list(self.draw.places[place]) for place in self.talk],
        }


def known(draw: Draw, sheets: Sequence[Answers]) -> Known:
    """What the sheets say of the data that were drawn from.

    Args:
        draw: What was drawn.
        sheets: The answers of each sheet; rows in several are held against each other.
    """
    answers, talk = _together(sheets)
    given, k, n = np.array(draw.given), len(draw.classes), sum(draw.counts)
    right = np.full(len(given), -1)
    looked = np.zeros(len(given), bool)
    for place, one in answers.items():
        looked[place] = True
        right[place] = -1 if one.right is None else one.right
    told = looked & (right >= 0)
    wrong = told & (right != given)
    drawn = draw.drawn(told)

    def share(among: Bools, true: Bools, total: int, chances: Floats) -> Share | None:
        m = int(among.sum())
        if not m:
            return None
        found, chances = true[among], chances[among]
        return estimate_share(found, np.zeros((m, 1)), np.zeros(1), max(total, m), chances)

    in_all = share(told, wrong, n, drawn)
    pairs = Counter(zip(given[wrong].tolist(), right[wrong].tolist(), strict=True))
    shares = {
        (i, j): share(told & (given == i), wrong & (right == j), draw.counts[i], drawn)
        for (i, j), _ in pairs.most_common()
    }
    bounds, chances = None, draw.drawn(looked)
    if (looked & ~told).any():
        low = share(looked, wrong, n, chances)
        high = share(looked, wrong | (looked & ~told), n, chances)
        bounds = (low, high) if low is not None and high is not None else None
    checked = np.bincount(given[told], minlength=k)
    notes = Counter(one.note for one in answers.values() if one.right is None)
    named = {"cannot tell": notes[CANNOT], "to drop": notes[DROP], "disagreed about": len(talk)}
    return Known(
        draw,
        in_all,
        tuple(share(told & (given == c), wrong, draw.counts[c], drawn) for c in range(k)),
        {pair: one for pair, one in shares.items() if one is not None},
        bounds,
        checked,
        np.bincount(given[wrong], minlength=k),
        {name: count for name, count in named.items() if count},
        None if in_all is None else _with_more(in_all, int(told.sum()), n),
        _cost(drawn[told], wrong[told]),
        answers,
        tuple(sheets),
        _agreements(sheets),
        tuple(talk),
    )


def _together(sheets: Sequence[Answers]) -> tuple[dict[int, Answer], list[int]]:
    """The answer to each row, and the rows about which sheets disagree, which nobody can tell."""
    found: dict[int, Answer] = {}
    talk: set[int] = set()
    for sheet in sheets:
        for place, one in sheet.items():
            before = found.setdefault(place, one)
            if before.right != one.right:
                talk.add(place)
    for place in talk:
        found[place] = Answer(None, "disagreed", 0)
    return found, sorted(talk)


def _with_more(share: Share, m: int, n: int) -> Share:
    """The interval narrowed as 1/√m does, around the same value."""
    factor = float(np.sqrt(m / min(m + MORE, n))) if m < n else 1.0
    low, high = (share.value - factor * (share.value - end) for end in (share.low, share.high))
    return Share(share.value, low, high)


def _cost(drawn: Floats, wrong: Bools) -> float:
    """The variance of a share from as many random rows, over that from these rows.

    Where none or all are wrong it is Kish's efficiency of what each row stands for.
    """
    if not len(drawn):
        return 1.0
    weights = 1 / drawn
    p = float(np.average(wrong, weights=weights))
    residuals = (wrong - p) ** 2 / (p * (1 - p)) if 0 < p < 1 else np.ones(len(drawn))
    return float(weights.sum() ** 2 / (weights**2 * residuals).sum() / len(drawn))


def _agreements(sheets: Sequence[Answers]) -> tuple[Agreement, ...]:
    found: list[Agreement] = []
    for (i, first), (j, second) in combinations(enumerate(sheets), 2):
        pairs = [
            (first[place].right, second[place].right) for place in first.keys() & second.keys()
        ]
        classes = [(a, b) for a, b in pairs if a is not None and b is not None]
        if classes:
            same = sum(a == b for a, b in classes)
            found.append(Agreement(i, j, len(classes), same, cohen_kappa(classes)))
    return tuple(found)


def cohen_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """(p − e) / (1 − e): agreement p beyond that of chance e (Cohen 1960); None where e is one."""
    m = len(pairs)
    one, two = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(one[name] * two[name] for name in one) / m**2
    return None if chance == 1 else (sum(a == b for a, b in pairs) / m - chance) / (1 - chance)
