"""Claims about tables: who is best, who is above whom, who loses least."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from diw.reports.paper.results import FEWEST, Metric, Result, Setting, Sheet, lower_is_better
from diw.reports.paper.verdict import Claim, Count, Verdict, judge
from diw.reports.statistics import LEVEL, Standing, paired_p_value


def best(sheet: Sheet, claim: Claim) -> Verdict:
    """In how many settings a method is the best, or not told apart from it."""
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
                verdict = places[method].verdict
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
    return judge(claim, Count.of(everywhere), "; ".join(parts) + ".")


def _leads(places: Mapping[str, Standing], method: str, metric: Metric) -> bool:
    """Whether a method has the best mean, where no test was made."""
    if places[method].verdict is not None:
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
    return judge(claim, Count.of(ours), finding)


def not_below(sheet: Sheet, claim: Claim) -> Verdict:
    """In how many settings the first of a pair is not told to be below the second."""
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
    return judge(claim, Count.of(ours), finding)


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
    return judge(claim, Count.of(ours), "; ".join(parts) + ".")


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
    told = "; ".join(f"{name}: {drop:.1f}" for name, drop in drops.items())
    count = Count.of([drop >= claim["points"] for drop in drops.values()])
    finding = (
        f"{claim['method']} ends at least {claim['points']:g} points under its best epoch in "
        f"{count} ({told})."
    )
    return judge(claim, count, finding)


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
