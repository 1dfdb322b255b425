"""A claim's verdict: counted, in favour or against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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


def judge(claim: Claim, count: Count, finding: str) -> Verdict:
    """The verdict of a count; without cases nothing is claimed."""
    told = finding if count.cases else "no finished runs to test it on."
    return Verdict(claim["text"], count.outcome, told)
