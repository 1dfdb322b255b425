"""The methods by name, found by themselves: a new file in this package is a new method."""

import ast
import dataclasses
import inspect
import pkgutil
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_origin

from diw.errors import UsageError
from diw.methods.base import Method

ORDER = (
    *("clean", "uniform", "random", "truth", "iw", "siw-f", "siw-l", "diw1-f", "diw1-l"),
    *("diw2-f", "diw", "diw3-f", "diw3-l", "reweight"),
    *("remember", "adiw", "glc", "iw-t", "mwnet", "elr", "giw"),
)
"""The order of listings: the paper's tables, our default, other authors' methods, any others."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One configuration field of a method, for listings and command lines."""

    name: str
    type: str
    default: Any
    text: str


def methods() -> dict[str, type[Method]]:
    """Every method by canonical name: the paper's in its order, then any others.

    Imports the modules of this package; classes defined elsewhere by
    subclassing `Method` count too once their module is imported.
    """
    _import_all()
    found: dict[str, type[Method]] = {}
    pending: list[type[Method]] = [Method]
    while pending:
        cls = pending.pop(0)
        pending.extend(cls.__subclasses__())
        if "name" in vars(cls) and cls.name:
            found[cls.name] = cls
    ranks = {name: rank for rank, name in enumerate(ORDER)}
    return dict(sorted(found.items(), key=lambda item: ranks.get(item[0], len(ranks))))


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
    values: dict[str, Any] = {}
    for key, value in (fields or {}).items():
        if key not in known:
            has = ", ".join(known) or "none"
            raise UsageError(f"{cls.name}.{key}: {cls.name} has no field {key!r}; it has {has}")
        values[key] = _read(value, known[key], cls.name) if isinstance(value, str) else value
    return cls(**values)


def describe(cls: type[Method]) -> list[Field]:
    """The fields of a method: name, type, default and their attribute docstrings."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base) and "__annotations__" in vars(base):
            texts.update(_attribute_docstrings(base))
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


def _attribute_docstrings(cls: type) -> dict[str, str]:
    """The string literals that follow annotated attributes in a class's source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            texts[statement.target.id] = inspect.cleandoc(after.value.value)
    return texts


@cache
def _import_all() -> None:
    package = import_module("diw.methods")
    for module in pkgutil.iter_modules(package.__path__, "diw.methods."):
        import_module(module.name)
