"""What a run reads: its data, the split drawn from them, and where each training row is from.

A spec names files as its user did, relative to where the command was given, and says what they
hold: a SHA-256 of each. So the data of a run are found from anywhere, the same bytes written again
are the same data, and a file that changed is named.
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from diw.data import BENCHMARKS, EMBEDDED, Bundle, Dataset, find, load
from diw.data.arrays import beside
from diw.data.corrections import corrected
from diw.data.images import ImageFiles
from diw.data.marks import Ints, Verified, read_corrections, read_verified
from diw.data.read import fingerprints, read_raw, shared_label
from diw.data.split import SIMULATED, Split, Trusted, make_split, parse_trusted, stratified
from diw.errors import UsageError
from diw.files import fingerprint, write_json, write_text
from diw.runs.run import ENCODING, FACTS, ROWS, Run
from diw.runs.spec import RunSpec

NAMED = ("data", "test", "trusted", "corrections", "verified")
"""Fields of a spec that may name files."""
_READ = ("data", "test", "label", "allow_leaks", "synthetic_ok", "text_encoding")
"""Fields that decide what is read."""
_DRAWN = (
    *("shift", "trusted", "trusted_in_train", "train_samples", "test_samples", "selection"),
    *("seed", "corrections", "trusted_wrong", "verified"),
)
"""Fields that decide what is drawn from it."""


@dataclass(frozen=True)
class Place:
    """Where a training row is from.

    Attributes:
        file: The data file, the image, or the name of a data set.
        row: The row of that file, counted from 0; None for an image.
        trusted: Whether it is a trusted row.
    """

    file: str
    row: int | None
    trusted: bool

    @property
    def key(self) -> tuple[str, str]:
        """File and row as texts; the row is empty for an image."""
        return self.file, "" if self.row is None else str(self.row)


def is_own(data: str) -> bool:
    """Whether `data` is a file or folder of the user's, not a data set with a name."""
    return data != EMBEDDED and data not in BENCHMARKS


class Source:
    """The data of a run: read, drawn and traced once, when they are first asked for.

    They are decided by the spec's data, shift, trusted set and seed, not by its method. So
    `Source.of` gives the runs of a comparison the same one.
    """

    _latest: ClassVar["Source | None"] = None

    def __init__(
        self, spec: RunSpec, home: Path | None = None, *, bundle: Bundle | None = None
    ) -> None:
        """Name the data; nothing is read yet.

        Args:
            spec: What a run is asked.
            home: Where its files are, if it is not the present folder.
            bundle: The data as read, where another seed has read them.
        """
        self.spec = spec
        self.found = spec if home is None else _moved(spec, home)
        """The spec with paths that lead to its files from here."""
        self._read_before = bundle
        self._key = _key(self.found, _READ), _key(self.found, _DRAWN)
        self.progress = False
        """Whether a bar is shown while a benchmark is downloaded."""

    @classmethod
    def of(cls, spec: RunSpec, home: Path | None = None) -> "Source":
        """The source of a spec; the latest one, or what that has read, where it is the same.

        Args:
            spec: What a run is asked. Files without a stamp are looked at each time.
            home: As for the class.
        """
        asked = cls(spec if spec.files else stamp(spec), home)
        latest = cls._latest
        if latest is not None and latest._key[0] == asked._key[0]:
            if latest._key[1] == asked._key[1]:
                return latest
            asked._read_before = vars(latest).get("bundle")
        cls._latest = asked
        return asked

    @cached_property
    def bundle(self) -> Bundle:
        """The data as read."""
        if self._read_before is not None:
            return self._read_before
        spec, trusted = self.found, self._trusted
        return load(
            spec.data,
            trusted=trusted if isinstance(trusted, Path) else None,
            test=spec.test,
            label=spec.label,
            allow_leaks=spec.allow_leaks,
            synthetic_ok=spec.synthetic_ok,
            text_encoding=spec.text_encoding,
            progress=self.progress,
        )

    @cached_property
    def split(self) -> Split:
        """What is drawn from them, with the corrections of a person."""
        spec, bundle, part = self.spec, self.bundle, self._part
        if part is not None:
            clean = None if bundle.clean is None else bundle.clean[part]
            bundle = replace(bundle, train=bundle.train.subset(part), clean=clean)
        trusted = self._trusted if self.verified is None else self.verified
        split = make_split(
            bundle,
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
        keys = [place.key for place in self._places(split)]
        marks = read_corrections(self.found.corrections or "")
        rows = split.rows.numpy()
        return corrected(split, keys, marks, lambda asked: self._contents(rows, asked))[0]

    @cached_property
    def verified(self) -> Verified | None:
        """The rows of the data whose right labels somebody knows; None where no file is named."""
        train, file = self.bundle.train, self.found.verified
        if file is None:
            return None
        if self._part is not None:
            train = train.subset(self._part)
        rows = np.arange(len(train))
        keys = [place.key for place in self._placed(rows)]
        labels = train.targets.numpy()
        return read_verified(
            file, keys, labels, train.classes, lambda asked: self._contents(rows, asked)
        )

    @property
    def apart(self) -> tuple[Dataset, Dataset | Verified]:
        """Training rows, and trusted ones that are not among them or verified ones that are.

        Nothing is scored here: no trusted row is held out.
        """
        bundle, trusted = self.bundle, self._trusted
        if self.verified is not None:
            if self.spec.shift != "none":
                raise UsageError(SIMULATED)
            return bundle.train, self.verified
        split = make_split(
            replace(bundle, test=bundle.test or bundle.train),
            shift=self.spec.shift,
            trusted=None if isinstance(trusted, Path) else trusted,
            seed=self.spec.seed,
            trusted_in_train=False,
        )
        return split.train, split.trusted

    @cached_property
    def places(self) -> list[Place]:
        """Where the training rows are from, in the order of every array of the run."""
        return self._places(self.split)

    def contents(self, places: Sequence[int]) -> list[str]:
        """Fingerprints of the training rows at these places; empty for rows of a trusted file."""
        return self._contents(self.split.rows.numpy(), places)

    def describe(self, run: Run, model: str) -> None:
        """Record with `run` what its data are, and how files for its network are read.

        Args:
            run: The run.
            model: The name of its network, or `module:factory`.
        """
        bundle, split = self.bundle, self.split
        if bundle.encoding is not None:
            shape = list(split.train.shape)
            content = {"model": model, "shape": shape, **bundle.encoding.as_json()}
            write_json(run.folder / ENCODING, content)
        facts = {
            "scored_on": split.scored_on,
            **split.facts,
            "notes": [str(note) for note in bundle.notes],
        }
        if self.spec.files:
            facts["home"] = _way(run.folder, Path.cwd())
        write_json(run.folder / FACTS, facts)
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["place", "file", "row", "trusted"])
        for number, place in enumerate(self.places):
            row = "" if place.row is None else place.row
            table.writerow([number, place.file, row, int(place.trusted)])
        write_text(run.folder / ROWS, out.getvalue())

    @cached_property
    def _trusted(self) -> Trusted | Path | None:
        """A count, row numbers, or the file that holds the trusted samples."""
        trusted = self.found.trusted
        return parse_trusted(trusted) if isinstance(trusted, str) else trusted

    @cached_property
    def _part(self) -> Tensor | None:
        """(n,) the rows of the part of the data that is asked for, class by class; None for all."""
        size = self.spec.train_samples
        if size is None:
            return None
        labels = self.bundle.train.targets.numpy()
        return torch.from_numpy(stratified(labels, size, self.spec.seed, "training part"))

    @property
    def _drawn_from(self) -> int:
        """Rows of the training data that were drawn from; rows of a trusted file follow them."""
        return len(self.bundle.train if self._part is None else self._part)

    def _places(self, split: Split) -> list[Place]:
        return self._placed(split.rows.numpy(), split.trusted_index.numpy())

    def _placed(self, rows: Ints, trusted_index: Sequence[int] | Ints = ()) -> list[Place]:
        """Where rows (n,) of the data drawn from are from, and which of them are trusted."""
        images, count, part = self._image_names, self._drawn_from, self._part
        trusted = np.zeros(len(rows), bool)
        trusted[list(trusted_index)] = True
        places: list[Place] = []
        for row, known in zip(rows.tolist(), trusted.tolist(), strict=True):
            later = row - count
            own = row if part is None else int(part[row]) if later < 0 else 0
            if images is not None:
                number = len(self.bundle.train) + later if later >= 0 else own
                places.append(Place(images[number], None, known))
            elif later >= 0:
                places.append(Place(str(self.spec.trusted), later, known))
            else:
                places.append(Place(self.spec.data, own, known))
        return places

    @cached_property
    def _image_names(self) -> list[str] | None:
        """The image files of the data, then of the trusted data; None where rows are no images."""
        asked, found = self.spec, self.found
        if not is_own(asked.data) or not Path(found.data).is_dir():
            return None
        names: list[str] = []
        for name, folder in ((asked.data, found.data), (asked.trusted, found.trusted)):
            if isinstance(folder, str) and Path(folder).is_dir():
                content = read_raw(Path(folder), shared_label(asked.label)).content
                if not isinstance(content, ImageFiles):
                    return None
                inside = (file.relative_to(folder) for file in content.files)
                names += [str(Path(str(name)) / file) for file in inside]
        return names

    def _contents(self, drawn: Ints, places: Sequence[int]) -> list[str]:
        part, count, spec = self._part, self._drawn_from, self.found
        own = [place for place in places if int(drawn[place]) < count]
        rows = [int(drawn[place]) for place in own]
        rows = rows if part is None else part[rows].tolist()
        raw = None
        if own and is_own(spec.data):
            raw = read_raw(Path(spec.data), spec.label, text_encoding=spec.text_encoding)
        found = dict(zip(own, fingerprints(self.bundle.train, rows, raw), strict=True))
        return [found.get(place, "") for place in places]


def stamp(spec: RunSpec) -> RunSpec:
    """The spec with what every file holds that it reads, so that a changed file is another run."""
    found = {name: _content(path) for name, path in _files_of(spec, Path()) if path.exists()}
    return replace(spec, files=found)


def as_held(spec: RunSpec, held: RunSpec) -> RunSpec:
    """The spec as an older version stamped it (by size and time) where `held` is such a spec."""
    if not any(isinstance(sealed, list) for sealed in held.files.values()):
        return spec
    found = {name: _size_and_time(path) for name, path in _files_of(spec, Path()) if path.exists()}
    return replace(spec, files=found)


def as_kept(specs: Sequence[RunSpec], folder: Path) -> list[RunSpec]:
    """The specs, as an older version stamped them where `folder` holds their runs."""
    if not any(spec.files for spec in specs) or not folder.is_dir():
        return list(specs)
    found = {
        name: _size_and_time(path) for name, path in _files_of(specs[0], Path()) if path.exists()
    }
    older = [replace(spec, files=found) for spec in specs]
    known = [
        not new.run(folder).folder.exists() and old.run(folder).folder.exists()
        for new, old in zip(specs, older, strict=True)
    ]
    return [old if one else new for new, old, one in zip(specs, older, known, strict=True)]


def source_of(run: Run) -> Source:
    """What a run has read, found again from wherever this is called.

    Its files are looked for here, where the command was given that trained it, and in the folders
    above the run's. A file that is missing or holds something else is a `UsageError` that names it.
    """
    spec = run.spec
    if not spec.files:
        return Source.of(spec)
    facts = run.read(FACTS) if (run.folder / FACTS).exists() else {}
    homes = [Path(), run.folder / str(facts.get("home", ".")), *run.folder.absolute().parents]
    reasons: list[str] = []
    for home in dict.fromkeys(homes):
        reason = _difference(spec, home)
        if reason is None:
            return Source.of(spec, home)
        reasons.append(reason)
    said = next((one for one in reasons if "changed" in one), reasons[0])
    raise UsageError(f"{run.folder}: {said}")


def _difference(spec: RunSpec, home: Path) -> str | None:
    """What keeps the files below `home` from being those of a spec; None where they are."""
    files = dict(_files_of(spec, home))
    for name, sealed in spec.files.items():
        path = files.get(name, home / name)
        if not path.exists():
            return f"its data are not here: there is no {path}"
        held = _size_and_time(path) if isinstance(sealed, list) else _content(path)
        if held != sealed:
            return f"its data have changed since: {path} is not what it was trained on"
    extra = [path for name, path in files.items() if name not in spec.files and path.exists()]
    return f"its data have changed since: {extra[0]} was not there" if extra else None


def _files_of(spec: RunSpec, home: Path) -> Iterator[tuple[str, Path]]:
    """The files and folders that a spec reads, by name and where they are below `home`."""
    for field in NAMED:
        name = getattr(spec, field)
        if not isinstance(name, str) or not is_own(name) or not (home / name).exists():
            continue
        yield name, home / name
        if Path(name).suffix.lower() == ".npy":  # its labels and clean marks are read, too
            others = beside(Path(name), spec.label)
            yield from ((str(other), home / other) for other in others if (home / other).is_file())


def _moved(spec: RunSpec, home: Path) -> RunSpec:
    """The spec with paths that lead to its files below `home`."""
    paths = {field: getattr(spec, field) for field in NAMED}
    files = {field: str(home / path) for field, path in paths.items() if path in spec.files}
    if spec.label is not None and spec.label in spec.files:
        files["label"] = str(home / spec.label)
    return replace(spec, **files)


def _content(path: Path) -> str:
    """SHA-256 of a file; of a folder, of the names and contents of all its files."""
    if path.is_file():
        return fingerprint(path)["sha256"]
    digest = hashlib.sha256()
    for file in _inside(path):
        line = [file.relative_to(path).as_posix(), fingerprint(file)["sha256"]]
        digest.update(json.dumps(line).encode())
    return digest.hexdigest()


def _size_and_time(path: Path) -> list[int]:
    """What older versions wrote: the number of files, their bytes, and the latest change."""
    facts = [file.stat() for file in ([path] if path.is_file() else _inside(path))]
    return [
        len(facts),
        sum(fact.st_size for fact in facts),
        max((fact.st_mtime_ns for fact in facts), default=0),
    ]


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _way(start: Path, end: Path) -> str:
    """The way from a folder to another one, which still leads there when both are moved."""
    try:
        return os.path.relpath(end, start.absolute())
    except ValueError:  # on another drive
        return str(end)


def _key(spec: RunSpec, names: Sequence[str]) -> str:
    """Equal where these fields of two specs are equal, and what their files hold."""
    benchmark = BENCHMARKS.get(spec.data)
    folder = None if benchmark is None else find(benchmark)
    values: list[Any] = [getattr(spec, name) for name in names]
    values.append(spec.trusted if isinstance(spec.trusted, str) else None)  # perhaps a file
    return json.dumps([values, str(folder), str(Path.cwd()), dict(spec.files)])
