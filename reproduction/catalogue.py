"""The paper's results as data: which experiments there are, and how their networks are trained.

Everything is in TOML files under `specs/`: one per result, one per training protocol, and one with
every published number.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from diw.errors import UsageError

SPECS = Path(__file__).parent / "specs"

EXPERIMENT = "experiment.json"
"""Written into the folder of an experiment: every cell of its table, its runs, what is claimed."""

RUNS = "runs"
"""The folder of runs, beside those of the experiments."""

Scale = Literal["smoke", "cpu", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)

ORDER = (
    *("label-noise", "class-prior", "weight-distance", "ablation"),
    *("weights", "tsne", "denoising", "trusted-size", "trusted-outside", "solver", "rounding"),
    *("beyond", "beyond-trusted", "beyond-covariate", "beyond-rivals", "beyond-support"),
)
"""The order of results: the paper's tables, its figures, then ours; any others follow."""


@dataclass(frozen=True)
class Rule:
    """Some values of a protocol, the runs that they apply to, and where they come from."""

    when: Mapping[str, tuple[str, ...]]
    """Patterns by axis (`data`, `shift`, `method`, `variant`); an absent axis fits any value."""
    values: Mapping[str, Any]
    """Entries of the run's spec or recipe; under `fields`, fields of its method."""
    reason: str

    def fits(self, place: Mapping[str, str]) -> bool:
        """Whether the rule applies to the run at `place` (axis → value)."""
        return all(
            any(fnmatchcase(place[axis], pattern) for pattern in patterns)
            for axis, patterns in self.when.items()
        )


@dataclass(frozen=True)
class Protocol:
    """How networks are trained, by scale; later rules override earlier ones."""

    name: str
    trials: Mapping[str, int]
    rounding: Mapping[str, float]
    """By scale, where it was measured: the standard deviation of the last accuracy, in points,
    between runs that differ in rounding alone."""
    rules: Mapping[str, tuple[Rule, ...]]


@dataclass(frozen=True)
class Entry:
    """One column of a table: a method, possibly with values for some of its fields."""

    label: str
    method: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One of the paper's results: its settings, its methods and the claims about them."""

    name: str
    title: str
    source: str
    about: str
    protocol: Protocol
    published: str | None
    """The table of `published.toml` that its numbers are compared with."""
    outputs: tuple[str, ...]
    entries: tuple[Entry, ...]
    shifts: tuple[str, ...]
    data: Mapping[str, tuple[str, ...]]
    """The data sets by scale."""
    variants: Mapping[str, tuple[Mapping[str, Any], ...]]
    """By scale: changes of the protocol that make a setting of their own, each with a `label`, and
    with `shifts` where it is not for all shifts of the experiment."""
    observe: tuple[str, ...]
    absent: tuple[Mapping[str, Any], ...]
    """Cells that the paper leaves out, with the reason."""
    claims: tuple[Mapping[str, Any], ...]

    def places(self, scale: Scale) -> Iterator["Place"]:
        """The place of every cell of its tables, setting by setting."""
        for data in self.data[scale]:
            for variant in self.variants[scale]:
                for shift in variant.get("shifts", self.shifts):
                    for entry in self.entries:
                        yield Place(data, shift, entry, variant)


class Place(NamedTuple):
    """The place of a cell: a setting, and one of the methods compared in it."""

    data: str
    shift: str
    """As the experiment names it; the protocol may add sizes."""
    entry: Entry
    variant: Mapping[str, Any] = {"label": ""}


@dataclass(frozen=True)
class Published:
    """One published number."""

    mean: float
    std: float
    best: bool
    """Printed in bold: the best, or not significantly different from it."""


@cache
def catalogue() -> dict[str, Experiment]:
    """Every experiment by name, in the order of `ORDER`."""
    known = sorted(path.stem for path in SPECS.glob("*.toml") if path.stem != "published")
    rank = {name: place for place, name in enumerate(ORDER)}
    known.sort(key=lambda name: rank.get(name, len(rank)))
    return {name: _experiment(name, _read(f"{name}.toml")) for name in known}


def find_experiments(names: tuple[str, ...]) -> list[Experiment]:
    """The experiments of these names, without repetition; "all" for every one."""
    known = catalogue()
    wanted = list(known) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in known:
            raise UsageError(f"name: unknown result {name!r}; choose all or {', '.join(known)}")
    return [known[name] for name in wanted]


@cache
def published() -> dict[tuple[str, str, str, str, str], Published]:
    """Every published number by (table, data, shift, metric, method)."""
    numbers: dict[tuple[str, str, str, str, str], Published] = {}
    for table, rows in _read("published.toml").items():
        for row in rows:
            keys = (table, row["data"], row["shift"], row.get("metric", "accuracy"))
            for method, value in row.items():
                if method not in ("data", "shift", "metric", "best"):
                    mean, std = value
                    numbers[*keys, method] = Published(mean, std, method in row["best"])
    return numbers


@cache
def _protocol(name: str) -> Protocol:
    content = _read(f"protocols/{name}.toml")
    return Protocol(name, content["trials"], content.get("rounding", {}), _rules(content))


def _rules(content: Mapping[str, Any]) -> dict[str, tuple[Rule, ...]]:
    return {scale: tuple(map(_rule, content.get(scale, ()))) for scale in SCALES}


def _rule(content: Mapping[str, Any]) -> Rule:
    when = {axis: tuple(patterns) for axis, patterns in content.get("when", {}).items()}
    values = {key: value for key, value in content.items() if key not in ("when", "reason")}
    return Rule(when, values, content["reason"])


def _experiment(name: str, content: Mapping[str, Any]) -> Experiment:
    variants = content.get("variants", [{"label": ""}])
    shared, own = _protocol(content["protocol"]), _rules(content)
    # The experiment's own rules come last, so they override the shared ones.
    rules = {scale: shared.rules[scale] + own[scale] for scale in SCALES}
    trials = {**shared.trials, **content.get("trials", {})}
    return Experiment(
        name=name,
        title=content["title"],
        source=content["source"],
        about=content["about"],
        protocol=replace(shared, rules=rules, trials=trials),
        published=content.get("published"),
        outputs=tuple(content["outputs"]),
        entries=tuple(map(_entry, content["methods"])),
        shifts=tuple(content["shifts"]),
        data={scale: tuple(content["data"][scale]) for scale in SCALES},
        variants={
            scale: tuple(v for v in variants if scale in v.get("scales", SCALES))
            for scale in SCALES
        },
        observe=tuple(content.get("observe", ())),
        absent=tuple(content.get("absent", ())),
        claims=tuple(content.get("claims", ())),
    )


def _entry(content: str | Mapping[str, Any]) -> Entry:
    if isinstance(content, str):
        return Entry(content, content, {})
    return Entry(content["label"], content["method"], content.get("fields", {}))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((SPECS / name).read_text(encoding="utf-8"))
