"""Simulated distribution shifts, reproducible by seed.

A text such as `"symmetric:0.4"` or `"prior:0.2,100+pair:0.3"` becomes a `Shift`, whose
stages hold their numbers as fields. Applying it gives the rows that are left, their given labels
and the true importance weights. Nothing here imports torch or reads a file before a shift is
applied, so commands, experiments and reports parse a text with the same function.
"""

import math
import re
from dataclasses import MISSING, fields
from typing import Any

from diw.errors import UsageError
from diw.shifts.inputs import Covariate, Region, Support
from diw.shifts.instance import Annotator, Instance
from diw.shifts.labels import Contaminated, Matrix, Pair, Symmetric
from diw.shifts.priors import LongTail, Prior
from diw.shifts.shift import Shift, Shifted, Stage, number_text

__all__ = [
    "USAGE",
    "Annotator",
    "Contaminated",
    "Covariate",
    "Instance",
    "LongTail",
    "Matrix",
    "Pair",
    "Prior",
    "Region",
    "Shift",
    "Shifted",
    "Stage",
    "Support",
    "Symmetric",
    "number_text",
    "parse_shift",
]

_STAGES: dict[str, Any] = {
    stage.name: stage
    for stage in (
        *(Symmetric, Pair, Matrix, Instance, Annotator, Contaminated, Prior, LongTail),
        *(Covariate, Support, Region),
    )
}

USAGE = {"none": "none"} | {name: f"{name}:{stage.usage}" for name, stage in _STAGES.items()}
"""Every shift by name, as it is written; several are joined by + in their order."""


def parse_shift(text: str) -> Shift:
    """A shift from its text: `none`, `symmetric:0.4`, `prior:0.2,100+pair:0.3`.

    Files that the text names are read when the shift is applied.

    Raises:
        UsageError: An unknown name or a number out of range; the message says what to write.
    """
    stages: list[Stage] = []
    # A plus joins stages only before a word that could be one: 1e+2 and a+b.csv stay whole.
    for part in re.split(r"\+(?=\s*[a-z]*(?:[:+]|$))", text.strip()):
        name, _, values = part.strip().partition(":")
        if name == "none" and not values:
            continue
        if name not in _STAGES:
            raise UsageError(
                f"shift: unknown {part!r}; choose {', '.join(USAGE.values())}, or several "
                "joined by +"
            )
        stages.append(_parse_stage(name, values))
    return Shift(tuple(stages))


def _parse_stage(name: str, values: str) -> Stage:
    """One stage: its values are the fields of its class, which checks their ranges."""
    stage = _STAGES[name]
    try:
        numbers = [float(cell) for cell in values.split(",")]
    except ValueError:
        numbers = []
    if values and (stage is Matrix or (stage is Contaminated and len(numbers) != 1)):
        return stage(values)  # a file
    needed = sum(field.default is MISSING for field in fields(stage))
    if not needed <= len(numbers) <= len(fields(stage)):
        raise UsageError(f"shift: cannot read {name}:{values}; write {USAGE[name]}")
    if not all(map(math.isfinite, numbers)):
        raise UsageError(f"shift: {name}:{values} has a number that is not finite")
    return stage(*map(_whole, numbers))


def _whole(number: float) -> float:
    """Sizes and column numbers as integers; beyond 2^53 a float need not be the number written."""
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number
