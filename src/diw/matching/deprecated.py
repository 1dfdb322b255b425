"""What matching took in version 0.2: it works with a warning that says what to use, until 1.0."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

from diw.alerts import warn

INSTEAD = {
    "el": "Entropy",
    "entropy": "Entropy",
    "chi2": "Chi2",
    "ulsif": "ULSIF",
    "kliep": "Logistic",
    "logistic": "Logistic",
    "isotonic": "Isotonic",
}
"""Old solver and function → estimator. `el` and `kliep` give the weights of another one."""
OLD_CLASSES = {"EL": "Entropy", "KLIEP": "Logistic"}
OLD_SOLVERS = frozenset({*INSTEAD, "pgd"})
OLD_OPTIONS = {"penalty": None, "backend": "auto", "features": "any", "steps": 1, "rate": 1.0}
"""Options that `kmm` has no longer, and what they were by default."""
PGD = "is a step of the method adiw now: diw.methods.adiw.projected_steps"


def _say(old: str, new: str) -> None:
    warn(f"{old} is deprecated and goes with diw 1.0: use {new}", DeprecationWarning)


def _matching() -> Any:
    """The package, which imports this module first."""
    return import_module("diw.matching")


def old_class(name: str) -> Any:
    """What `diw.matching` still gives for a class of version 0.2.

    Raises:
        AttributeError: There was no such name.
    """
    if name in OLD_CLASSES:
        _say(f"diw.matching.{name}", f"{OLD_CLASSES[name]}, whose weights are closer to the ratio")
        return getattr(_matching(), OLD_CLASSES[name])
    if name.lower() == "pgd":
        raise AttributeError(f"diw.matching.{name} {PGD}")
    raise AttributeError(f"module 'diw.matching' has no attribute {name!r}")


def old_function(name: str) -> Callable[..., Any]:
    """A function of version 0.2, which gives a `Match`."""

    def by_old_name(z_train: Any, z_trusted: Any, **options: Any) -> Any:
        [match] = match_by_old_name([(z_train, z_trusted)], {**options, "solver": name})
        return match

    return by_old_name


def match_by_old_name(pairs: Sequence[tuple[Any, Any]], options: Mapping[str, Any]) -> list[Any]:
    """The matches of calls with old options or an old solver.

    Raises:
        ValueError: An option that the solver does not read, by its name.
    """
    matching, kmm = _matching(), import_module("diw.matching.kmm")
    given, solver = dict(options), options.get("solver", "exact")
    if solver == "pgd":
        raise ValueError(f"solver: 'pgd' {PGD}")
    if given.pop("backend", None) is not None:
        _say("backend=", "nothing: all is computed by NumPy, and tensors come back on their device")
    if solver not in INSTEAD:
        left = {name: value for name, value in given.items() if name in OLD_OPTIONS}
        _refuse(left, OLD_OPTIONS, f"solver={solver!r}")
        known = {name: value for name, value in given.items() if name not in left}
        return [solved.match for solved in kmm.solve(pairs, kmm.Options(**known))]
    kind = getattr(matching, INSTEAD[solver])
    _say(f"solver={solver!r}", f"diw.matching.{kind.__name__}().fit(train, trusted).weights_")
    names = {field.name for field in fields(kind)}
    defaults = {field.name: field.default for field in fields(kmm.Options)} | OLD_OPTIONS
    unread = {name: value for name, value in given.items() if name not in names | {"solver"}}
    _refuse(unread, defaults, kind.__name__)
    read = {name: value for name, value in given.items() if name in names}
    found = [kind(**read).fit(*pair) for pair in pairs]
    nan = float("nan")
    return [
        matching.Match(
            each.weights_, each.status_, 0, getattr(each, "gamma_", 0.0), 0,
            nan, nan, nan, nan, nan, getattr(each, "error_bound_", nan),
        )
        for each in found
    ]  # fmt: skip


def _refuse(options: Mapping[str, Any], defaults: Mapping[str, Any], who: str) -> None:
    for name, value in options.items():
        if name not in defaults or value != defaults[name]:
            raise ValueError(f"{name}: {who} does not use it; leave it out")
