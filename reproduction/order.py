"""Experiments as a command asks for them: their runs, a filter, the record of what was asked."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from diw import __version__
from diw.errors import UsageError
from diw.files import write_json
from diw.runs import RunSpec
from reproduction.catalogue import EXPERIMENT, Experiment, Scale
from reproduction.kept import NEED_ARRAYS
from reproduction.plan import PlannedCell, cell_json, plan

AXES = {"method": "method", "noise": "shift", "shift": "shift", "data": "data", "seed": "seed"}
"""The axes of `--only`; noise is another name of shift."""

Filter = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Order:
    """An experiment with its cells."""

    experiment: Experiment
    scale: Scale
    cells: tuple[PlannedCell, ...]

    def specs(self, only: Filter) -> list[RunSpec]:
        """The runs that pass a filter, cell by cell."""
        return [spec for cell in self.cells for spec in cell.specs if _chosen(cell, spec, only)]

    @property
    def needs_arrays(self) -> bool:
        """Whether an output needs weights or hidden outputs, which kept results do not hold."""
        return not NEED_ARRAYS.isdisjoint(self.experiment.outputs)

    def write(self, folder: Path, made: Mapping[str, str]) -> Path:
        """Write what was asked for to `folder/NAME/experiment.json`; reports start from there.

        Args:
            folder: The folder of the reproduction; runs are in its `runs`.
            made: See `provenance`.
        """
        experiment = self.experiment
        own = folder / experiment.name
        own.mkdir(parents=True, exist_ok=True)
        content = {
            "name": experiment.name,
            "title": experiment.title,
            "source": experiment.source,
            "about": experiment.about,
            "scale": self.scale,
            "outputs": experiment.outputs,
            "claims": experiment.claims,
            "rounding": experiment.protocol.rounding.get(self.scale),
            "protocol": [rule.reason for rule in experiment.protocol.rules[self.scale]],
            "made": made,
            "cells": [cell_json(cell) for cell in self.cells],
        }
        write_json(own / EXPERIMENT, content)
        return own


def order(
    experiments: Iterable[Experiment], scale: Scale, trials: int | None, device: str = "cpu"
) -> list[Order]:
    """Plan some experiments."""
    return [Order(one, scale, tuple(plan(one, scale, trials, device))) for one in experiments]


def unique_runs(specs: Iterable[RunSpec], folder: Path) -> dict[str, RunSpec]:
    """The runs by the name of their folder: results share runs, and each counts once."""
    return {spec.run(folder).folder.name: spec for spec in specs}


def read_filter(texts: Sequence[str]) -> dict[str, frozenset[str]]:
    """`method=diw,noise=0.4s` as values by axis; an axis named twice admits both values.

    A shift may be given as in specs (`symmetric:0.4`), in words (`0.4 symmetric`)
    or short (`0.4s`, `0.3p`).
    """
    chosen: dict[str, set[str]] = {}
    for part in (part.strip() for text in texts for part in _split(text)):
        name, equals, value = part.partition("=")
        if not equals or name not in AXES or not value.strip():
            raise UsageError(f"only: cannot read {part!r}; write AXIS=VALUE with {', '.join(AXES)}")
        axis, value = AXES[name], value.strip()
        chosen.setdefault(axis, set()).add(_canonical(axis, value))
    return {axis: frozenset(values) for axis, values in chosen.items()}


def check_filter(only: Filter, orders: Sequence[Order]) -> None:
    """Refuse a value that none of the experiments has: a typing error would select no run."""
    known = {
        "method": {cell.entry.label for one in orders for cell in one.cells},
        "shift": {cell.shift for one in orders for cell in one.cells},
        "data": {cell.data for one in orders for cell in one.cells},
    }
    for axis, values in only.items():
        unknown = sorted(values - known[axis]) if axis in known else []
        if unknown:
            choices = ", ".join(sorted(known[axis]))
            raise UsageError(f"only: no {axis} {unknown[0]!r} here; choose from {choices}")


def _chosen(cell: PlannedCell, spec: RunSpec, only: Filter) -> bool:
    place = {
        "method": cell.entry.label,
        "shift": cell.shift,
        "data": cell.data,
        "seed": str(spec.seed),
    }
    return all(place[axis] in values for axis, values in only.items())


def _split(text: str) -> list[str]:
    """Split at commas that begin another axis: a class-prior shift contains a comma itself."""
    parts: list[str] = []
    for word in text.split(","):
        if parts and "=" not in word:
            parts[-1] += f",{word}"
        else:
            parts.append(word)
    return parts


def _canonical(axis: str, value: str) -> str:
    if axis == "method":
        from diw.methods import find

        try:
            return find(value).name
        except UsageError:
            return value  # the label of a column; checked against the plan
    if axis != "shift":
        return value
    for letter, kind in (("p", "pair"), ("s", "symmetric")):
        for ending in (f" {kind}", letter):
            number = value.removesuffix(ending)
            if number != value and number.replace(".", "", 1).isdecimal():
                return f"{kind}:{number}"
    return value


def provenance(command: Sequence[str]) -> dict[str, str]:
    """What made a result, for whoever repeats it: command, versions, commit and machine.

    Facts by name; an unknown one is empty.
    """
    from importlib.metadata import version

    return {
        "command": " ".join(command),
        "diw": __version__,
        "commit": _commit(Path(__file__).parent),
        "Python": platform.python_version(),
        "torch": version("torch"),
        "NumPy": version("numpy"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or ""),
    }


def _commit(folder: Path) -> str:
    """The commit of the running source tree, marked if it has uncommitted changes; or nothing."""
    try:
        words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def _processor() -> str:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text().splitlines()
        except OSError:
            lines = []
        for line in lines:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()
