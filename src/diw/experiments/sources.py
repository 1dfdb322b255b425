"""What a spec names: its method with all fields, its files, and the data drawn from them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from diw.data import BENCHMARKS, Bundle, find, load
from diw.data.arrays import beside
from diw.data.corrections import Contents, corrected, read_corrections
from diw.data.read import fingerprints, read_raw
from diw.data.split import Split, Trusted, make_split, parse_trusted, stratified
from diw.experiments.places import Place, is_own, places_of
from diw.methods import make
from diw.runs import RunSpec

Data = TypeVar("Data", Bundle, Split)

_READ = ("data", "test", "label", "allow_leaks", "synthetic_ok", "text_encoding")
"""Fields of a spec that decide what is read."""
_DRAWN = (
    *("shift", "trusted", "trusted_in_train", "train_samples", "test_samples", "selection"),
    *("seed", "corrections", "trusted_wrong"),
)
"""Fields of a spec that decide what is drawn from it."""

_bundles: dict[str, Bundle] = {}
_splits: dict[str, Split] = {}


def with_method(spec: RunSpec, name: str, fields: Mapping[str, Any] | None = None) -> RunSpec:
    """The same setting with another method: its canonical name and all of its fields.

    `name` may be an alias; fields that are not given have their defaults.
    """
    method = make(name, fields)
    return replace(spec, method=method.name, method_fields=method.fields())


def stamp(spec: RunSpec) -> RunSpec:
    """The spec with size and time of every file it reads, so that a changed file is another run."""
    named = [spec.data, spec.test, spec.trusted if isinstance(spec.trusted, str) else None]
    named.append(spec.corrections)
    files = [name for name in named if name and is_own(name) and Path(name).exists()]
    files += [str(other) for name in files for other in _belonging(Path(name), spec.label)]
    return replace(spec, files={name: _stamp(Path(name)) for name in files})


def located(spec: RunSpec, folder: Path) -> RunSpec | None:
    """The spec with the paths that lead to its unchanged files from here; None if none do.

    Paths of a spec are relative to where its command was given: that is looked for here, and in
    the folders above the run's own, `folder`.
    """
    if stamp(spec).files == spec.files:
        return spec
    for home in folder.absolute().parents:
        named = ("data", "test", "trusted", "corrections")
        paths = {name: getattr(spec, name) for name in named}
        moved = replace(spec, **{n: str(home / p) for n, p in paths.items() if p in spec.files})
        if list(stamp(moved).files.values()) == list(spec.files.values()):
            return moved
    return None


def load_bundle(spec: RunSpec, *, progress: bool = False) -> Bundle:
    """The data that a spec names, as read.

    Files are read and verified once for consecutive runs on them: that takes as long as a
    short run. `progress` shows a bar while downloading.
    """
    trusted = _trusted(spec)
    path = trusted if isinstance(trusted, Path) else None
    return _latest(
        _bundles,
        _key(spec, _READ, path),
        lambda: load(
            spec.data,
            trusted=path,
            test=spec.test,
            label=spec.label,
            allow_leaks=spec.allow_leaks,
            synthetic_ok=spec.synthetic_ok,
            text_encoding=spec.text_encoding,
            progress=progress,
        ),
    )


def load_split(spec: RunSpec) -> Split:
    """The data of a run: decided by the spec's data, shift, trusted set and seed, not its method.

    It is built once for consecutive runs on the same data, whoever asks for it.
    """

    def draw() -> Split:
        trusted = _trusted(spec)
        split = make_split(
            _part(load_bundle(spec), spec),
            shift=spec.shift,
            trusted=None if isinstance(trusted, Path) else trusted,
            seed=spec.seed,
            trusted_in_train=spec.trusted_in_train,
            test_rows=spec.test_samples,
            selection=spec.selection,
            trusted_wrong=spec.trusted_wrong,
        )
        if spec.corrections is None:
            return split
        bundle = load_bundle(spec)
        places = places_of(split, bundle, spec, part_rows(bundle, spec))
        keys = [place.key for place in places]
        marks = read_corrections(spec.corrections)
        return corrected(split, keys, marks, _contents_of(split, bundle, spec))[0]

    return _latest(_splits, _key(spec, _READ + _DRAWN), draw)


def training_places(spec: RunSpec) -> list[Place]:
    """Where the training rows of `spec` are from, in the order of every array of its run."""
    bundle = load_bundle(spec)
    return places_of(load_split(spec), bundle, spec, part_rows(bundle, spec))


def training_contents(spec: RunSpec) -> Contents:
    """Fingerprints of training rows by their places; empty for rows of a trusted file."""
    return _contents_of(load_split(spec), load_bundle(spec), spec)


def _contents_of(split: Split, bundle: Bundle, spec: RunSpec) -> Contents:
    part = part_rows(bundle, spec)
    count = len(bundle.train) if part is None else len(part)

    def contents(places: Sequence[int]) -> list[str]:
        own = [place for place in places if int(split.rows[place]) < count]
        rows = [int(split.rows[place]) for place in own]
        rows = rows if part is None else part[rows].tolist()
        raw = None
        if own and is_own(spec.data):
            raw = read_raw(Path(spec.data), spec.label, text_encoding=spec.text_encoding)
        found = dict(zip(own, fingerprints(bundle.train, rows, raw), strict=True))
        return [found.get(place, "") for place in places]

    return contents


def part_rows(bundle: Bundle, spec: RunSpec) -> Tensor | None:
    """(n,) the rows of the part of the training data that the spec asks for; None for all.

    It is drawn class by class.
    """
    if spec.train_samples is None:
        return None
    labels = bundle.train.targets.numpy()
    return torch.from_numpy(stratified(labels, spec.train_samples, spec.seed, "training part"))


def _part(bundle: Bundle, spec: RunSpec) -> Bundle:
    """The bundle with as many training rows as the spec asks for."""
    rows = part_rows(bundle, spec)
    if rows is None:
        return bundle
    clean = bundle.clean if bundle.clean is None else bundle.clean[rows]
    return replace(bundle, train=bundle.train.subset(rows), clean=clean)


def _latest(kept: dict[str, Data], key: str, make: Callable[[], Data]) -> Data:
    """What `make` gives, kept until another key is asked for."""
    if key not in kept:
        kept.clear()
        kept[key] = make()
    return kept[key]


def _key(spec: RunSpec, names: tuple[str, ...], path: Path | None = None) -> str:
    """Equal where these fields of two specs are equal and no file has changed in between."""
    benchmark = BENCHMARKS.get(spec.data)
    folder = None if benchmark is None else find(benchmark)
    values = [getattr(spec, name) for name in names]
    return json.dumps([values, str(path), str(Path.cwd()), str(folder), stamp(spec).files])


def _trusted(spec: RunSpec) -> Trusted | Path | None:
    """A count, row numbers, or the file that holds the trusted samples."""
    return parse_trusted(spec.trusted) if isinstance(spec.trusted, str) else spec.trusted


def _belonging(path: Path, label: str | None) -> list[Path]:
    """The files of labels and clean marks that are read with an .npy file."""
    files = beside(path, label) if path.suffix.lower() == ".npy" else ()
    return [file for file in files if file.is_file()]


def _stamp(path: Path) -> list[int]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    facts = [file.stat() for file in files]
    return [
        len(files),
        sum(fact.st_size for fact in facts),
        max((fact.st_mtime_ns for fact in facts), default=0),
    ]
