"""Data by name or path: which reader for which file, and reading one as the training data were."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from diw.data.arrays import ArrayFile, array_inputs, fit_array, read_npy, read_npz
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
from diw.data.checks import Note, check_parts
from diw.data.columns import fit_table, table_inputs
from diw.data.dataset import Bundle, Dataset, Inputs
from diw.data.encoding import (
    Encoding,
    ImageRows,
    TableRows,
    check_labels,
    class_list,
    class_numbers,
    label_names,
    plain_name,
)
from diw.data.images import (
    SUFFIXES,
    ImageFiles,
    ImageInputs,
    check_name,
    fit_images,
    list_images,
)
from diw.data.numbers import words_of
from diw.data.tables import (
    CSV_ENDINGS,
    JSON_ENDINGS,
    TableFile,
    read_csv,
    read_json_lines,
    read_parquet,
)
from diw.errors import UsageError

READABLE = (
    ".npz, .npy, .csv, .tsv, .parquet, .jsonl, packed .csv.gz and the like, or a folder with one "
    "subfolder of images per class"
)
"""What can be read, for messages."""

WHERE_LABELS = (
    "an .npz has them as y, NAME.npy in NAME.labels.npy beside it (X.npy: y.npy), a folder of "
    "images one subfolder per class"
)
"""Where labels are, for messages."""

CLEAN = "clean"
"""The column or array that marks rows whose labels are known to be right."""


@dataclass(frozen=True)
class Raw:
    """One file or folder as found.

    Attributes:
        labels: (n,) names, or None where the file has none.
        clean: (n,) bool, rows marked clean, or None.
        not_features: Columns of a table that are not features.
    """

    content: ArrayFile | TableFile | ImageFiles
    labels: Sequence[str] | None
    clean: Tensor | None = None
    not_features: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Its path, for messages."""
        return self.content.source


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, read as the training data were.

    Attributes:
        targets: (n,) class numbers, or None where the file has no labels.
        names: (n,) file names of images; None for rows without names.
        notes: Notes for the user about missing or unseen values.
    """

    inputs: Inputs
    targets: Tensor | None
    names: tuple[str, ...] | None
    notes: tuple[Note, ...]

    def dataset(self, classes: tuple[str, ...]) -> Dataset:
        """The rows with their labels, which they must have."""
        if self.targets is None:
            raise UsageError("data: these rows have no labels")
        return Dataset(self.inputs, self.targets, classes)


def load(
    data: str | Path | None = None,
    *,
    trusted: str | Path | None = None,
    test: str | Path | None = None,
    label: str | None = None,
    drop: Sequence[str] = (),
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
        drop: Columns of a table that are not to be used.
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
    if drop:
        _check_drop(name, train, drop)
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
        bundle = _load_own(Path(name), train, label, raw.get("trusted"), tuple(drop))
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


def _check_drop(name: str, train: Raw | None, drop: Sequence[str]) -> None:
    """Refuse to leave out columns that are not there, or that hold the labels."""
    if train is None or not isinstance(train.content, TableFile):
        raise UsageError(f"drop: {name} is no table; only columns of a table can be left out")
    for column in drop:
        if column not in train.content.columns:
            names = ", ".join(train.content.columns)
            raise UsageError(f"drop: {name} has no column {column!r}; it has {names}")
        if column in train.not_features:
            raise UsageError(f"drop: {column!r} holds labels or what is clean and is no feature")


def _load_own(
    path: Path, raw: Raw, label: str | None, trusted: Raw | None, drop: tuple[str, ...]
) -> Bundle:
    """Training rows of your own: they decide the encoding, with the trusted ones the classes."""
    raw = replace(raw, not_features=(*raw.not_features, *drop))
    rows, notes = fit(raw)
    if isinstance(rows, TableRows):
        rows = replace(rows, left_out=(*rows.left_out, *drop))
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


def read_raw(
    path: Path,
    label: str | None,
    *,
    need_labels: bool = True,
    text_encoding: str | None = None,
) -> Raw:
    """A file or folder, not yet encoded; its extension decides how it is read.

    Args:
        path: The file or folder.
        label: The column, array or file of the labels.
        need_labels: If False, labels in the file are ignored.
        text_encoding: Of a CSV file that is not UTF-8.
    """
    check_name(path)
    if not path.exists():
        raise UsageError(f"{path}: no such file, folder or data set name; readable are {READABLE}")
    if not path.is_file() and not path.is_dir():
        raise UsageError(f"{path}: is a pipe or a device, not a file; save the data first")
    suffix = path.suffix.lower()
    if (path / "X.npy").is_file():
        raw = _from_arrays(path / "X.npy", label, need_labels)
    elif path.is_dir():
        images = list_images(path)
        raw = Raw(images, images.labels)
    elif suffix in (".npz", ".npy"):
        raw = _from_arrays(path, label, need_labels)
    elif path.name.lower().endswith(CSV_ENDINGS):
        raw = _from_table(read_csv(path, text_encoding), label, need_labels)
    elif path.name.lower().endswith(JSON_ENDINGS):
        raw = _from_table(read_json_lines(path, text_encoding), label, need_labels)
    elif suffix in (".parquet", ".pq"):
        raw = _from_table(read_parquet(path), label, need_labels)
    elif suffix in SUFFIXES:
        raw = Raw(ImageFiles(str(path), (path,), None), None)
    else:
        raise UsageError(f"{path}: cannot read this; readable are {READABLE}")
    if not need_labels:
        return replace(raw, labels=None)
    if raw.labels is None:
        raise UsageError(f"{path}: no labels found; {WHERE_LABELS}")
    return raw


def fit(raw: Raw) -> tuple[ImageRows | TableRows, tuple[Note, ...]]:
    """How such rows are encoded, learned from the training data, and notes for the user."""
    match raw.content:
        case ArrayFile():
            return fit_array(raw.content)
        case TableFile():
            return fit_table(raw.content, raw.not_features)
        case ImageFiles():
            return fit_images(raw.content)


def encode(raw: Raw, encoding: Encoding) -> FileRows:
    """The rows as inputs and class numbers, read as `encoding` says."""
    notes: tuple[Note, ...] = ()
    names: tuple[str, ...] | None = None
    rows = encoding.rows
    match raw.content, rows:
        case ArrayFile(), _:
            inputs: Inputs = array_inputs(raw.content, rows)
        case TableFile(), TableRows():
            inputs, notes = table_inputs(raw.content, rows, raw.not_features)
        case ImageFiles(), ImageRows():
            inputs = ImageInputs(raw.content.files, rows)
            names = tuple(str(file) for file in raw.content.files)
        case _:
            raise UsageError(f"{raw.source}: expected {encoding.kind}s, as the training data were")
    targets: Tensor | None = None
    if raw.labels is not None:
        targets = torch.from_numpy(class_numbers(raw.labels, encoding.classes, raw.source))
    return FileRows(inputs, targets, names, notes)


def read_like(
    path: str | Path,
    encoding: Encoding,
    *,
    label: str | None = None,
    need_labels: bool = False,
    text_encoding: str | None = None,
) -> FileRows:
    """Rows of another file, read as the training data of `encoding` were.

    Args:
        path: The file or folder.
        encoding: From the bundle that was trained on (`Bundle.encoding`).
        label: The column, array or file of the labels, if it is not as in training.
        need_labels: Refuse a file without labels; if False, labels are ignored.
        text_encoding: Of a CSV file that is not UTF-8.
    """
    label = label or shared_label(encoding.label)
    raw = read_raw(Path(path), label, need_labels=need_labels, text_encoding=text_encoding)
    return encode(raw, encoding)


def fingerprints(
    train: Dataset | None,
    rows: Sequence[int],
    raw: Raw | None = None,
) -> list[str]:
    """What training rows hold but for their labels, as texts (m,) of sixteen letters.

    By it a row is known again when others were added or removed. Letters alone, because a
    spreadsheet takes some texts with digits for numbers.

    Args:
        train: The data as read; None where they are given as found.
        rows: Row numbers (m,) of the data as read.
        raw: The same data as found in a file; None for a benchmark.
    """
    return [_letters(content) for content in _contents(train, rows, raw)]


def _contents(train: Dataset | None, rows: Sequence[int], raw: Raw | None) -> Iterator[bytes]:
    match None if raw is None else raw.content:
        case TableFile() as table:
            used = [name for name in table.columns if name not in (raw.not_features if raw else ())]
            for row in rows:
                cells = ((name, words_of(table.columns[name][row : row + 1])[0]) for name in used)
                yield repr([(name, _as_number(word)) for name, word in cells]).encode()
        case ArrayFile() as arrays:
            for row in rows:
                yield np.ascontiguousarray(arrays.inputs[row]).tobytes()
        case ImageFiles() as images:
            for row in rows:
                yield images.files[row].read_bytes()
        case None:
            assert train is not None
            for row in rows:
                yield train.inputs.take(torch.tensor([row])).numpy().tobytes()


def _as_number(word: str | None) -> str | float | None:
    """A number by its value, however it is written: a spreadsheet makes 1.5 of 1.50."""
    try:
        return None if word is None else float(word)
    except ValueError:
        return word


def _letters(content: bytes) -> str:
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    return digest.translate(str.maketrans("0123456789abcdef", "abcdefghijklmnop"))


def shared_label(label: str | None) -> str | None:
    """What `label` means for other files: a file of labels belongs to one .npy file only."""
    return None if label is not None and label.endswith(".npy") else label


def _from_arrays(path: Path, label: str | None, need_labels: bool) -> Raw:
    read = read_npz if path.suffix.lower() == ".npz" else read_npy
    arrays = read(path, label if need_labels else None)
    found = arrays.labels if need_labels else None
    labels = None if found is None else label_names(found, arrays.source)
    clean = None if arrays.clean is None else torch.from_numpy(arrays.clean)
    return Raw(arrays, labels, clean)


def _from_table(table: TableFile, label: str | None, need_labels: bool) -> Raw:
    name = table.label_column(label, required=need_labels)
    clean = table.columns.get(CLEAN) if need_labels and name != CLEAN else None
    not_features = tuple(column for column in (name, CLEAN) if column is not None)
    labels: list[str] | None = None
    if name is not None and need_labels:
        words = words_of(table.columns[name])
        if None in words:
            raise UsageError(
                f"{table.source}: the label in row {words.index(None)} is missing (column {name!r})"
            )
        labels = [plain_name(word) for word in words if word is not None]
    marks = None if clean is None else _truth_values(words_of(clean), table.source)
    return Raw(table, labels, marks, not_features)


def _truth_values(words: list[str | None], source: str) -> Tensor:
    meaning = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    values = [meaning.get((word or "").lower()) for word in words]
    if None in values:
        raise UsageError(
            f"{source}: column {CLEAN!r} must hold 1 or 0 (true or false), row "
            f"{values.index(None)} does not"
        )
    return torch.from_numpy(np.array(values, np.bool_))
