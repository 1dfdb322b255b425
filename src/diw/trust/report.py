"""What checked rows know, in sentences and tables."""

from collections.abc import Sequence

import numpy as np

from diw.labels import Share
from diw.pages import EMPTY, Cell, Column, Table, count, make_table, number_cell, text_cell
from diw.trust.estimate import MORE, Known

REGAINED = {20: 0.30, 50: 0.55, 100: 0.60, 200: 0.75, 500: 0.90}
"""By checked rows: the part regained of the accuracy that wrong labels cost, see docs/verified.md.

`TrustedClassifier` on four benchmarks; benchmarks/results/label-rows.json.
"""
MOST = 20
"""Rows of a table that are shown."""


def sentences(found: Known, sheets: Sequence[str]) -> list[str]:
    """What is known, the most important first."""
    checked, drawn, total = int(found.checked.sum()), len(found.draw.rows), sum(found.draw.counts)
    said = [f"{checked:,} of {count(drawn, 'drawn row')} checked, of {total:,} in all"]
    if found.unresolved:
        rest = (f"{number:,} {what}" for what, number in found.unresolved.items())
        said[0] += f"; {', '.join(rest)}"
    if found.share is not None:
        low, high = (round(end * total) for end in (found.share.low, found.share.high))
        said.append(
            f"{percent(found.share)} of the labels are wrong "
            f"(95% interval {interval(found.share)}: {low:,} to {high:,} rows)"
        )
    if found.bounds is not None:
        least, most = found.bounds
        said.append(
            f"with the others: {percent(least)} if all of their labels are right "
            f"({interval(least)}), {percent(most)} if all are wrong ({interval(most)})"
        )
    more = min(MORE, total - checked)
    if found.share is not None and found.more is not None and more:
        said.append(
            f"{more} more rows would narrow {interval(found.share)} to about {interval(found.more)}"
        )
    if checked:
        after = f", {more} more {regained(checked + more):.0%}" if more else ""
        said.append(
            f"to train with: so many regained about {regained(checked):.0%} of the accuracy that "
            f"wrong labels cost on our benchmarks{after}"
        )
    if found.cost < 0.95:
        said.append(
            f"drawn as they are, {checked} rows tell as much of the share as "
            f"{found.cost * checked:.0f} drawn at random"
        )
    silent = np.flatnonzero((found.checked == 0) & (np.array(found.draw.counts) > 0))
    if len(silent):
        named = ", ".join(found.draw.classes[number] for number in silent[:10])
        others = f" and {len(silent) - 10} more" if len(silent) > 10 else ""
        said.append(f"no row given as {named}{others} is checked: nothing is known of these")
    for one in found.agreements:
        kappa = "" if one.kappa is None else f" (Cohen's kappa {one.kappa:.2f})"
        said.append(
            f"{sheets[one.first]} and {sheets[one.second]} agree on {one.same:,} of "
            f"{one.both:,} rows{kappa}"
        )
    return said


def regained(m: int) -> float:
    """The part of the accuracy lost to wrong labels that m checked rows brought back."""
    return float(np.interp(np.log(m), np.log([1, *REGAINED]), [0.0, *REGAINED.values()]))


def class_table(found: Known) -> Table:
    """How many of the labels given as each class are wrong."""
    draw = found.draw

    def row(number: int) -> list[tuple[Column, Cell]]:
        return [
            (Column("given", "given as", "left"), text_cell(draw.classes[number])),
            (Column("rows", "rows"), _number(draw.counts[number])),
            (Column("checked", "checked"), _number(int(found.checked[number]))),
            (Column("wrong", "wrong"), _number(int(found.wrong[number]))),
            *_share_cells(found.by_class[number]),
        ]

    return make_table(map(row, range(len(draw.classes))))


def pair_table(found: Known) -> Table | None:
    """Which class is given for which, as a share of the rows given so; None if none is wrong."""
    classes = found.draw.classes
    if not found.pairs:
        return None
    largest = sorted(found.pairs.items(), key=lambda item: -item[1].value)[:MOST]
    return make_table(
        [
            (Column("given", "given as", "left"), text_cell(classes[given])),
            (Column("right", "right class", "left"), text_cell(classes[right])),
            *_share_cells(share),
        ]
        for (given, right), share in largest
    )


def talk_table(found: Known) -> Table | None:
    """The rows that sheets disagree about; None if there is none."""
    if not found.talk:
        return None

    def row(place: int) -> list[tuple[Column, Cell]]:
        file, number = found.draw.places[place]
        said = [sheet[place] for sheet in found.sheets if place in sheet]
        words = [one.note if one.right is None else found.draw.classes[one.right] for one in said]
        return [
            (Column("file", "file", "left"), text_cell(file)),
            (Column("row", "row"), text_cell(EMPTY if number is None else str(number))),
            (Column("said", "to talk about", "left"), text_cell(" or ".join(words))),
        ]

    return make_table(map(row, found.talk))


def percent(share: Share) -> str:
    """`12.3%`."""
    return f"{100 * share.value:.1f}%"


def interval(share: Share) -> str:
    """`9.1 to 16.0%`."""
    return f"{100 * share.low:.1f} to {100 * share.high:.1f}%"


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _share_cells(share: Share | None) -> list[tuple[Column, Cell]]:
    value, text = (None, EMPTY) if share is None else (share.value, interval(share)[:-1])
    return [
        (Column("share", "wrong %"), number_cell(value, scale=100, digits=1)),
        (Column("interval", "95% interval"), Cell(text, None)),
    ]
