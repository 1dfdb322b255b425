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

from diw.reports.paper.results import (
    FEWEST,
    Metric,
    Result,
    Setting,
    Sheet,
    concentration,
    denoising,
    lower_is_better,
    ones_distance,
)
from diw.reports.statistics import LEVEL, Standing, paired_p_value

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


@dataclass(frozen=True)
class Count:
    """Successes among cases."""

    hits: int
    cases: int

    @classmethod
    def of(cls, outcomes: Sequence[bool]) -> "Count":
        """Count what is true."""
        return cls(sum(outcomes), len(outcomes))

    def __str__(self) -> str:
        return f"{self.hits} of {self.cases}"

    @property
    def outcome(self) -> Outcome:
        """All, some or none."""
        if not self.cases:
            return "not tested"
        if self.hits == self.cases:
            return "holds"
        return "holds in part" if self.hits else "does not hold"


def _judge(claim: Claim, count: Count, finding: str) -> Verdict:
    """The verdict of a count; without cases nothing is claimed."""
    text = finding if count.cases else "no finished runs to test it on."
    return Verdict(claim["text"], count.outcome, text)


def best(sheet: Sheet, claim: Claim) -> Verdict:
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
                verdict = places[method].mark
                tested = tested and verdict is not None
                ours.append(verdict in ("best", "comparable") or _leads(places, method, metric))
        theirs = [n.best for s in settings if (n := sheet.at(s, method).published.get(metric))]
        words = "best or comparable" if tested else "best on average (too few trials for a test)"
        if ours:
            parts.append(
                f"{title}: {method} is {words} in {Count.of(ours)}"
                + (f", in the paper best or comparable in {Count.of(theirs)}" if theirs else "")
            )
        everywhere += ours
    return _judge(claim, Count.of(everywhere), "; ".join(parts) + ".")


def _leads(places: Mapping[str, Standing], method: str, metric: Metric) -> bool:
    """Whether a method has the best mean, where no test was made."""
    if places[method].mark is not None:
        return False
    sign = -1 if lower_is_better(metric) else 1
    return method == max(places, key=lambda name: sign * places[name].mean)


def above(sheet: Sheet, claim: Claim) -> Verdict:
    """In how many settings the first of a pair is above the second."""
    ours: list[bool] = []
    sure, backed = 0, 0
    for better, worse in _pairs(sheet, claim):
        gaps = _gaps(better, worse)
        if not gaps:
            continue
        ours.append(float(np.mean(gaps)) > 0)
        if _significant(gaps):
            sure += ours[-1]
            backed += not ours[-1]
    theirs = _published_gaps(sheet, claim)
    paper = Count.of([gap > 0 for gap in theirs])
    finding = (
        f"the mean is higher in {Count.of(ours)} comparisons "
        f"({sure} by a paired t-test at 5%, which is against it in {backed})"
        + (f"; in the paper in {paper}." if theirs else ".")
    )
    return _judge(claim, Count.of(ours), finding)


def not_below(sheet: Sheet, claim: Claim) -> Verdict:
    """In how many settings the first of a pair is not significantly below the second."""
    ours: list[bool] = []
    for first, second in _pairs(sheet, claim):
        gaps = _gaps(first, second)
        if gaps:
            below = float(np.mean(gaps)) < 0
            ours.append(not (below and (_significant(gaps) or len(gaps) < FEWEST)))
    theirs = _published_gaps(sheet, claim)
    paper = Count.of([gap >= 0 for gap in theirs])
    finding = f"not below in {Count.of(ours)} comparisons" + (
        f"; in the paper the mean is not below in {paper}." if theirs else "."
    )
    return _judge(claim, Count.of(ours), finding)


def robust(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether a method loses less than its rivals between two noise rates."""
    ours: list[bool] = []
    parts: list[str] = []
    for title, settings in _by_data(sheet):
        by_shift = {setting.shift: setting for setting in settings}
        before, after = by_shift.get(claim["from"]), by_shift.get(claim["to"])
        if before is None or after is None:
            continue
        names = [claim["method"], *claim["rivals"]]
        measured = {n: _loss(sheet.at(before, n), sheet.at(after, n)) for n in names}
        printed = {n: _published_loss(sheet.at(before, n), sheet.at(after, n)) for n in names}
        if measured[claim["method"]] is None or None in measured.values():
            continue
        ours.append(_least(measured, claim["method"]))
        paper = f" (in the paper {_losses(printed, claim)})" if None not in printed.values() else ""
        parts.append(f"{title}: {_losses(measured, claim)}{paper}")
    return _judge(claim, Count.of(ours), "; ".join(parts) + ".")


def _losses(losses: Mapping[str, float | None], claim: Claim) -> str:
    known = {name: value for name, value in losses.items() if value is not None}
    own = known.pop(claim["method"])
    low, high = min(known.values()), max(known.values())
    return f"{claim['method']} loses {own:.1f} points, its rivals {low:.1f} to {high:.1f}"


def _least(losses: Mapping[str, float | None], method: str) -> bool:
    known = {name: value for name, value in losses.items() if value is not None}
    return method == min(known, key=lambda name: known[name])


def _loss(before: Result, after: Result) -> float | None:
    first, last = before.values("accuracy").values(), after.values("accuracy").values()
    return float(np.mean(list(first)) - np.mean(list(last))) if first and last else None


def _published_loss(before: Result, after: Result) -> float | None:
    first, last = before.published.get("accuracy"), after.published.get("accuracy")
    return first.mean - last.mean if first and last else None


def overfits(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether the last accuracy falls some points under the best one."""
    drops: dict[str, float] = {}
    for setting in sheet.settings:
        result = sheet.at(setting, claim["method"])
        last, best = result.values("accuracy"), result.values("best")
        if last:
            drop = float(np.mean(list(best.values())) - np.mean(list(last.values())))
            drops[f"{setting.data_title}, {setting.label}"] = drop
    listed = "; ".join(f"{name}: {drop:.1f}" for name, drop in drops.items())
    count = Count.of([drop >= claim["points"] for drop in drops.values()])
    finding = (
        f"{claim['method']} ends at least {claim['points']:g} points under its best epoch in "
        f"{count} ({listed})."
    )
    return _judge(claim, count, finding)


def _by_data(sheet: Sheet) -> Iterator[tuple[str, list[Setting]]]:
    for title, settings in groupby(sheet.settings, key=lambda setting: setting.data_title):
        yield title, list(settings)


def _pairs(sheet: Sheet, claim: Claim) -> Iterator[tuple[Result, Result]]:
    for setting in sheet.settings:
        for first, second in claim["pairs"]:
            yield sheet.at(setting, first), sheet.at(setting, second)


def _gaps(first: Result, second: Result) -> list[float]:
    """First minus second, by the seeds that both have."""
    ours, theirs = first.values("accuracy"), second.values("accuracy")
    return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]


def _significant(gaps: Sequence[float]) -> bool:
    return len(gaps) >= FEWEST and paired_p_value(gaps, [0.0] * len(gaps)) < LEVEL


def _published_gaps(sheet: Sheet, claim: Claim) -> list[float]:
    numbers = [
        (first.published.get("accuracy"), second.published.get("accuracy"))
        for first, second in _pairs(sheet, claim)
    ]
    return [first.mean - second.mean for first, second in numbers if first and second]


def separates(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether a method's weights separate intact from mislabelled data better than the others'."""
    ours: list[bool] = []
    means: dict[str, list[float]] = {}
    for setting in sheet.settings:
        areas: dict[str, float] = {}
        for method in sheet.methods:
            trials = sheet.at(setting, method).trials
            known = [t.summary.weight_auroc for t in trials if t.summary.weight_auroc is not None]
            if known:
                areas[method] = float(np.mean(known))
                means.setdefault(method, []).append(areas[method])
        if claim["method"] in areas and len(areas) > 1:
            ours.append(claim["method"] == max(areas, key=lambda name: areas[name]))
    listed = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in means.items())
    finding = f"its AUROC is the highest in {Count.of(ours)} (means: {listed})."
    return _judge(claim, Count.of(ours), finding)


def concentrated(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether classes take more of the representation's variance with some methods than others."""
    shares: dict[str, float] = {}
    for method in sheet.methods:
        trials = [t for s in sheet.settings for t in sheet.at(s, method).trials]
        known = [share for t in trials if (share := concentration(t.run)) is not None]
        if known:
            shares[method] = float(np.mean(known))
    better = [name for name in claim["better"] if name in shares]
    worse = [name for name in claim["worse"] if name in shares]
    count = Count.of([shares[a] > shares[b] for a in better for b in worse])
    listed = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares.items())
    finding = (
        f"the true classes explain more of the representation's variance in {count} comparisons "
        f"({listed})."
    )
    return _judge(claim, count, finding)


def denoises(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether mislabelled data end nearer to their true than to their given labels."""
    ours: list[bool] = []
    parts: list[str] = []
    for setting in sheet.settings:
        known = [d for t in sheet.at(setting, claim["method"]).trials if (d := denoising(t.run))]
        if known:
            given, true, intact = (100 * float(value) for value in np.mean(known, axis=0))
            ours.append(true > given)
            parts.append(
                f"{setting.data_title}, {setting.label}: {true:.0f}% by the true label, "
                f"{given:.0f}% by the given one, {intact:.0f}% on intact data"
            )
    finding = f"so in {Count.of(ours)} ({'; '.join(parts)})."
    return _judge(claim, Count.of(ours), finding)


def closer_than_ones(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether learned weights are nearer to the true ones than weights of one."""
    metric: Metric = claim["metric"]
    ours: list[bool] = []
    theirs: list[bool] = []
    parts: list[str] = []
    for setting in sheet.settings:
        result, ones = sheet.at(setting, claim["method"]), ones_distance(setting.shift, metric)
        values = list(result.values(metric).values())
        number = result.published.get(metric)
        if number is not None:
            theirs.append(number.mean < ones)
        if values:
            ours.append(float(np.mean(values)) < ones)
            parts.append(f"{setting.label}: {np.mean(values):.2f} against {ones:.2f}")
    finding = f"in {Count.of(ours)} ({'; '.join(parts)})" + (
        f"; in the paper in {Count.of(theirs)}." if theirs else "."
    )
    return _judge(claim, Count.of(ours), finding)


KINDS: dict[str, Callable[[Sheet, Claim], Verdict]] = {
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


def verdicts(sheet: Sheet) -> list[Verdict]:
    """Every claim of an experiment, tested on the trials that are there."""
    return [KINDS[claim["kind"]](sheet, claim) for claim in sheet.facts["claims"]]
