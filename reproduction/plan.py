"""From an experiment to its runs: every cell of its table with the specs of its trials.

Results share runs: a run is named by the hash of its spec, and the specs of a
cell depend on its protocol alone. A run has the observers that any of the
results asks for, so that one training serves the tables and the figures.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from diw.data import BENCHMARKS, find
from diw.errors import UsageError
from diw.runs import Recipe, RunSpec, spec_hash
from diw.training import with_method
from reproduction.catalogue import Entry, Experiment, Place, Protocol, Published, Scale, catalogue
from reproduction.catalogue import published as published_numbers

CellState = Literal["planned", "no data", "absent"]

_RECIPE = frozenset(field.name for field in fields(Recipe))
_SPEC = frozenset(
    {"shift", "trusted", "trusted_in_train", "trusted_wrong", "train_samples", "test_samples"}
    | {"model", "threads"}
)


@dataclass(frozen=True)
class PlannedCell:
    """One number of a table before it is known: a method in a setting, and its runs."""

    data: str
    shift: str
    """As the experiment names it; the specs' own may add sizes."""
    variant: str
    entry: Entry
    state: CellState
    reason: str
    """Why a cell is not planned."""
    synthetic: bool
    """Whether generated images replace a benchmark whose files are missing (smoke only)."""
    specs: tuple[RunSpec, ...]
    """One per trial, by seed; empty unless planned."""
    published: Mapping[str, Published]
    """By metric: `accuracy`, or `mae` and `rmse`."""


def plan(
    experiment: Experiment, scale: Scale, trials: int | None = None, device: str = "cpu"
) -> list[PlannedCell]:
    """Every cell of an experiment, setting by setting.

    Args:
        experiment: What to plan.
        scale: Decides data and protocol.
        trials: Seeds 0, 1, …; None for as many as the protocol has at this scale.
        device: Where the networks train; a part of the specs.
    """
    seeds = range(experiment.protocol.trials[scale] if trials is None else trials)
    return [_cell(experiment, scale, place, seeds, device) for place in experiment.places(scale)]


def base_spec(protocol: Protocol, scale: Scale, place: Place) -> RunSpec:
    """The spec of a run by the protocol's rules, for seed 0 and without observers.

    A method takes those `fields` of the rules that it has; its entry's own override them.
    """
    from diw.methods import find as find_method

    data, shift, entry, variant = place
    method = find_method(entry.method).name
    values: dict[str, Any] = {}
    method_fields: dict[str, Any] = {}
    axes = {"data": data, "shift": shift, "method": method, "variant": str(variant["label"])}
    for rule in protocol.rules[scale]:
        if rule.fits(axes):
            values |= {key: value for key, value in rule.values.items() if key != "fields"}
            method_fields |= rule.values.get("fields", {})
    notes = ("label", "reason", "scales", "shifts")
    values |= {key: value for key, value in variant.items() if key not in notes}
    values["shift"] = str(values.get("shift", "{shift}")).format(shift=shift)
    unknown = values.keys() - _RECIPE - _SPEC
    if unknown:
        raise UsageError(f"protocol {protocol.name}: unknown key {', '.join(sorted(unknown))}")
    spec = RunSpec(
        data=data,
        recipe=Recipe(**{key: value for key, value in values.items() if key in _RECIPE}),
        **{key: value for key, value in values.items() if key in _SPEC},
    )
    has = {key: value for key, value in method_fields.items() if key in fields_of(method)}
    name, all_fields = _method(method, json.dumps({**has, **entry.fields}))
    return replace(spec, method=name, method_fields=dict(all_fields))


def _cell(
    experiment: Experiment, scale: Scale, place: Place, seeds: Iterable[int], device: str
) -> PlannedCell:
    data, shift, entry, variant = place
    base = base_spec(experiment.protocol, scale, place)
    state, reason, synthetic = _state(experiment, scale, entry, base)
    specs: tuple[RunSpec, ...] = ()
    if state == "planned":
        watched = replace(base, observe=_observed(scale).get(_identity(base), ()))
        specs = tuple(
            replace(watched, synthetic_ok=synthetic, device=device, seed=seed) for seed in seeds
        )
    numbers = {
        metric: number
        for (table, *where, metric, method), number in published_numbers().items()
        if (table, where, method) == (experiment.published, [data, shift], entry.label)
    }
    label = str(variant["label"])
    return PlannedCell(data, shift, label, entry, state, reason, synthetic, specs, numbers)


def _state(
    experiment: Experiment, scale: Scale, entry: Entry, spec: RunSpec
) -> tuple[CellState, str, bool]:
    """A cell's state, the reason if it is not planned, and whether it needs generated images."""
    data = spec.data
    for absent in experiment.absent:
        if data == absent["data"] and entry.label in absent["methods"]:
            return "absent", absent["reason"], False
    if spec.method_fields.get("solver") == "cvxopt" and find_spec("cvxopt") is None:
        reason = f"{entry.label} needs cvxopt here: pip install 'diw[released]'"
        return "absent", reason, False
    if data not in BENCHMARKS or find(BENCHMARKS[data]) is not None:
        return "planned", "", False
    if scale == "smoke":
        return "planned", "", True
    return "no data", f"{data} is not here; get it with: diw data fetch {data}", False


@cache
def _observed(scale: Scale) -> dict[str, tuple[str, ...]]:
    """The observers of each run of a scale: those that any experiment asks for."""
    wanted: dict[str, set[str]] = {}
    for experiment in catalogue().values():
        for place in experiment.places(scale) if experiment.observe else ():
            spec = base_spec(experiment.protocol, scale, place)
            wanted.setdefault(_identity(spec), set()).update(experiment.observe)
    return {identity: tuple(sorted(names)) for identity, names in wanted.items()}


def _identity(spec: RunSpec) -> str:
    return json.dumps(spec.as_json(), sort_keys=True)


@cache
def fields_of(method: str) -> frozenset[str]:
    """The names of a method's fields."""
    from diw.methods import describe
    from diw.methods import find as find_method

    return frozenset(field.name for field in describe(find_method(method)))


@cache
def _method(name: str, given: str) -> tuple[str, dict[str, Any]]:
    spec = with_method(RunSpec(), name, json.loads(given))
    return spec.method, dict(spec.method_fields)


def cell_json(cell: PlannedCell) -> dict[str, Any]:
    """A cell as JSON values, its runs by seed as the names of their folders."""
    return {
        "data": cell.data,
        "shift": cell.shift,
        "variant": cell.variant,
        "method": cell.entry.label,
        "state": cell.state,
        "reason": cell.reason,
        "synthetic": cell.synthetic,
        "runs": {str(spec.seed): spec_hash(spec.as_json()) for spec in cell.specs},
        "published": {metric: asdict(number) for metric, number in cell.published.items()},
    }
