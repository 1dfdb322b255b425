"""Claims about figures and weights, each by a number behind the picture."""

import numpy as np

from diw.reports.paper.evidence import concentration, denoising, ones_distance
from diw.reports.paper.results import Metric, Sheet
from diw.reports.paper.verdict import Claim, Count, Verdict, judge


def separates(sheet: Sheet, claim: Claim) -> Verdict:
    """Whether a method's weights tell intact from mislabelled data better than the others'."""
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
    told = ", ".join(f"{name} {np.mean(values):.3f}" for name, values in means.items())
    finding = f"its AUROC is the highest in {Count.of(ours)} (means: {told})."
    return judge(claim, Count.of(ours), finding)


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
    told = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares.items())
    finding = (
        f"the true classes explain more of the representation's variance in {count} comparisons "
        f"({told})."
    )
    return judge(claim, count, finding)


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
    return judge(claim, Count.of(ours), finding)


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
    return judge(claim, Count.of(ours), finding)
