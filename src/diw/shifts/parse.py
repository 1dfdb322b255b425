"""The one parser of a shift's text, for commands, experiments and reports."""

import math
import re

from diw.errors import UsageError
from diw.shifts.covariate import Covariate
from diw.shifts.labels import Contaminated, Matrix, Pair, Symmetric
from diw.shifts.priors import LongTail, Prior
from diw.shifts.shift import Shift, Stage

USAGE = {
    "none": "none",
    "symmetric": "symmetric:RATE",
    "pair": "pair:RATE",
    "matrix": "matrix:FILE",
    "contaminated": "contaminated:RATE|FILE",
    "prior": "prior:MINORITY,RATIO[,SIZE]",
    "longtail": "longtail:RATIO[,SIZE]",
    "covariate": "covariate:STRENGTH[,FEATURE]",
}
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
        stage = _parse_stage(name, values)
        if stage is None:
            raise UsageError(
                f"shift: unknown {part!r}; choose {', '.join(USAGE.values())}, or several "
                "joined by +"
            )
        stages.append(stage)
    return Shift(tuple(stages))


def _parse_stage(name: str, values: str) -> Stage | None:
    """One stage, or None for an unknown name."""
    match name:
        case "symmetric":
            return Symmetric(_rate(name, values))
        case "pair":
            return Pair(_rate(name, values))
        case "matrix":
            return Matrix(_file(name, values, "a file"))
        case "contaminated" if _is_number(values):
            return Contaminated(_rate(name, values))
        case "contaminated":
            return Contaminated(source=_file(name, values, "a rate or a file"))
        case "prior":
            minority, ratio, *size = _numbers(name, values, 2, 3)
            _check(0 <= minority < 1, f"the minority share of {name} lies in [0, 1)", minority)
            return Prior(minority, _ratio(name, ratio), _size(name, size))
        case "longtail":
            ratio, *size = _numbers(name, values, 1, 2)
            return LongTail(_ratio(name, ratio), _size(name, size))
        case "covariate":
            strength, *feature = _numbers(name, values, 1, 2)
            _check(strength >= 0, f"the strength of {name} is not negative", strength)
            if not feature:
                return Covariate(strength)
            column = feature[0]
            _check(
                column >= 0 and not column % 1, f"the feature of {name} is a column number", column
            )
            return Covariate(strength, int(column))
        case _:
            return None


def _check(holds: bool, rule: str, got: float) -> None:
    if not holds:
        raise UsageError(f"shift: {rule}, got {got:g}")


def _file(name: str, values: str, needed: str) -> str:
    if not values:
        raise UsageError(f"shift: {name} needs {needed}; write {USAGE[name]}")
    return values


def _rate(name: str, values: str) -> float:
    (rate,) = _numbers(name, values, 1, 1)
    _check(0 <= rate < 1, f"the rate of {name} lies in [0, 1)", rate)
    return rate


def _ratio(name: str, ratio: float) -> float:
    _check(ratio >= 1, f"the ratio of {name} is at least 1", ratio)
    return ratio


def _size(name: str, size: list[float]) -> int | None:
    if not size:
        return None
    _check(size[0] >= 1 and not size[0] % 1, f"the size of {name} is a number of rows", size[0])
    return int(size[0])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(name: str, values: str, least: int, most: int) -> list[float]:
    """Between `least` and `most` finite numbers separated by commas."""
    cells = values.split(",")
    found = [float(cell) for cell in cells if _is_number(cell)]
    if len(found) != len(cells) or not least <= len(found) <= most:
        raise UsageError(f"shift: cannot read {name}:{values}; write {USAGE[name]}")
    if not all(map(math.isfinite, found)):
        raise UsageError(f"shift: {name}:{values} has a number that is not finite")
    return found
