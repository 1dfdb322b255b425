"""Where a run's data come from: names, files, row numbers, and noticing that a file changed."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from diw.data import BENCHMARKS, Bundle, load
from diw.errors import UsageError
from diw.experiments.spec import RunSpec
from diw.split import Split, make_split, stratified

ROWS = "rows:"
"""Before a list of row numbers, or the name of a text file with one a line."""


def is_count(trusted: str) -> bool:
    """Whether a `--trusted` value asks for a number of samples: "500" or "10/class"."""
    number, _, unit = trusted.partition("/")
    return number.lstrip("-").isdecimal() and unit in ("", "class")


def stamp(spec: RunSpec) -> RunSpec:
    """The spec with the size and time of each file it reads, so that a change is another run."""
    named = [spec.data if not _is_named(spec.data) else None, spec.test]
    if isinstance(spec.trusted, str) and not is_count(spec.trusted):
        named.append(_rows_file(spec.trusted) or spec.trusted)
    stamps = {name: _stamp(Path(name)) for name in named if name and Path(name).exists()}
    return replace(spec, files=stamps)


def load_bundle(spec: RunSpec, *, progress: bool = False) -> Bundle:
    """The data a spec names, as read."""
    trusted_file = spec.trusted if isinstance(spec.trusted, str) else None
    if trusted_file and (is_count(trusted_file) or trusted_file.startswith(ROWS)):
        trusted_file = None
    bundle = load(
        spec.data,
        trusted=trusted_file,
        test=spec.test,
        label=spec.label,
        allow_leaks=spec.allow_leaks,
        synthetic_ok=spec.synthetic_ok,
        progress=progress,
    )
    if spec.train_samples is None:
        return bundle
    labels = bundle.train.targets.numpy()
    rows = torch.from_numpy(stratified(labels, spec.train_samples, spec.seed, "training part"))
    clean = bundle.clean if bundle.clean is None else bundle.clean[rows]
    return replace(bundle, train=bundle.train.subset(rows), clean=clean)


def load_split(spec: RunSpec, bundle: Bundle | None = None) -> Split:
    """The data of a run: by the spec's data, shift, trusted set and seed, never its method."""
    return make_split(
        bundle if bundle is not None else load_bundle(spec),
        shift=spec.shift,
        trusted=_trusted(spec.trusted),
        seed=spec.seed,
        trusted_in_train=spec.trusted_in_train,
        test_rows=spec.test_samples,
    )


def _trusted(trusted: int | str | None) -> Any:
    """What `make_split` takes: a count, row numbers, or None where a file holds the samples."""
    if trusted is None or isinstance(trusted, int) or is_count(trusted):
        return trusted
    if not trusted.startswith(ROWS):
        return None
    file = _rows_file(trusted)
    texts = Path(file).read_text().split() if file else trusted.removeprefix(ROWS).split(",")
    return _row_numbers(texts, trusted)


def _row_numbers(texts: Iterable[str], given: str) -> list[int]:
    try:
        return [int(text) for text in texts if text.strip()]
    except ValueError as error:
        raise UsageError(f"trusted: {given}: {error}; give row numbers, from 0") from None


def _rows_file(trusted: str) -> str | None:
    name = trusted.removeprefix(ROWS)
    is_file = trusted.startswith(ROWS) and not name.replace(",", "").strip().isdecimal()
    if is_file and not Path(name).is_file():
        raise UsageError(f"trusted: {name}: no such file of row numbers")
    return name if is_file else None


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
