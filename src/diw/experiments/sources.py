"""Where a run's data come from: names, files, row numbers, and noticing that a file changed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from diw.data import BENCHMARKS, Bundle, find, load
from diw.data.arrays import beside
from diw.data.split import Split, Trusted, make_split, parse_trusted, stratified
from diw.records import RunSpec
from diw.weighting import make


def stamp(spec: RunSpec) -> RunSpec:
    """The spec with the size and time of each file it reads, so that a change is another run."""
    named = [spec.data, spec.test, spec.trusted if isinstance(spec.trusted, str) else None]
    files = [name for name in named if name and not _is_named(name) and Path(name).exists()]
    files += [str(other) for name in files for other in _belonging(Path(name), spec.label)]
    return replace(spec, files={name: _stamp(Path(name)) for name in files})


def with_method(spec: RunSpec, name: str, fields: Mapping[str, Any] | None = None) -> RunSpec:
    """The same setting with another method: its canonical name and all of its fields.

    Args:
        spec: The setting.
        name: A method's name or alias.
        fields: The fields to set, the others keep their defaults.
    """
    method = make(name, fields)
    return replace(spec, method=method.name, method_fields=method.fields())


def load_bundle(spec: RunSpec, *, progress: bool = False) -> Bundle:
    """The data a spec names, as read."""
    trusted = _trusted(spec)
    benchmark = BENCHMARKS.get(spec.data)
    folder = None if benchmark is None else find(benchmark)
    bundle = _read(
        _Source(
            data=spec.data,
            trusted=trusted if isinstance(trusted, Path) else None,
            test=spec.test,
            label=spec.label,
            allow_leaks=spec.allow_leaks,
            synthetic_ok=spec.synthetic_ok,
            state=json.dumps([str(Path.cwd()), str(folder), stamp(spec).files]),
            progress=progress,
        )
    )
    if spec.train_samples is None:
        return bundle
    labels = bundle.train.targets.numpy()
    rows = torch.from_numpy(stratified(labels, spec.train_samples, spec.seed, "training part"))
    clean = bundle.clean if bundle.clean is None else bundle.clean[rows]
    return replace(bundle, train=bundle.train.subset(rows), clean=clean)


@dataclass(frozen=True)
class _Source:
    """What `load` is asked for; sources that compare equal give the same bundle."""

    data: str
    trusted: Path | None
    test: str | None
    label: str | None
    allow_leaks: bool
    synthetic_ok: bool
    state: str
    """Folders, sizes and times: a file that changed is another source."""
    progress: bool = field(compare=False)


@lru_cache(maxsize=1)
def _read(source: _Source) -> Bundle:
    """Kept for the next run of this process: reading and verifying takes as long as short runs."""
    return load(
        source.data,
        trusted=source.trusted,
        test=source.test,
        label=source.label,
        allow_leaks=source.allow_leaks,
        synthetic_ok=source.synthetic_ok,
        progress=source.progress,
    )


def load_split(spec: RunSpec, bundle: Bundle | None = None) -> Split:
    """The data of a run: by the spec's data, shift, trusted set and seed, never its method."""
    trusted = _trusted(spec)
    return make_split(
        bundle if bundle is not None else load_bundle(spec),
        shift=spec.shift,
        trusted=None if isinstance(trusted, Path) else trusted,
        seed=spec.seed,
        trusted_in_train=spec.trusted_in_train,
        test_rows=spec.test_samples,
    )


def _trusted(spec: RunSpec) -> Trusted | Path | None:
    """A count, row numbers, or the file that holds the trusted samples."""
    return parse_trusted(spec.trusted) if isinstance(spec.trusted, str) else spec.trusted


def _belonging(path: Path, label: str | None) -> list[Path]:
    """The files of labels and clean marks that are read with an .npy file."""
    files = beside(path, label) if path.suffix.lower() == ".npy" else ()
    return [file for file in files if file.is_file()]


def _is_named(data: str) -> bool:
    return data == "embedded" or data in BENCHMARKS


def _stamp(path: Path) -> list[int]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    facts = [file.stat() for file in files]
    return [
        len(files),
        sum(fact.st_size for fact in facts),
        max((fact.st_mtime_ns for fact in facts), default=0),
    ]
