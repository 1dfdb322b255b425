"""What the whole package agrees on and specs rely on: defaults, words of specs, checks and help of
fields.

A spec is hashed, and the hash names its run. So a spec keeps the fields and the words that it was
written with, also where the code has dropped or renamed them since: here one becomes the other.
"""

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from diw.errors import UsageError

DEFAULT_METHOD = "remember"
"""What commands, objectives and adapters use where no method is named."""

LATER = {"later": True}
"""Metadata of a field that was added when runs had been kept already: `field(default=…,
metadata=LATER)`. At its default it is left out of a spec, so that these runs keep their names."""

CONTROLS = ("clean", "random", "truth")
"""Methods whose training says nothing of the labels (`Method.is_control`), by name: what reads runs
does not import methods."""

RETIRED: Mapping[str, Mapping[str, Any]] = {"adiw": {"solver": "pgd"}}
"""Fields that a method does not have any more, with the one value that specs give them."""


def field_values(values: Any) -> dict[str, Any]:
    """What a spec says of a dataclass: its fields by name, later ones only where they are set.

    A value that was renamed is written as before (`metadata={"written": {new: old}}`).
    """
    said: dict[str, Any] = {}
    for entry in fields(values):
        value = getattr(values, entry.name)
        if entry.init and not (entry.metadata.get("later") and value == entry.default):
            words = entry.metadata.get("written")
            said[entry.name] = words.get(value, value) if words else value
    return said


def check_fields(
    owner: Any,
    *names: str,
    of: str = "",
    least: float = 0,
    positive: bool = False,
    below: float = math.inf,
) -> None:
    """Refuse a number among the fields of an object that is out of range or NaN, by its name.

    Args:
        owner: Whose fields they are.
        names: Fields that hold a number, or None.
        of: What the fields are said to belong to, such as the name of a method.
        least: The smallest number that is allowed.
        positive: Whether zero, and what is less, is not.
        below: What all numbers are smaller than.
    """
    if below < math.inf:
        words = f"be in {'(' if positive else '['}{least:g}, {below:g})"
    elif positive:
        words = "be positive and finite"
    else:
        words = f"be at least {least:g}" if least else "not be negative"
    for name in names:
        value = getattr(owner, name)
        if value is None or ((value > 0 if positive else value >= least) and value < below):
            continue
        raise UsageError(f"{of}.{name}".lstrip(".") + f": must {words}, and is {value}")


def help_of(kind: type) -> dict[str, str]:
    """What the fields of a class are, from the section "Attributes" of its and its bases'
    docstrings: they are there wherever the class is, unlike sources.
    """
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if vars(base).get("__doc__"):
            texts.update(_attributes(inspect.cleandoc(vars(base)["__doc__"])))
    return texts


def _attributes(text: str) -> dict[str, str]:
    """The entries of a section "Attributes", each on one line."""
    _, _, section = text.partition("\nAttributes:\n")
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        entry = re.fullmatch(r" {4}(\w+): (.*)", line)
        if entry:
            found[entry[1]] = [entry[2]]
        elif line.startswith(" " * 8) and found:
            found[list(found)[-1]].append(line.strip())
        elif line.strip():
            break
    return {name: " ".join(lines) for name, lines in found.items()}
