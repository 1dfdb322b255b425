"""`--shift` values: names and numbers in, a `Shift` out."""

from collections.abc import Callable

from diw.errors import UsageError
from diw.shifts.base import Stage
from diw.shifts.labels import Matrix, Pair, Symmetric, read_matrix
from diw.shifts.shift import Shift

USAGE = {
    "none": "none",
    "symmetric": "symmetric:RATE",
    "pair": "pair:RATE",
    "matrix": "matrix:FILE",
}
"""Every shift by name, as it is written."""


def parse_shift(text: str) -> Shift:
    """A shift from its text: `none`, `symmetric:0.4`, several joined by `+` in order.

    Raises:
        UsageError: A name, a number or a file that cannot be; the message lists the choices.
    """
    stages: list[Stage] = []
    for part in text.strip().split("+"):
        name, _, values = part.strip().partition(":")
        if name == "none" and not values:
            continue
        if name not in _MAKERS:
            raise UsageError(f"shift: unknown {part!r}; choose {', '.join(USAGE.values())}")
        stages.append(_MAKERS[name](name, values))
    return Shift(tuple(stages))


def _symmetric(name: str, values: str) -> Stage:
    return Symmetric(_rate(name, values))


def _pair(name: str, values: str) -> Stage:
    return Pair(_rate(name, values))


def _matrix(name: str, values: str) -> Stage:
    if not values:
        raise UsageError(f"shift: {name} needs a file: {USAGE[name]}")
    return Matrix(read_matrix(values), values)


_MAKERS: dict[str, Callable[[str, str], Stage]] = {
    "symmetric": _symmetric,
    "pair": _pair,
    "matrix": _matrix,
}


def numbers(name: str, values: str, least: int, most: int) -> list[float]:
    """Between `least` and `most` numbers separated by commas."""
    cells = values.split(",") if values else []
    try:
        found = [float(cell) for cell in cells]
    except ValueError:
        found = []
    if not least <= len(found) <= most or len(found) != len(cells):
        raise UsageError(f"shift: cannot read {name}:{values}; write {USAGE[name]}")
    return found


def _rate(name: str, values: str) -> float:
    (rate,) = numbers(name, values, 1, 1)
    if not 0 <= rate < 1:
        raise UsageError(f"shift: the rate of {name} lies in [0, 1), got {rate:g}")
    return rate
