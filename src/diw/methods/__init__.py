"""Weighting methods: one small class each, in a file with its family; here, all by name."""

import dataclasses
import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_origin

from diw.config import RETIRED, help_of
from diw.errors import UsageError

# Listings have the methods in the order of these lines.
# isort: off
from diw.methods.base import Method, Task, normalised
from diw.methods.baselines import Clean, Uniform, Random, Truth
from diw.methods.paper import Iw, SiwF, SiwL, Diw1F, Diw1L, Diw2F, Diw, Diw3F, Diw3L
from diw.methods.gradient import Reweight, MwNet
from diw.methods.remember import Remember
from diw.methods.adiw import Adiw
from diw.methods.glc import Glc, IwT
from diw.methods.elr import Elr
from diw.methods.giw import Giw
# isort: on

__all__ = [
    "Adiw",
    "Clean",
    "Diw",
    "Diw1F",
    "Diw1L",
    "Diw2F",
    "Diw3F",
    "Diw3L",
    "Elr",
    "Field",
    "Giw",
    "Glc",
    "Iw",
    "IwT",
    "Method",
    "MwNet",
    "Random",
    "Remember",
    "Reweight",
    "SiwF",
    "SiwL",
    "Task",
    "Truth",
    "Uniform",
    "describe",
    "find",
    "make",
    "methods",
    "normalised",
]


@dataclasses.dataclass(frozen=True)
class Field:
    """One configuration field of a method, for listings and command lines."""

    name: str
    type: str
    default: Any
    text: str


def methods() -> dict[str, type[Method]]:
    """Every method by canonical name, in the order in which they are defined.

    A new file in this package is found by itself. Classes defined elsewhere by subclassing `Method`
    count too, once their module is imported.
    """
    _import_all()
    found: dict[str, type[Method]] = {}
    pending: list[type[Method]] = [Method]
    while pending:
        cls = pending.pop(0)
        pending.extend(cls.__subclasses__())
        if "name" in vars(cls) and cls.name:
            found[cls.name] = cls
    return dict(sorted(found.items(), key=lambda item: item[1].defined))


def find(name: str) -> type[Method]:
    """The method of that name or alias; an unknown one is a `UsageError` that lists the choices."""
    known = methods()
    for cls in known.values():
        if name in (cls.name, *cls.aliases):
            return cls
    close = get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    raise UsageError(f"method: there is no {name!r}{hint}; choose from {', '.join(known)}")


def make(name: str, fields: Mapping[str, Any] | None = None) -> Method:
    """A method by name with some of its fields set; text is read as the field's type.

    Args:
        name: A canonical name or alias.
        fields: Values by field name, e.g. `{"bound": 10}` or `{"bound": "10"}`.
    """
    cls = find(name)
    known = {field.name: field for field in describe(cls)}
    retired = RETIRED.get(cls.name, {})
    values: dict[str, Any] = {}
    for key, value in (fields or {}).items():
        if key in retired and value == retired[key]:
            continue
        if key not in known:
            has = ", ".join(known) or "none"
            raise UsageError(f"{cls.name}.{key}: {cls.name} has no field {key!r}; it has {has}")
        values[key] = _read(value, known[key], cls.name) if isinstance(value, str) else value
    return cls(**values)


def describe(cls: type[Method]) -> list[Field]:
    """The fields of a method: name, type, default, and what its docstring says of them."""
    texts = help_of(cls)
    return [
        Field(f.name, _type_name(f.type), f.default, texts.get(f.name, ""))
        for f in dataclasses.fields(cls)
        if f.init
    ]


def _type_name(kind: Any) -> str:
    """A field's type as users see it; one of several words is text."""
    return "str" if get_origin(kind) is Literal else str(getattr(kind, "__name__", kind))


def _read(text: str, field: Field, method: str) -> Any:
    """A command line's text as a field's value: by the kinds that its type admits."""
    kinds = {kind.strip() for kind in field.type.split("|")}
    if "None" in kinds and text.lower() in ("none", ""):
        return None
    if "bool" in kinds and text.lower() in ("true", "false", "yes", "no", "1", "0"):
        return text.lower() in ("true", "yes", "1")
    for kind, convert in (("int", int), ("float", float)):
        if kind in kinds:
            try:
                return convert(text)
            except ValueError:
                continue
    if "str" in kinds:
        return text
    raise UsageError(f"{method}.{field.name}: {text!r} is not a {field.type}")


@cache
def _import_all() -> None:
    package = import_module("diw.methods")
    for module in pkgutil.iter_modules(package.__path__, "diw.methods."):
        import_module(module.name)
