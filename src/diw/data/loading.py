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
from diw.data.dataset import Bundle
from diw.data.encoding import Encoding, check_labels, class_list
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
    text_encoding: str | None = None,
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
        text_encoding: Of CSV files that are not UTF-8, such as `"latin-1"`.
        progress: Show a bar while downloading.
    """
    name = str(data) if data is not None else EMBEDDED
    own = name != EMBEDDED and name not in BENCHMARKS
    if own and not Path(name).exists():
        known = ", ".join([EMBEDDED, *BENCHMARKS])
        raise UsageError(f"data: there is no {name!r}; choose {known}, or a path: {READABLE}")
    # The training file comes first, so that its faults are named first.
    train = read_raw(Path(name), label, text_encoding=text_encoding) if own else None
    raw = {
        part: read_raw(
            Path(file), shared_label(label) if own else label, text_encoding=text_encoding
        )
        for part, file in (("trusted", trusted), ("test", test))
        if file is not None
    }
    if name == EMBEDDED:
        bundle = load_embedded()
    elif train is not None:
        bundle = _load_own(Path(name), train, label, raw.get("trusted"))
    else:
        bundle = _load_benchmark(BENCHMARKS[name], synthetic_ok, progress)
    assert bundle.encoding is not None  # only one made by hand has none
    rows = {part: encode(content, bundle.encoding) for part, content in raw.items()}
    parts = {part: read.dataset(bundle.train.classes) for part, read in rows.items()}
    notes = [note for read in rows.values() for note in read.notes]
    notes += check_parts(
        bundle.train, parts.get("trusted"), parts.get("test"), allow_leaks=allow_leaks
    )
    return replace(
        bundle,
        trusted=parts.get("trusted"),
        test=parts.get("test", bundle.test),
        notes=(*bundle.notes, *notes),
    )


def _load_benchmark(benchmark: Benchmark, synthetic_ok: bool, progress: bool) -> Bundle:
    folder = find(benchmark)
    if folder is None and synthetic_ok:
        return synthetic_like(benchmark)
    return read_benchmark(benchmark, folder or fetch(benchmark, progress=progress))


def _load_own(path: Path, raw: Raw, label: str | None, trusted: Raw | None) -> Bundle:
    """Training rows of your own: they decide the encoding, with the trusted ones the classes."""
    rows, notes = fit(raw)
    names = [*(raw.labels or ()), *(trusted.labels or () if trusted else ())]
    check_labels(raw.labels or (), trusted.labels if trusted else None, str(path))
    encoding = Encoding(class_list(names, str(path)), rows, label)
    read = encode(raw, encoding)
    return Bundle(
        name=path.name,
        kind=encoding.kind,
        train=read.dataset(encoding.classes),
        notes=notes + read.notes,
        clean=raw.clean,
        encoding=encoding,
    )
