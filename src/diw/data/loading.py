"""`load`: a data set by name or path."""

from dataclasses import replace
from pathlib import Path

from diw.data.benchmarks import (
    BENCHMARKS,
    EMBEDDED,
    Benchmark,
    fetch,
    find,
    load_embedded,
    read_benchmark,
    synthetic_like,
)
from diw.data.checks import check_parts
from diw.data.dataset import Bundle, Dataset
from diw.data.encoding import Encoding, class_list
from diw.data.own import READABLE, Raw, encode, fit, read_raw, shared_label
from diw.errors import UsageError


def load(
    data: str | Path | None = None,
    *,
    trusted: str | Path | None = None,
    test: str | Path | None = None,
    label: str | None = None,
    allow_leaks: bool = False,
    synthetic_ok: bool = False,
    progress: bool = False,
) -> Bundle:
    """Read a data set by name or path.

    Args:
        data: None or `"embedded"` for the Fashion-MNIST subset inside the package;
            `"fashion-mnist"`, `"cifar-10"` or `"cifar-100"`, downloaded if they are not found;
            or a path.
        trusted: A file of trusted rows.
        test: A file of test rows, instead of the data set's own if it has some.
        label: The column (CSV, Parquet), array (.npz) or file (.npy) that holds the labels.
        allow_leaks: Accept test rows that are also in the training or trusted data.
        synthetic_ok: Use generated images, named synthetic, where a benchmark is missing.
        progress: Show a bar while downloading.
    """
    name = str(data) if data is not None else EMBEDDED
    if name == EMBEDDED:
        bundle = load_embedded()
    elif name in BENCHMARKS:
        bundle = _load_benchmark(BENCHMARKS[name], synthetic_ok, progress)
    elif not Path(name).exists():
        known = ", ".join([EMBEDDED, *BENCHMARKS])
        raise UsageError(f"data: there is no {name!r}; choose {known}, or a path: {READABLE}")
    else:
        return _load_own(Path(name), trusted, test, label, allow_leaks)
    if trusted is None and test is None:
        return bundle
    return _with_files(bundle, trusted, test, label, allow_leaks)


def _load_benchmark(benchmark: Benchmark, synthetic_ok: bool, progress: bool) -> Bundle:
    folder = find(benchmark)
    if folder is None and synthetic_ok:
        return synthetic_like(benchmark)
    return read_benchmark(benchmark, folder or fetch(benchmark, progress=progress))


def _load_own(
    path: Path,
    trusted: str | Path | None,
    test: str | Path | None,
    label: str | None,
    allow_leaks: bool,
) -> Bundle:
    """Your own files; the encoding is of the training file, classes also of the trusted one."""
    raw = {
        role: read_raw(Path(file), label if role == "train" else shared_label(label))
        for role, file in (("train", path), ("trusted", trusted), ("test", test))
        if file is not None
    }
    rows, notes = fit(raw["train"])
    names = [*_labels(raw["train"]), *(_labels(raw["trusted"]) if "trusted" in raw else [])]
    encoding = Encoding(class_list(names, str(path)), rows, label)
    parts: dict[str, Dataset] = {}
    for role, content in raw.items():
        read = encode(content, encoding)
        parts[role] = read.dataset(encoding.classes)
        notes += read.notes
    train, trusted_part, test_part = parts["train"], parts.get("trusted"), parts.get("test")
    notes += check_parts(train, trusted_part, test_part, allow_leaks=allow_leaks)
    return Bundle(
        name=path.name,
        kind=encoding.kind,
        train=train,
        test=test_part,
        trusted=trusted_part,
        notes=notes,
        clean=raw["train"].clean,
        encoding=encoding,
    )


def _with_files(
    bundle: Bundle,
    trusted: str | Path | None,
    test: str | Path | None,
    label: str | None,
    allow_leaks: bool,
) -> Bundle:
    """A named data set with trusted or test rows from files."""
    encoding = bundle.encoding
    if encoding is None:
        raise ValueError("bundle: expected one with an encoding")
    parts: dict[str, Dataset] = {}
    notes = bundle.notes
    for role, file in (("trusted", trusted), ("test", test)):
        if file is not None:
            rows = encode(read_raw(Path(file), label), encoding)
            parts[role] = rows.dataset(encoding.classes)
            notes += rows.notes
    notes += check_parts(
        bundle.train, parts.get("trusted"), parts.get("test"), allow_leaks=allow_leaks
    )
    return replace(
        bundle,
        test=parts.get("test", bundle.test),
        trusted=parts.get("trusted"),
        notes=notes,
    )


def _labels(raw: Raw) -> list[str]:
    return raw.labels or []
