"""Names of version 0.2: one table, one warning at each use; they go with version 1.0."""

import warnings
from importlib import import_module
from typing import Any, overload

NAMES = {
    "diw": {
        "Indexed": "IndexedDataset",
        "Weighted": "ImportanceWeighted",
        "Weighting": "Method",
        "weighting": "methods",
    },
    "diw.integrations.huggingface": {"WeightedTrainer": "ImportanceWeightedTrainer"},
}
"""Old name → new name, by the module that has both. Where an attribute has an old name, its class
says so by `Renamed`."""


def old_name(module: str, name: str) -> Any:
    """What `module` gives for a name of version 0.2, with a warning: for its `__getattr__`.

    Raises:
        AttributeError: There was no such name.
    """
    new = NAMES[module].get(name)
    if new is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warn(f"{module}.{name}", f"{module}.{new}", stacklevel=3)
    return getattr(import_module(module), new)


def warn(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Say at the caller's place that `old` is called `new`.

    Args:
        old: The name that version 0.2 documented.
        new: What to write instead.
        stacklevel: How many frames above the caller of this function the user's line is, plus one.
    """
    warnings.warn(
        f"{old} is deprecated and goes with diw 1.0: use {new}",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


class Renamed:
    """The old name of an attribute: reading it warns and gives the new one.

    Example:
        >>> class Step:
        ...     fit = Renamed("train_forward")
    """

    def __init__(self, new: str):
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Renamed": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        warn(f"{owner.__name__}.{self._old}", self._new)
        return getattr(instance, self._new)
