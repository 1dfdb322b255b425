"""`--shift` values: names and numbers in, a `Shift` out."""

import math
import re
from collections.abc import Callable

from diw.errors import UsageError
from diw.shifts.base import Stage
from diw.shifts.contaminated import Contaminated
from diw.shifts.covariate import Covariate
from diw.shifts.labels import Matrix, Pair, Symmetric, read_matrix
from diw.shifts.priors import LongTail, Prior
from diw.shifts.shift import Shift

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

    Raises:
        UsageError: A name, a number or a file that cannot be; the message lists the choices.
    """
    stages: list[Stage] = []
    # A plus joins stages only before a word that could be one: 1e+2 and a+b.csv stay whole.
    for part in re.split(r"\+(?=\s*[a-z]*(?:[:+]|$))", text.strip()):
        name, _, values = part.strip().partition(":")
        if name == "none" and not values:
            continue
        if name not in _MAKERS:
            raise UsageError(
                f"shift: unknown {part!r}; choose {', '.join(USAGE.values())}, or several "
                "joined by +"
            )
        stages.append(_MAKERS[name](name, values))
    return Shift(tuple(stages))


def _symmetric(name: str, values: str) -> Stage:
    return Symmetric(_rate(name, values))


def _pair(name: str, values: str) -> Stage:
    return Pair(_rate(name, values))


def _matrix(name: str, values: str) -> Stage:
    if not values:
        raise UsageError(f"shift: {name} needs a file; write {USAGE[name]}")
    return Matrix(read_matrix(values), values)


def _contaminated(name: str, values: str) -> Stage:
    if _is_number(values):
        return Contaminated(_rate(name, values))
    if not values:
        raise UsageError(f"shift: {name} needs a rate or a file; write {USAGE[name]}")
    return Contaminated(mixture=read_matrix(values), source=values)


def _prior(name: str, values: str) -> Stage:
    minority, ratio, *size = _numbers(name, values, 2, 3)
    if not 0 <= minority < 1:
        raise UsageError(f"shift: the minority share of {name} lies in [0, 1), got {minority:g}")
    return Prior(minority, _ratio(name, ratio), _size(name, size))


def _long_tail(name: str, values: str) -> Stage:
    ratio, *size = _numbers(name, values, 1, 2)
    return LongTail(_ratio(name, ratio), _size(name, size))


def _covariate(name: str, values: str) -> Stage:
    strength, *feature = _numbers(name, values, 1, 2)
    if strength < 0:
        raise UsageError(f"shift: the strength of {name} is not negative, got {strength:g}")
    if feature and (feature[0] < 0 or feature[0] % 1):
        raise UsageError(f"shift: the feature of {name} is a column number, got {feature[0]:g}")
    return Covariate(strength, int(feature[0]) if feature else None)


_MAKERS: dict[str, Callable[[str, str], Stage]] = {
    "symmetric": _symmetric,
    "pair": _pair,
    "matrix": _matrix,
    "contaminated": _contaminated,
    "prior": _prior,
    "longtail": _long_tail,
    "covariate": _covariate,
}


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


def _rate(name: str, values: str) -> float:
    (rate,) = _numbers(name, values, 1, 1)
    if not 0 <= rate < 1:
        raise UsageError(f"shift: the rate of {name} lies in [0, 1), got {rate:g}")
    return rate


def _ratio(name: str, ratio: float) -> float:
    if ratio < 1:
        raise UsageError(f"shift: the ratio of {name} is at least 1, got {ratio:g}")
    return ratio


def _size(name: str, size: list[float]) -> int | None:
    if not size:
        return None
    if size[0] < 1 or size[0] % 1:
        raise UsageError(f"shift: the size of {name} is a number of rows, got {size[0]:g}")
    return int(size[0])
