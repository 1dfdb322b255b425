"""What the paper claims, tested on the numbers: computed for ours and for theirs alike.

A claim is an entry of an experiment's spec: the sentence, the kind of test and the methods
it is about. The answer is a line of counts, in favour or against. Claims about figures and
weights are tested by a number behind the picture.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from diw.reports import LEVEL, Standing, paired_p_value
from reproduction.results import (
    FEWEST,
    FilledCell,
    Metric,
    Setting,
    Sheet,
    concentration,
    denoising,
    lower_is_better,
    ones_distance,
)

Outcome = Literal["holds", "holds in part", "does not hold", "not tested"]

Claim = Mapping[str, Any]
"""An entry `[[claims]]` of an experiment's spec: `text`, `kind` and what the kind asks for."""


@dataclass(frozen=True)
class Verdict:
    """A claim and what the runs say of it."""

    claim: str
    outcome: Outcome
    finding: str

    @property
    def line(self) -> str:
        """As a report shows it."""
        return f"{self.claim} {self.outcome.capitalize()}: {self.finding}"


Answer = tuple[list[bool], str]
"""Whether a claim holds, case by case, and the finding in words."""


def verdicts(sheet: Sheet) -> list[Verdict]:
    """Every claim of an experiment, tested on the trials that are there."""
    return [_verdict(claim, *KINDS[claim["kind"]](sheet, claim)) for claim in sheet.facts["claims"]]


def _verdict(claim: Claim, cases: Sequence[bool], finding: str) -> Verdict:
    """Without cases nothing is claimed."""
    if not cases:
        return Verdict(claim["text"], "not tested", "no finished runs to test it on.")
    partly: Outcome = "holds in part" if any(cases) else "does not hold"
    return Verdict(claim["text"], "holds" if all(cases) else partly, finding)


def _count(cases: Sequence[bool]) -> str:
    return f"{sum(cases)} of {len(cases)}"


def best(sheet: Sheet, claim: Claim) -> Answer:
    """In how many settings a method is the best, or not significantly different from it."""
    metric: Metric = claim.get("metric", "accuracy")
    method = claim["method"]
    parts: list[str] = []
    everywhere: list[bool] = []
    for title, settings in _by_data(sheet):
        ours: list[bool] = []
        tested = True
        for setting in settings:
            places = sheet.standings(setting, metric)
            if method in places and len(places) > 1:
                mark = places[method].mark
                tested = tested and mark is not None
                ours.append(_leads(places, method, metric) if mark is None else mark != "worse")
        theirs = [n.best for s in settings if (n := sheet.at[s, method].published.get(metric))]
        words = "best or comparable" if tested else "best on average (too few trials for a test)"
        if ours:
            parts.append(
                f"{title}: {method} is {words} in {_count(ours)}"
                + (f", in the paper best or comparable in {_count(theirs)}" if theirs else "")
            )
        everywhere += ours
    return everywhere, "; ".join(parts) + "."


def _leads(places: Mapping[str, Standing], method: str, metric: Metric) -> bool:
    """Whether a method has the best mean, where no test was made."""
    sign = -1 if lower_is_better(metric) else 1
    return method == max(places, key=lambda name: sign * places[name].mean)


def above(sheet: Sheet, claim: Claim) -> Answer:
    """In how many settings the first of a pair is above the second, by more than rounding does."""
    ours: list[bool] = []
    sure, against, close = 0, 0, 0
    for better, worse in _pairs(sheet, claim):
        gaps = _gaps(better, worse, claim)
        if not gaps:
            continue
        gap = float(np.mean(gaps))
        ours.append(gap > sheet.resolution)
        close += abs(gap) <= sheet.resolution
        sure += ours[-1] and _significant(gaps)
        against += gap < -sheet.resolution and _significant(gaps)
    theirs = _published_gaps(sheet, claim)
    paper = f"; in the paper in {_count([gap > 0 for gap in theirs])}." if theirs else "."
    by = f" by more than {sheet.resolution:.1f} points" if sheet.resolution else ""
    tie = f"; {close} not distinguishable from the effect of rounding" if sheet.resolution else ""
    return ours, (
        f"the mean is higher{by} in {_count(ours)} comparisons "
        f"({sure} by a paired t-test at 5%, which is against it in {against}{tie}){paper}"
    )


def not_below(sheet: Sheet, claim: Claim) -> Answer:
    """In how many settings the first of a pair is not significantly below the second."""
    ours: list[bool] = []
    for first, second in _pairs(sheet, claim):
        gaps = _gaps(first, second, claim)
        if gaps:
            below = float(np.mean(gaps)) < -sheet.resolution
            ours.append(not (below and (_significant(gaps) or len(gaps) < FEWEST)))
    theirs = _published_gaps(sheet, claim)
    paper = _count([gap >= 0 for gap in theirs])
    finding = f"not below in {_count(ours)} comparisons" + (
        f"; in the paper the mean is not below in {paper}." if theirs else "."
    )
    return ours, finding


def robust(sheet: Sheet, claim: Claim) -> Answer:
    """Whether a method loses less than its rivals between two noise rates."""
    ours: list[bool] = []
    parts: list[str] = []
    names = [claim["method"], *claim["rivals"]]
    for title, settings in _by_data(sheet):
        by_shift = {setting.shift: setting for setting in settings}
        if not {claim["from"], claim["to"]} <= by_shift.keys():
            continue
        before, after = by_shift[claim["from"]], by_shift[claim["to"]]
        cells = [(sheet.at[before, name], sheet.at[after, name]) for name in names]
        measured = _losses([(one.mean(), other.mean()) for one, other in cells])
        printed = _losses([(one.published_mean(), other.published_mean()) for one, other in cells])
        if measured:
            ours.append(measured[0] == min(measured))
            paper = f" (in the paper {_say_losses(claim, printed)})" if printed else ""
            parts.append(f"{title}: {_say_losses(claim, measured)}{paper}")
    return ours, "; ".join(parts) + "."


def _losses(accuracies: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """First minus second; empty where one is unknown."""
    known = [a - b for a, b in accuracies if a is not None and b is not None]
    return known if len(known) == len(accuracies) else []


def _say_losses(claim: Claim, losses: Sequence[float]) -> str:
    own, *rivals = losses
    return (
        f"{claim['method']} loses {own:.1f} points, "
        f"its rivals {min(rivals):.1f} to {max(rivals):.1f}"
    )


def overfits(sheet: Sheet, claim: Claim) -> Answer:
    """Whether the last accuracy falls some points under the best one."""
    drops: dict[str, float] = {}
    for setting in sheet.settings:
        result = sheet.at[setting, claim["method"]]
        last, best = result.mean(), result.mean("best")
        if last is not None and best is not None:
            drops[f"{setting.data_title}, {setting.label}"] = best - last
    listed = "; ".join(f"{name}: {drop:.1f}" for name, drop in drops.items())
    ours = [drop >= claim["points"] for drop in drops.values()]
    return ours, (
        f"{claim['method']} ends at least {claim['points']:g} points under its best epoch in "
        f"{_count(ours)} ({listed})."
    )


def _by_data(sheet: Sheet) -> Iterator[tuple[str, list[Setting]]]:
    for title, settings in groupby(sheet.settings, key=lambda setting: setting.data_title):
        yield title, list(settings)


def _pairs(sheet: Sheet, claim: Claim) -> Iterator[tuple[FilledCell, FilledCell]]:
    shifts = claim.get("shifts", [setting.shift for setting in sheet.settings])
    for setting in (one for one in sheet.settings if one.shift in shifts):
        for first, second in claim["pairs"]:
            yield sheet.at[setting, first], sheet.at[setting, second]


def _gaps(first: FilledCell, second: FilledCell, claim: Claim) -> list[float]:
    """First minus second, by the seeds that both have."""
    metric: Metric = claim.get("metric", "accuracy")
    ours, theirs = first.values(metric), second.values(metric)
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def _significant(gaps: Sequence[float]) -> bool:
    return len(gaps) >= FEWEST and paired_p_value(gaps, [0.0] * len(gaps)) < LEVEL


def _published_gaps(sheet: Sheet, claim: Claim) -> list[float]:
    means = [(a.published_mean(), b.published_mean()) for a, b in _pairs(sheet, claim)]
    return [a - b for a, b in means if a is not None and b is not None]


def separates(sheet: Sheet, claim: Claim) -> Answer:
    """Whether a method's weights separate intact from mislabelled data better than the others'."""
    ours: list[bool] = []
    means: dict[str, list[float]] = {}
    for setting in sheet.settings:
        areas: dict[str, float] = {}
        for method in sheet.methods:
            trials = sheet.at[setting, method].trials
            known = [t.weight_auroc for t in trials if t.weight_auroc is not None]
            if known:
                areas[method] = float(np.mean(known))
                means.setdefault(method, []).append(areas[method])
        if claim["method"] in areas and len(areas) > 1:
            ours.append(claim["method"] == max(areas, key=lambda name: areas[name]))
    listed = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in means.items())
    return ours, f"its AUROC is the highest in {_count(ours)} (means: {listed})."


def concentrated(sheet: Sheet, claim: Claim) -> Answer:
    """Whether classes take more of the representation's variance with some methods than others."""
    shares: dict[str, float] = {}
    for method in sheet.methods:
        trials = [t for s in sheet.settings for t in sheet.at[s, method].trials]
        known = [share for t in trials if (share := concentration(t.run)) is not None]
        if known:
            shares[method] = float(np.mean(known))
    better = [name for name in claim["better"] if name in shares]
    worse = [name for name in claim["worse"] if name in shares]
    ours = [shares[a] > shares[b] for a in better for b in worse]
    listed = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares.items())
    return ours, (
        "the true classes explain more of the representation's variance in "
        f"{_count(ours)} comparisons ({listed})."
    )


def denoises(sheet: Sheet, claim: Claim) -> Answer:
    """Whether mislabelled data end nearer to their true than to their given labels."""
    ours: list[bool] = []
    parts: list[str] = []
    for setting in sheet.settings:
        known = [d for t in sheet.at[setting, claim["method"]].trials if (d := denoising(t.run))]
        if known:
            given, true, intact = (100 * float(value) for value in np.mean(known, axis=0))
            ours.append(true > given)
            parts.append(
                f"{setting.data_title}, {setting.label}: {true:.0f}% by the true label, "
                f"{given:.0f}% by the given one, {intact:.0f}% on intact data"
            )
    return ours, f"so in {_count(ours)} ({'; '.join(parts)})."


def closer_than_ones(sheet: Sheet, claim: Claim) -> Answer:
    """Whether learned weights are nearer to the true ones than weights of one."""
    metric: Metric = claim["metric"]
    ours: list[bool] = []
    theirs: list[bool] = []
    parts: list[str] = []
    for setting in sheet.settings:
        result, ones = sheet.at[setting, claim["method"]], ones_distance(setting.shift, metric)
        mean, published = result.mean(metric), result.published_mean(metric)
        if published is not None:
            theirs.append(published < ones)
        if mean is not None:
            ours.append(mean < ones)
            parts.append(f"{setting.label}: {mean:.2f} against {ones:.2f}")
    finding = f"in {_count(ours)} ({'; '.join(parts)})" + (
        f"; in the paper in {_count(theirs)}." if theirs else "."
    )
    return ours, finding


KINDS: dict[str, Callable[[Sheet, Claim], Answer]] = {
    "best": best,
    "above": above,
    "not-below": not_below,
    "robust": robust,
    "overfits": overfits,
    "separates": separates,
    "concentrated": concentrated,
    "denoises": denoises,
    "closer-than-ones": closer_than_ones,
}
"""Every kind of claim by the name that specs use."""
