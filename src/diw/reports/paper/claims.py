"""What the paper claims, held against the numbers: computed for ours and for theirs alike.

A claim is an entry of an experiment's spec: the sentence, the kind of test and
the methods it is about. The answer is a line of counts, in favour or against.
"""

from collections.abc import Callable

from diw.reports.paper import claims_of_figures as figures
from diw.reports.paper import claims_of_tables as tables
from diw.reports.paper.results import Sheet
from diw.reports.paper.verdict import Claim, Verdict

KINDS: dict[str, Callable[[Sheet, Claim], Verdict]] = {
    "best": tables.best,
    "above": tables.above,
    "not-below": tables.not_below,
    "robust": tables.robust,
    "overfits": tables.overfits,
    "separates": figures.separates,
    "concentrated": figures.concentrated,
    "denoises": figures.denoises,
    "closer-than-ones": figures.closer_than_ones,
}
"""Every kind of claim by the name that specs use."""


def verdicts(sheet: Sheet) -> list[Verdict]:
    """Every claim of an experiment, tested on the trials that are there."""
    return [KINDS[claim["kind"]](sheet, claim) for claim in sheet.facts["claims"]]
